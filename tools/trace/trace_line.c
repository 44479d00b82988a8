#include "trace/trace_line.h"

#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ring/trace_ring.h"

enum { NANOS = 1000000000 };

/* A line as text, made in one pass: a program that sends a message in each microsecond makes several lines in it, and
 * where processors are few, the program loses the time that this process needs to write them. */
struct text {
    size_t length;
    char bytes[2 * TRACE_TEXT + 256]; /* each separator becomes two letters; 256: the text around the call */
};

static inline __attribute__((always_inline)) void add(struct text *text, const char *piece, size_t length)
{
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
}

#define ADD(text, constant) add(text, constant, sizeof constant - 1)

/* At least `least` digits, with zeros in front. */
static void add_number(struct text *text, uint32_t number, unsigned least)
{
    char digits[16];
    size_t first = sizeof digits;
    for (unsigned i = 0; number || i < least; i++, number /= 10)
        digits[--first] = (char)('0' + number % 10);
    add(text, digits + first, sizeof digits - first);
}

/* Adds the local time; most often the second is the previous line's, and its text is kept. */
static void add_time(struct text *text, int64_t when)
{
    static time_t told = -1;
    static char clock[16];
    time_t seconds = when / NANOS;
    struct tm local;
    if (seconds != told) {
        localtime_r(&seconds, &local);
        strftime(clock, sizeof clock, "%H:%M:%S.", &local);
        told = seconds;
    }
    add(text, clock, strlen(clock));
    add_number(text, (uint32_t)(when % NANOS / 1000), 6);
}

/* "call(a=1, b=2) = result", or without the result. */
static void add_call(struct text *text, const struct trace_slot *line)
{
    const char *at = line->text, *end = at + line->length;
    bool in_arguments = false, in_result = false;
    for (;; at++) {
        size_t length = trace_ring_printable(at, (size_t)(end - at));
        add(text, at, length);
        at += length;
        if (at == end)
            break;
        if (*at == TRACE_RESULT && !in_result) {
            if (!in_arguments)
                ADD(text, "(");
            ADD(text, ") = ");
            in_result = true;
        } else if (in_arguments || in_result)
            ADD(text, ", ");
        else {
            ADD(text, "(");
            in_arguments = true;
        }
    }
    if (!in_result && !in_arguments)
        ADD(text, "(");
    if (!in_result)
        ADD(text, ")");
}

static void add_duration(struct text *text, const struct trace_slot *line)
{
    if (line->took == UINT32_MAX) {
        ADD(text, " waits");
        return;
    }
    if (line->further) {
        ADD(text, ", ");
        add_number(text, line->further, 1);
        ADD(text, " times more in");
    }
    ADD(text, " <");
    add_number(text, line->took, 1);
    ADD(text, " us>");
}

static void print_text(FILE *out, const struct trace_slot *line)
{
    struct text text;
    text.length = 0;
    add_time(&text, line->when);
    ADD(&text, " ");
    add_number(&text, (uint32_t)line->process, 1);
    if (line->thread != line->process) {
        ADD(&text, "/");
        add_number(&text, (uint32_t)line->thread, 1);
    }
    ADD(&text, " ");
    add_call(&text, line);
    add_duration(&text, line);
    ADD(&text, "\n");
    fwrite_unlocked(text.bytes, 1, text.length, out);
}

/* The parts of a line's text for JSON: the call, each argument, and the result, all of them strings in `copy`. */
struct parts {
    char copy[TRACE_TEXT + 1];
    char *call, *arguments, *result; /* arguments: TRACE_NEXT between them; NULL: no arguments */
};

static void take_apart(struct parts *parts, const struct trace_slot *line)
{
    memcpy(parts->copy, line->text, line->length);
    parts->copy[line->length] = 0;
    parts->call = parts->copy;
    parts->result = strchr(parts->copy, TRACE_RESULT);
    if (parts->result)
        *parts->result++ = 0;
    parts->arguments = strchr(parts->copy, TRACE_NEXT);
    if (parts->arguments)
        *parts->arguments++ = 0;
}

static json_t *list_arguments(char *arguments)
{
    json_t *list = json_object();
    char *rest = arguments, separator[] = {TRACE_NEXT, 0};
    for (char *argument; (argument = strsep(&rest, separator));) {
        char *value = strchr(argument, '=');
        if (value)
            *value++ = 0;
        json_object_set_new(list, argument, json_string(value ? value : ""));
    }
    return list;
}

static void print_json(FILE *out, const struct trace_slot *line)
{
    struct parts parts;
    take_apart(&parts, line);
    json_t *call = json_pack("{s:f, s:i, s:i, s:s, s:o}", "time", (double)line->when / NANOS, "pid", line->process,
                             "tid", line->thread, "call", parts.call, "arguments", list_arguments(parts.arguments));
    if (parts.result)
        json_object_set_new(call, "result", json_string(parts.result));
    if (line->took == UINT32_MAX)
        json_object_set_new(call, "waits", json_true());
    else
        json_object_set_new(call, "seconds", json_real((double)line->took / 1000000));
    if (line->further)
        json_object_set_new(call, "further", json_integer(line->further));
    char *text = json_dumps(call, JSON_COMPACT);
    if (text)
        fprintf(out, "%s\n", text);
    free(text);
    json_decref(call);
}

static void print_line(FILE *out, const struct trace_slot *line, bool as_json)
{
    (as_json ? print_json : print_text)(out, line);
}

/* Prints the calls before the line's that found nothing, as one line. */
static void print_empty(FILE *out, const struct trace_slot *line, bool as_json)
{
    static const char zero[] = {TRACE_RESULT, '0'};
    const char *arguments_end = memchr(line->text, TRACE_RESULT, line->length);
    size_t length = arguments_end ? (size_t)(arguments_end - line->text) : 0;
    struct trace_slot empty;
    if (length + sizeof zero > sizeof empty.text)
        return;
    memcpy(&empty, (const void *)line, offsetof(struct trace_slot, text) + length);
    memcpy(empty.text + length, zero, sizeof zero);
    empty.length = (uint32_t)(length + sizeof zero);
    empty.when = line->empty_since;
    empty.took = line->when > line->empty_since ? (uint32_t)((line->when - line->empty_since + 999) / 1000) : 0;
    empty.further = line->empty - 1;
    print_line(out, &empty, as_json);
}

void trace_line_print(FILE *out, const struct trace_slot *line, bool as_json)
{
    if (line->empty)
        print_empty(out, line, as_json);
    print_line(out, line, as_json);
}
