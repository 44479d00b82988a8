#include "why/connection_words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "diag/clean.h"
#include "diag/diag.h"
#include "facts/record.h"
#include "print/emit.h"
#include "why/explanation.h"
#include "why/happened.h"
#include "why/listeners.h"

/* The facts of an end of a connection: of its process, its record of the identifier, and the identifier. */
struct connection_end {
    char name[EXPLANATION_NAME]; /* "client (4711)" */
    struct facts_connected end;
    struct facts_connection record;
    struct facts_identifier identifier;
};

/* The two ends, and the sentences. The peer is NULL if nothing is known of it. */
struct connection_explanation {
    struct explanation explanation;
    const struct connection_end *own, *peer;
};

static void read_end(struct connection_end *to, const json_t *json)
{
    memset(to, 0, sizeof *to);
    facts_read(&facts_of_connected, json, &to->end);
    facts_read(&facts_of_connection, facts_json(&to->end.id), &to->record);
    facts_read(&facts_of_identifier, facts_json(&to->record.identifier), &to->identifier);
    explanation_name_process(to->end.program, to->end.pid.value, to->name);
}

static struct fact_number number(json_int_t value)
{
    return (struct fact_number){(uint64_t)value, true};
}

static bool is_state(const struct connection_end *end, const char *state)
{
    return !strcmp(facts_text(end->identifier.state), state);
}

/* -- the events of an end */

/* The last record of this event, and unless `which` is NULL of this message or type of event. NULL: no such record. */
static const json_t *event_of(const struct connection_end *end, enum event wanted, const char *which)
{
    const json_t *events = facts_json(&end->record.events);
    for (size_t i = json_array_size(events); i--;) {
        const json_t *event = json_array_get(events, i);
        if (record_is(event, wanted) && (!which || !strcmp(record_text(event, EVENT_FIELD_MESSAGE_NAME), which) ||
                                         !strcmp(record_text(event, EVENT_FIELD_HEARD), which)))
            return event;
    }
    return NULL;
}

/* The last event of the connection manager that has a reason; NULL: no event has one. */
static const json_t *bad_news(const struct connection_end *end)
{
    const json_t *events = facts_json(&end->record.events);
    for (size_t i = json_array_size(events); i--;) {
        const json_t *event = json_array_get(events, i);
        if (record_is(event, EVENT_CM_EVENT) && record_number(event, EVENT_FIELD_REASON))
            return event;
    }
    return NULL;
}

unsigned connection_reason(const json_t *json)
{
    struct connection_end end;
    read_end(&end, json);
    return (unsigned)record_number(bad_news(&end), EVENT_FIELD_REASON);
}

/* How often this message was sent; 0: never, or the events no longer have it. */
static json_int_t times_sent(const struct connection_end *end, const char *message)
{
    return record_number(event_of(end, EVENT_CM_SENT, message), EVENT_FIELD_TIMES);
}

/* The facts of an end for diagnoses; `count` and `reason` are of the requests that the end has dropped. */
static struct known known_of(const struct connection_explanation *explanation, const struct connection_end *end)
{
    const struct connection_end *other = end == explanation->own ? explanation->peer : explanation->own;
    const json_t *dropped = event_of(end, EVENT_CM_DROPPED, NULL);
    struct known known = {.id = &end->identifier,
                          .name = end->name,
                          .count = number(record_number(dropped, EVENT_FIELD_TIMES)),
                          .reason = number(record_number(dropped, EVENT_FIELD_REASON)),
                          .connection = {.record = &end->record},
                          .events = {explanation_read, facts_json(&end->record.events), NULL}};
    if (other) {
        known.process = other->name;
        known.connection.peer_id = &other->identifier;
        known.asked.ended = facts_is(&other->end.ended);
        known.events.peer = facts_json(&other->record.events);
    }
    return known;
}

/* -- the listeners */

static bool tell_listeners(struct connection_explanation *explanation, enum diagnosis_group group)
{
    return listeners_tell(&explanation->explanation, &explanation->own->identifier, group);
}

