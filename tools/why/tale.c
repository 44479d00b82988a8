#include "why/tale.h"

#include <stdarg.h>
#include <stdio.h>

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
