#include "why/tale.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "diag/clean.h"
#include "print/emit.h"

enum { SENTENCE = 1024 };

json_int_t tale_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *tale_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void tale_say(struct tale *tale, const char *format, ...)
{
    char text[SENTENCE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    clean_text(text);
    json_array_append_new(tale->list, emit_text(text));
}

const char *tale_name(const json_t *end, char name[TALE_NAME])
{
    snprintf(name, TALE_NAME, "%.40s (%d)", tale_text(end, "program"), (int)tale_number(end, "pid"));
    return name;
}

bool tale_has(const json_t *object, const char *key, const char *word)
{
    return !strcmp(tale_text(object, key), word);
}

unsigned tale_reason(const json_t *end)
{
    return (unsigned)tale_number(json_object_get(end, "error"), "reason");
}

const json_t *tale_event(const json_t *end, const char *event)
{
    const json_t *events = json_object_get(end, "events");
    for (size_t i = json_array_size(events); i--;)
        if (tale_has(json_array_get(events, i), "event", event))
            return json_array_get(events, i);
    return NULL;
}

const json_t *tale_process(const struct tale *tale, json_int_t pid)
{
    size_t i;
    json_t *process;
    json_array_foreach((json_t *)tale->processes, i, process) if (tale_number(process, "pid") == pid) return process;
    return NULL;
}

const char *tale_time(json_int_t nanoseconds, char text[TALE_NAME])
{
    struct tm parts;
    time_t seconds = nanoseconds / 1000000000;
    size_t length = 0;
    if (nanoseconds > 0 && localtime_r(&seconds, &parts))
        length = strftime(text, TALE_NAME, "%H:%M:%S", &parts);
    if (length)
        snprintf(text + length, TALE_NAME - length, ".%03d ", (int)(nanoseconds / 1000000 % 1000));
    text[length ? TALE_NAME - 1 : 0] = 0;
    return text;
}

const char *tale_plural(json_int_t count)
{
    return count == 1 ? "" : "s";
}