static bool tell_nobody_listens(struct connection_explanation *explanation)
{
    struct known known = known_of(explanation, explanation->own);
    const char *colon = strrchr(facts_text(explanation->own->identifier.peer), ':');
    known.place = colon ? colon + 1 : "";
    if (!explanation->explanation.processes || tell_listeners(explanation, DIAGNOSE_CM_LISTENER))
        return explanation->explanation.processes;
    explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_NO_LISTENER, &known);
    if (!tell_listeners(explanation, DIAGNOSE_CM_SWAPPED))
        tell_listeners(explanation, DIAGNOSE_CM_ELSEWHERE);
    return true;
}

/* -- causes of a missing answer */

static void tell_faults(struct connection_explanation *explanation)
{
    struct known known = {.count = number(0)};
    const struct seen *seen = explanation->explanation.processes;
    for (size_t i = 0; seen && i < seen->count; i++)
        known.count.value += seen_part(&seen->processes[i].own.messages, EVENT_FAULT_DROP);
    if (known.count.value)
        explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_FAULTS, &known);
}

/* Adds what the program of the other end has not done. False: nothing is known of that end. */
static bool tell_program_there(struct connection_explanation *explanation)
{
    const struct seen_process *process =
        explanation_process(&explanation->explanation, explanation->own->identifier.peer_pid.value);
    struct known known = explanation->peer ? known_of(explanation, explanation->peer) : (struct known){0};
    known.partner = process ? &process->own : NULL;
    return explanation_first(&explanation->explanation, DIAGNOSE_CM_PROGRAM, &known) || explanation->peer;
}

/* Returns true, for tell_cause. */
static bool tell_silence(struct connection_explanation *explanation, const char *message)
{
    struct known known = known_of(explanation, explanation->own);
    known.words = message;
    known.count = number(times_sent(explanation->own, message));
    explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_UNANSWERED, &known);
    if (!tell_program_there(explanation) && explanation->explanation.processes &&
        !tell_listeners(explanation, DIAGNOSE_CM_LISTENER))
        explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_NOBODY_LISTENS, &known);
    tell_faults(explanation);
    return true;
}

static bool is_resolution(const struct connection_end *end)
{
    return event_of(end, EVENT_CM_SENT, "SIDR_REQ");
}

/* The message whose answer this end waits for. */
static const char *asked_with(const struct connection_end *end)
{
    if (is_resolution(end))
        return "SIDR_REQ";
    return event_of(end, EVENT_CM_SENT, "REQ") ? "REQ" : "REP";
}

/* -- bad news */

static bool tell_rejection(struct connection_explanation *explanation)
{
    const struct known known = known_of(explanation, explanation->own);
    return explanation_first(&explanation->explanation, DIAGNOSE_CM_REJECTION, &known) ||
           tell_listeners(explanation, DIAGNOSE_CM_LISTENER);
}

/* False: the cause is not known. */
static bool tell_cause(struct connection_explanation *explanation, unsigned reason)
{
    switch (reason) {
    case REASON_CM_NOBODY_LISTENS:
        return tell_nobody_listens(explanation);
    case REASON_CM_REJECTED:
    case REASON_CM_REFUSED:
        return tell_rejection(explanation);
    case REASON_CM_UNANSWERED:
        return tell_silence(explanation, asked_with(explanation->own));
    case REASON_CM_DREQ_UNANSWERED:
        return tell_silence(explanation, "DREQ");
    default:
        return false;
    }
}

static void tell_bad_news(struct connection_explanation *explanation, const json_t *news)
{
    char status[16];
    struct known known = known_of(explanation, explanation->own);
    known.reason = number(record_number(news, EVENT_FIELD_REASON));
    known.words = record_text(news, EVENT_FIELD_HEARD);
    known.hint = status;
    snprintf(status, sizeof status, "%d", (int)record_number(news, EVENT_FIELD_STATUS));
    explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_BAD_NEWS, &known);
    if (!tell_cause(explanation, (unsigned)known.reason.value))
        explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_REASON, &known);
    explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_EXPLAINED, &known);
}

/* -- no bad news: the state of the end says what it waits for */

static bool waits_for_answer(const struct connection_end *own)
{
    bool resolves = is_resolution(own) && !event_of(own, EVENT_CM_ARRIVED, "SIDR_REP");
    return is_state(own, "REQ sent") || is_state(own, "REP sent") || (resolves && !own->record.communication_id.known);
}

static bool waits_for_program(const struct connection_end *own)
{
    return is_state(own, "REQ rcvd") || is_state(own, "REP rcvd");
}

