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

/* The local time, of a second that is most often that of the line before. */
static void print_time(FILE *out, int64_t when)
{
    static time_t told = -1;
    static char text[16];
    time_t seconds = when / NANOS;
    struct tm local;
    if (seconds != told) {
        localtime_r(&seconds, &local);
        strftime(text, sizeof text, "%H:%M:%S", &local);
        told = seconds;
    }
    fprintf(out, "%s.%06ld", text, (long)(when % NANOS / 1000));
}

static void print_arguments(FILE *out, const char *arguments)
{
    while (arguments && *arguments) {
        size_t length = strcspn(arguments, (char[]){TRACE_NEXT, 0});
        fwrite(arguments, 1, length, out);
        arguments += length;
        if (*arguments) {
            fputs(", ", out);
            arguments++;
        }
    }
}

static void print_text(FILE *out, const struct trace_slot *line, struct parts *parts)
{
    print_time(out, line->when);
    fprintf(out, " %d", line->process);
    if (line->thread != line->process)
        fprintf(out, "/%d", line->thread);
    fprintf(out, " %s(", parts->call);
    print_arguments(out, parts->arguments);
    fputc(')', out);
    if (line->took == UINT32_MAX)
        fputs(" waits", out);
    else if (parts->result)
        fprintf(out, " = %s", parts->result);
    if (line->further)
        fprintf(out, ", %u times more in", line->further);
    if (line->took != UINT32_MAX)
        fprintf(out, " <%u us>", line->took);
    fputc('\n', out);
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
