#include "why/happened.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "diag/clean.h"
#include "diag/diag.h"
#include "diagnose/diagnose.h"
#include "events/lines.h"
#include "facts/read.h"
#include "facts/record.h"
#include "print/emit.h"
#include "print/screen.h"
#include "report/reports.h"
#include "why/explanation.h"

enum { SENTENCE = 640 };

static void add(json_t *list, char text[SENTENCE])
{
    clean_text(text);
    json_array_append_new(list, emit_text(text));
}

/* -- the object as it is now */

/* Each adds sentences about its object, and returns the object's events. */
static const json_t *tell_cq(json_t *list, const json_t *json)
{
    char text[SENTENCE];
    char words[DIAGNOSE_ROOM];
    struct facts_cq cq;
    struct known known = {.cq = &cq};
    if (!facts_read(&facts_of_cq, json, &cq))
        return NULL;
    uint64_t waiting = cq.waiting.value;
    snprintf(text, sizeof text, "It has %" PRIu64 " completion%s that %s not polled%s%s.", waiting,
             waiting == 1 ? "" : "s", waiting == 1 ? "was" : "were", waiting ? ", and " : "",
             waiting ? diagnose_words(diagnose(DIAGNOSE_EVENT, &known), &known, words, sizeof words) : "");
    add(list, text);
    if (facts_is(&cq.overrun)) {
        snprintf(text, sizeof text, "It overran: a completion found no room among its %" PRIu64 " entries.",
                 cq.size.value);
        add(list, text);
    }
    return facts_json(&cq.events);
}

static const json_t *tell_srq(json_t *list, const json_t *json)
{
    char text[SENTENCE], limit[64] = "no limit is armed";
    struct facts_srq srq;
    if (!facts_read(&facts_of_srq, json, &srq))
        return NULL;
    if (srq.limit.value)
        snprintf(limit, sizeof limit, "a limit of %" PRIu64 " is armed", srq.limit.value);
    snprintf(text, sizeof text, "It has %" PRIu64 " of %" PRIu64 " receives posted, and %s.", srq.posted.value,
             srq.size.value, limit);
    add(list, text);
    return facts_json(&srq.events);
}

static const json_t *tell_process(json_t *list, const json_t *events)
{
    return events;
}

/* -- the events of the object */

static const char *meaning_of(const json_t *record)
{
    for (enum event event = 0; event < EVENT_KINDS; event++)
        if (record_is(record, event))
            return event_lines[event].meaning;
    return "";
}

/* " (limit 4, posted 2)" */
static void write_fields(const json_t *event, char *text, size_t size)
{
    const char *key;
    json_t *value;
    size_t length = 0;
    *text = 0;
    json_object_foreach((json_t *)event, key, value)
    {
        if (!record_is_field(key) || length >= size)
            continue;
        const char *before = length ? ", " : " (";
        if (json_is_string(value))
            length +=
                (size_t)snprintf(text + length, size - length, "%s%s %.100s", before, key, json_string_value(value));
        else
            length += (size_t)snprintf(text + length, size - length, "%s%s %" JSON_INTEGER_FORMAT, before, key,
                                       json_integer_value(value));
    }
    if (length && length < size)
        snprintf(text + length, size - length, ")");
}

/* "12:01:02.345 MEANING (FIELDS): REASON." */
void happened_tell(json_t *list, const json_t *event)
{
    char text[SENTENCE], fields[256], when[EXPLANATION_NAME];
    const char *meaning = meaning_of(event);
    unsigned reason = (unsigned)record_number(event, EVENT_FIELD_REASON);
    const char *sentence = reason ? reason_sentence(reason) : NULL;
    write_fields(event, fields, sizeof fields);
    snprintf(text, sizeof text, "%s%.*s%s%s%s", explanation_time(record_time(event), when), (int)strcspn(meaning, "."),
             meaning, fields, sentence ? ": " : ".", sentence ? sentence : "");
    add(list, text);
}

static const struct kind {
    const char *kind, *name; /* the request's word, and the beginning of a sentence */
    size_t at;               /* the offset of the object, or of the events, in struct facts_happened */
    const json_t *(*tell)(json_t *list, const json_t *object);
} kinds[] = {
    {"cq", "Completion queue", offsetof(struct facts_happened, cq), tell_cq},
    {"srq", "Shared receive queue", offsetof(struct facts_happened, srq), tell_srq},
    {"process", NULL, offsetof(struct facts_happened, events), tell_process},
};

static const json_t *object_in(const struct facts_happened *answer, const struct kind *kind)
{
    return facts_json((const struct fact_inner *)((const char *)answer + kind->at));
}

static json_t *sentences(const struct facts_happened *answer, const struct kind *kind, unsigned long number)
{
    char text[SENTENCE], name[64] = "";
    json_t *list = json_array(), *event;
    size_t i;
    if (kind->name)
        snprintf(name, sizeof name, "%s %lu of ", kind->name, number);
    snprintf(text, sizeof text, "%s%.40s (%d):", name, facts_text(answer->program), (int)answer->pid.value);
    add(list, text);
    const json_t *events = kind->tell(list, object_in(answer, kind));
    json_array_foreach((json_t *)events, i, event) happened_tell(list, event);
    return list;
}

/* -- the processes that are asked */

json_t *happened_collect(const char *directory, const char *word, unsigned long number, int pid, int *silent)
{
    char request[48];
    size_t i;
    const struct kind *kind = kinds;
    json_t *answer, *list = json_array();
    struct facts_happened happened;
    while (strcmp(kind->kind, word) != 0 && kind + 1 < kinds + sizeof kinds / sizeof *kinds)
        kind++;
    snprintf(request, sizeof request, "events %s %lu", word, number);
    json_t *answers = reports_ask_all(directory, request, silent);
    json_array_foreach(answers, i, answer)
    {
        if (!facts_read(&facts_of_happened, answer, &happened) || !object_in(&happened, kind) ||
            (pid && happened.pid.value != (uint64_t)pid))
            continue;
        json_object_set_new(answer, "sentences", sentences(&happened, kind, number));
        json_array_append(list, answer);
    }
    json_decref(answers);
    return list;
}

void happened_print(const json_t *list)
{
    size_t i, k;
    json_t *answer, *line;
    struct facts_told told; /* of this kind, as stories of connections are printed here, too */
    json_array_foreach((json_t *)list, i, answer)
    {
        facts_read(&facts_of_told, answer, &told);
        json_array_foreach(facts_json(&told.sentences), k, line) screen_wrap(
            stdout, screen_width(stdout), k ? (size_t)printf("    ") : 0, k ? 8 : 4, json_string_value(line));
    }
}
