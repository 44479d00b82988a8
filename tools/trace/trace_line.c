#include "trace/trace_line.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ring/trace_ring.h"

enum { NANOS = 1000000000 };

/* The parts of a line's text: the call, each argument, and the result, all of them strings in `copy`. */
struct parts {
    char copy[TRACE_TEXT + 1];
    char *call, *arguments, *result; /* arguments: TRACE_NEXT between them; NULL: none */
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

/* A line as text, made without stdio: a program that sends a message in each microsecond makes several of them. */
struct text {
    size_t length;
    char bytes[2 * TRACE_TEXT + 256]; /* each separator becomes two letters; and what stands around */
};

#define ADD(text, constant) add(text, constant, sizeof constant - 1)

static void add(struct text *text, const char *piece, size_t length)
{
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
}

/* `least` digits, with zeros in front. */
static void add_number(struct text *text, uint32_t number, unsigned least)
{
    char digits[16];
    size_t first = sizeof digits;
    for (unsigned i = 0; number || i < least; i++, number /= 10)
        digits[--first] = (char)('0' + number % 10);
    add(text, digits + first, sizeof digits - first);
}

/* The local time, of a second that is most often that of the line before. */
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

static void add_arguments(struct text *text, const char *arguments)
{
    while (arguments && *arguments) {
        const char *end = strchrnul(arguments, TRACE_NEXT);
        add(text, arguments, (size_t)(end - arguments));
        arguments = end + (*end != 0);
        if (*end)
            ADD(text, ", ");
    }
}

static void add_end(struct text *text, const struct trace_slot *line, const struct parts *parts)
{
    if (line->took == UINT32_MAX) {
        ADD(text, " waits");
        return;
    }
    if (parts->result) {
        ADD(text, " = ");
        add(text, parts->result, strlen(parts->result));
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

static void print_text(FILE *out, const struct trace_slot *line, struct parts *parts)
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
    add(&text, parts->call, strlen(parts->call));
    ADD(&text, "(");
    add_arguments(&text, parts->arguments);
    ADD(&text, ")");
    add_end(&text, line, parts);
    ADD(&text, "\n");
    fwrite_unlocked(text.bytes, 1, text.length, out);
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

static void print_json(FILE *out, const struct trace_slot *line, struct parts *parts)
{
    json_t *call = json_pack("{s:f, s:i, s:i, s:s, s:o}", "time", (double)line->when / NANOS, "pid", line->process,
                             "tid", line->thread, "call", parts->call, "arguments", list_arguments(parts->arguments));
    if (parts->result)
        json_object_set_new(call, "result", json_string(parts->result));
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

void trace_line_print(FILE *out, const struct trace_slot *line, bool as_json)
{
    struct parts parts;
    take_apart(&parts, line);
    (as_json ? print_json : print_text)(out, line, &parts);
}
