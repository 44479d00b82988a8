#include "why/explanation.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "diag/clean.h"
#include "facts/record.h"
#include "print/emit.h"

enum { SENTENCE = 1024 };

void explanation_say(struct explanation *explanation, const char *format, ...)
{
    char text[SENTENCE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    clean_text(text);
    json_array_append_new(explanation->list, emit_text(text));
}

/* The call that posts receives at the end. An end that is not known is taken to have no shared receive queue. */
static const char *posting_of(const struct story_end *end)
{
    return end && end->story.srq.known ? "ibv_post_srq_recv" : "ibv_post_recv";
}

struct known explanation_known(const struct story_end *end, const struct story_end *other)
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

void explanation_diagnose(struct explanation *explanation, json_int_t when, enum diagnosis diagnosis,
                          const struct known *known)
{
    char text[DIAGNOSE_ROOM], time[EXPLANATION_NAME];
    if (diagnosis != DIAGNOSIS_NOTHING)
        explanation_say(explanation, "%s%s", explanation_time(when, time),
                        diagnose_sentence(diagnosis, known, text, sizeof text));
}

const char *explanation_cause(const struct story_end *end, uint64_t sent, char text[DIAGNOSE_ROOM])
{
    struct known known = explanation_known(end, NULL);
    known.count = (struct fact_number){sent, true};
    if (end->memory.gone.known) /* milliseconds from the end of the memory to the error */
        known.count.value = (end->error.time.value - end->memory.gone.value) / 1000000;
    diagnose_words(diagnose(DIAGNOSE_REFUSAL, &known), &known, text, DIAGNOSE_ROOM);
    size_t length = strlen(text);
    if (length && text[length - 1] == '.')
        text[length - 1] = 0;
    return text;
}

void explanation_refusal(struct explanation *explanation, const struct story_end *end, const struct story_end *sender)
{
    char detail[DIAGNOSE_ROOM];
    struct known known = explanation_known(end, sender);
    known.words = explanation_cause(end, sender ? sender->error.length.value : 0, detail);
    known.hint = sender ? "it" : end->error.operation;
    explanation_diagnose(explanation, (json_int_t)end->error.time.value, DIAGNOSIS_REFUSED_REQUEST, &known);
    known.words = NULL;
    if (known.receive)
        explanation_diagnose(explanation, 0, DIAGNOSIS_RECEIVE_COMPLETED, &known);
}

bool explanation_names_memory(const char *opcode)
{
    return strstr(opcode, "RDMA") || strstr(opcode, "ATOMIC") || strstr(opcode, "FLUSH");
}

void explanation_reason(struct explanation *explanation, unsigned reason)
{
    const struct known known = {.reason = {reason, true}};
    if (reason)
        explanation_diagnose(explanation, 0, DIAGNOSIS_EXPLAINED, &known);
}

bool explanation_first(struct explanation *explanation, enum diagnosis_group group, const struct known *known)
{
    enum diagnosis diagnosis = diagnose(group, known);
    explanation_diagnose(explanation, 0, diagnosis, known);
    return diagnosis != DIAGNOSIS_NOTHING;
}

void explanation_all(struct explanation *explanation, enum diagnosis_group group, const struct known *known)
{
    enum diagnosis diagnosis = DIAGNOSIS_NOTHING;
    while ((diagnosis = diagnose_next(group, known, diagnosis)) != DIAGNOSIS_NOTHING)
        explanation_diagnose(explanation, 0, diagnosis, known);
}

bool explanation_read(const void *records, size_t i, struct known_record *to)
{
    const json_t *record = json_array_get(records, i);
    const char *message = record_text(record, EVENT_FIELD_MESSAGE_NAME);
    *to = (struct known_record){record_name(record), *message ? message : record_text(record, EVENT_FIELD_HEARD)};
    return record;
}

const char *explanation_name_process(const char *program, uint64_t pid, char name[EXPLANATION_NAME])
{
    snprintf(name, EXPLANATION_NAME, "%.40s (%d)", facts_text(program), (int)pid);
    return name;
}

const struct seen_process *explanation_process(const struct explanation *explanation, uint64_t pid)
{
    return explanation->processes ? seen_find(explanation->processes, pid) : NULL;
}

const char *explanation_time(json_int_t nanoseconds, char text[EXPLANATION_NAME])
{
    struct tm parts;
    time_t seconds = nanoseconds / 1000000000;
    size_t length = 0;
    if (nanoseconds > 0 && localtime_r(&seconds, &parts))
        length = strftime(text, EXPLANATION_NAME, "%H:%M:%S", &parts);
    if (length)
        snprintf(text + length, EXPLANATION_NAME - length, ".%03d ", (int)(nanoseconds / 1000000 % 1000));
    text[length ? EXPLANATION_NAME - 1 : 0] = 0;
    return text;
}
