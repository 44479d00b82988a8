#include "why/tale.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "diag/clean.h"
#include "facts/record.h"
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

/* An end that is not known has a receive queue of its own. */
static const char *posting_of(const struct story_end *end)
{
    return end && end->story.srq.known ? "ibv_post_srq_recv" : "ibv_post_recv";
}

struct known tale_known(const struct story_end *end, const struct story_end *other)
{
    const struct facts_story *story = &end->story;
    return (struct known){.own = &end->qp,
                          .peer = other ? &other->qp : NULL,
                          .end = story,
                          .error = &end->error,
                          .receive = end->error.receive.of ? &end->receive : NULL,
                          .memory = end->error.memory.of ? &end->memory : NULL,
                          .too_short = &end->too_short,
                          .name = end->name,
                          .process = other ? other->name : NULL,
                          .place = "this directory",
                          .posting = {posting_of(end), posting_of(other)},
                          .counts = {{seen_count(&story->counts, EVENT_RNR_RECEIVED), true},
                                     {seen_count(&story->counts, EVENT_RNR_SENT), true},
                                     {seen_count(&story->counts, EVENT_ACK_TIMEOUT), true}},
                          .ended = facts_is(&story->ended)};
}

void tale_diagnose(struct tale *tale, json_int_t when, enum diagnosis diagnosis, const struct known *known)
{
    char text[DIAGNOSE_ROOM], time[TALE_NAME];
    if (diagnosis != DIAGNOSIS_NOTHING)
        tale_say(tale, "%s%s", tale_time(when, time), diagnose_sentence(diagnosis, known, text, sizeof text));
}

bool tale_first(struct tale *tale, enum diagnosis_group group, const struct known *known)
{
    enum diagnosis diagnosis = diagnose(group, known);
    tale_diagnose(tale, 0, diagnosis, known);
    return diagnosis != DIAGNOSIS_NOTHING;
}

void tale_all(struct tale *tale, enum diagnosis_group group, const struct known *known)
{
    enum diagnosis diagnosis = DIAGNOSIS_NOTHING;
    while ((diagnosis = diagnose_next(group, known, diagnosis)) != DIAGNOSIS_NOTHING)
        tale_diagnose(tale, 0, diagnosis, known);
}

bool tale_read(const void *records, size_t i, struct known_record *to)
{
    const json_t *record = json_array_get(records, i);
    const char *message = record_text(record, EVENT_FIELD_MESSAGE_NAME);
    *to = (struct known_record){record_name(record), *message ? message : record_text(record, EVENT_FIELD_HEARD)};
    return record;
}

const char *tale_name_process(const char *program, uint64_t pid, char name[TALE_NAME])
{
    snprintf(name, TALE_NAME, "%.40s (%d)", facts_text(program), (int)pid);
    return name;
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