static void tell_state(struct connection_explanation *explanation, const struct known *known)
{
    if (waits_for_answer(explanation->own))
        tell_silence(explanation, asked_with(explanation->own));
    else if (waits_for_program(explanation->own))
        explanation_first(&explanation->explanation, DIAGNOSE_CM_PROGRAM, known);
    else if (!explanation_first(&explanation->explanation, DIAGNOSE_CM_STATE, known))
        explanation_first(&explanation->explanation, DIAGNOSE_CM_NEXT, known);
    if (is_state(explanation->own, "DREQ sent") && explanation->peer)
        tell_program_there(explanation);
}

/* -- the whole */

/* The words around the field of an event; other events have their meaning in events.def as words. */
static const struct {
    enum event event;
    const char *before;
    enum event_field field;
    const char *after;
} lines[] = {
    {EVENT_CM_SENT, "sent ", EVENT_FIELD_MESSAGE_NAME, ""},
    {EVENT_CM_ARRIVED, "got ", EVENT_FIELD_MESSAGE_NAME, ""},
    {EVENT_CM_EVENT, "RDMA_CM_EVENT_", EVENT_FIELD_HEARD, " was raised"},
    {EVENT_CM_EVENT_FETCHED, "the program fetched RDMA_CM_EVENT_", EVENT_FIELD_HEARD, " (rdma_get_cm_event)"},
    {EVENT_CONNECTION_STATE, "the connection is in state ", EVENT_FIELD_BECAME, ""},
};

/* "12:01:02.345 sent REQ 3 times" */
static void tell_event(struct connection_explanation *explanation, const json_t *event)
{
    char when[EXPLANATION_NAME], more[EXPLANATION_NAME] = "";
    uint64_t times = (uint64_t)record_number(event, EVENT_FIELD_TIMES),
             rejection = (uint64_t)record_number(event, EVENT_FIELD_REJECTION);
    size_t i = 0;
    while (i < sizeof lines / sizeof *lines && !record_is(event, lines[i].event))
        i++;
    if (i == sizeof lines / sizeof *lines) {
        happened_tell(explanation->explanation.list, event);
        return;
    }
    if (rejection)
        snprintf(more, sizeof more, ", reason %" PRIu64, rejection);
    else if (times > 1)
        snprintf(more, sizeof more, ", %" PRIu64 " times", times);
    else if (record_number(event, EVENT_FIELD_STATUS))
        snprintf(more, sizeof more, ", status %" JSON_INTEGER_FORMAT, record_number(event, EVENT_FIELD_STATUS));
    explanation_say(&explanation->explanation, "%s%s%.60s%s%s.", explanation_time(record_time(event), when),
                    lines[i].before, record_text(event, lines[i].field), lines[i].after, more);
}

static void tell_events(struct connection_explanation *explanation, const struct connection_end *end)
{
    size_t i;
    json_t *event;
    if (!end)
        return;
    explanation_say(&explanation->explanation, "What happened at %s:", end->name);
    json_array_foreach (facts_json(&end->record.events), i, event)
        tell_event(explanation, event);
}

static void tell(struct connection_explanation *explanation)
{
    const json_t *news = bad_news(explanation->own);
    const struct known own = known_of(explanation, explanation->own),
                       peer = explanation->peer ? known_of(explanation, explanation->peer) : own;
    explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_IDENTIFIER, &own);
    if (explanation->peer)
        explanation_diagnose(&explanation->explanation, 0, DIAGNOSIS_CM_OTHER_END, &peer);
    if (news)
        tell_bad_news(explanation, news);
    else
        tell_state(explanation, &own);
    explanation_all(&explanation->explanation, DIAGNOSE_CM_MORE, &own);
    tell_events(explanation, explanation->own);
    tell_events(explanation, explanation->peer);
}

json_t *connection_sentences(const json_t *own, const json_t *peer, const json_t *processes)
{
    struct connection_end here, there;
    struct seen seen = seen_begin(processes);
    struct connection_explanation explanation = {
        .explanation = {.processes = processes ? &seen : NULL, .list = json_array()},
        .own = &here,
        .peer = peer ? &there : NULL};
    read_end(&here, own);
    read_end(&there, peer);
    tell(&explanation);
    seen_end(&seen);
    return explanation.explanation.list;
}
