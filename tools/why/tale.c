#include "why/tale.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "diag/clean.h"
#include "print/emit.h"

enum { SENTENCE = 1024 };

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

void tale_diagnose(struct tale *tale, enum diagnosis diagnosis, const struct known *known)
{
    char text[DIAGNOSE_ROOM];
    if (diagnosis == DIAGNOSIS_NOTHING)
        return;
    diagnose_words(diagnosis, known, text, sizeof text);
    tale_say(tale, "%c%s.", toupper((unsigned char)*text), text + 1);
}

const char *tale_name_process(const char *program, uint64_t pid, char name[TALE_NAME])
{
    snprintf(name, TALE_NAME, "%.40s (%d)", facts_text(program), (int)pid);
    return name;
}

const char *tale_name(const struct story_end *end, char name[TALE_NAME])
{
    return tale_name_process(end->story.program, end->story.pid.value, name);
}

const struct seen_process *tale_process(const struct tale *tale, uint64_t pid)
{
    return tale->processes ? seen_find(tale->processes, pid) : NULL;
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

const char *tale_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}
