#include "why/connection_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "diag/clean.h"
#include "diag/diag.h"
#include "facts/record.h"
#include "print/emit.h"
#include "why/happened.h"
#include "why/tale.h"

enum { PLACE = 96, MOST_LISTENERS = 3 };

/* One end, read: the process, its record of the identifier, and the identifier. */
struct connection_end {
    struct facts_connected end;
    struct facts_connection record;
    struct facts_identifier identifier;
};

/* Both ends, and the sentences. The peer may be NULL: nothing is known of it. */
struct connection_tale {
    struct tale tale;
    const struct connection_end *own, *peer;
};

static void read_end(struct connection_end *to, const json_t *json)
{
    memset(to, 0, sizeof *to);
    facts_read(&facts_of_connected, json, &to->end);
    facts_read(&facts_of_connection, facts_json(&to->end.id), &to->record);
    facts_read(&facts_of_identifier, facts_json(&to->record.identifier), &to->identifier);
}

static const char *name_of(const struct connection_end *end, char name[TALE_NAME])
{
    return tale_name_process(end->end.program, end->end.pid.value, name);
}

static bool is_state(const struct connection_end *end, const char *state)
{
    return !strcmp(facts_text(end->identifier.state), state);
}

/* -- its events */

/* The last of this event, and of this message or type; NULL: any. */
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

/* The last that was no good news. */
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

/* How often this message was sent; 0: never, or it is no more among the events. */
static json_int_t times_sent(const struct connection_end *end, const char *message)
{
    return record_number(event_of(end, EVENT_CM_SENT, message), EVENT_FIELD_TIMES);
}

/* -- the listeners */

/* The port of "10.0.0.1:7174". */
static const char *port_of(const char *place)
{
    const char *colon = strrchr(place, ':');
    return colon ? colon + 1 : "";
}

static bool is_at(const struct facts_identifier *listener, const struct connection_end *own)
{
    return !strcmp(port_of(facts_text(listener->local)), port_of(facts_text(own->identifier.peer))) &&
           !strcmp(facts_text(listener->space), facts_text(own->identifier.space));
}

static void tell_listener(struct connection_tale *tale, const struct seen_process *process,
                          const struct facts_identifier *listener)
{
    char name[TALE_NAME];
    const char *place = facts_text(listener->local), *space = facts_text(listener->space);
    uint64_t requests = listener->requests.value;
    const char *full = requests && listener->backlog.known && requests >= listener->backlog.value
                           ? ": as many as its backlog, so that further ones are dropped"
                           : "";
    tale_name_process(process->own.program, process->own.pid.value, name);
    if (requests)
        tale_say(&tale->tale,
                 "%s listens at %.60s of port space %.20s, and %" PRIu64
                 " request%s wait%s that rdma_get_cm_event has not fetched%s.",
                 name, place, space, requests, tale_plural(requests), requests == 1 ? "s" : "", full);
    else
        tale_say(&tale->tale, "%s listens at %.60s of port space %.20s.", name, place, space);
}

static int tell_listeners_of(struct connection_tale *tale, const struct seen_process *process, bool there, int count)
{
    for (size_t i = 0; i < process->identifier_count; i++) {
        const struct facts_identifier *each = &process->identifiers[i];
        if (!strcmp(facts_text(each->state), "listen") && is_at(each, tale->own) == there && count++ < MOST_LISTENERS)
            tell_listener(tale, process, each);
    }
    return count;
}

/* Those at the port that is asked for, or the others: how many. */
static int tell_listeners(struct connection_tale *tale, bool there)
{
    int count = 0;
    const struct seen *seen = tale->tale.processes;
    for (size_t i = 0; seen && i < seen->count; i++)
        count = tell_listeners_of(tale, &seen->processes[i], there, count);
    return count;
}

static bool tell_nobody_listens(struct connection_tale *tale)
{
    const struct facts_identifier *own = &tale->own->identifier;
    if (!tale->tale.processes || tell_listeners(tale, true))
        return tale->tale.processes;
    tale_say(&tale->tale, "No process of this directory listens at port %.20s of port space %.20s.",
             port_of(facts_text(own->peer)), facts_text(own->space));
    tell_listeners(tale, false);
    return true;
}

/* -- why no answer comes */

static void tell_faults(struct connection_tale *tale)
{
    uint64_t lost = 0;
    const struct seen *seen = tale->tale.processes;
    for (size_t i = 0; seen && i < seen->count; i++)
        lost += seen_part(&seen->processes[i].own.messages, EVENT_FAULT_DROP);
    if (lost)
        tale_say(&tale->tale, "Faults that were asked for lost %" PRIu64 " message%s of the connection manager.", lost,
                 tale_plural(lost));
}

/* A process that is there and says nothing. */
static bool is_stopped(const struct connection_tale *tale, uint64_t pid)
{
    const struct seen_process *process = pid ? tale_process(&tale->tale, pid) : NULL;
    return process && !facts_is(&process->own.answers);
}

static void tell_program(struct connection_tale *tale, const struct connection_end *end)
{
    char name[TALE_NAME];
    const json_t *request = event_of(end, EVENT_CM_EVENT, "CONNECT_REQUEST");
    const char *state = facts_text(end->identifier.state);
    name_of(end, name);
    if (end->identifier.events.value)
        tale_say(&tale->tale, "%s has not fetched the event of it (rdma_get_cm_event): %" PRIu64 " wait%s.", name,
                 end->identifier.events.value, end->identifier.events.value == 1 ? "s" : "");
    else if (!strcmp(state, "REQ rcvd") || (request && strstr(state, "rcvd")))
        tale_say(&tale->tale,
                 "%s has fetched RDMA_CM_EVENT_CONNECT_REQUEST and called neither rdma_accept nor rdma_reject for "
                 "%" PRIu64 " second%s.",
                 name, end->identifier.seconds.value, tale_plural(end->identifier.seconds.value));
    else if (!strcmp(state, "REP rcvd"))
        tale_say(&tale->tale, "%s has fetched RDMA_CM_EVENT_CONNECT_RESPONSE and not called rdma_establish.", name);
}

static void tell_silence(struct connection_tale *tale, const char *message)
{
    char name[TALE_NAME];
    uint64_t times = (uint64_t)times_sent(tale->own, message);
    uint64_t pid = tale->own->identifier.peer_pid.value;
    tale_say(&tale->tale, "%s sent %s %" PRIu64 " time%s, and no answer came.", name_of(tale->own, name), message,
             times, tale_plural(times));
    if (is_stopped(tale, pid))
        tale_say(&tale->tale, "Process %d does not answer: it is stopped (SIGSTOP, a debugger), or ends.", (int)pid);
    else if (tale->peer)
        tell_program(tale, tale->peer);
    else if (tale->tale.processes && !tell_listeners(tale, true))
        tale_say(&tale->tale, "No process of this directory listens there: it is another host's, or has ended.");
    tell_faults(tale);
}

static bool is_resolution(const struct connection_end *end)
{
    return event_of(end, EVENT_CM_SENT, "SIDR_REQ");
}

/* The message that it waits for an answer to. */
static const char *asked_with(const struct connection_end *end)
{
    if (is_resolution(end))
        return "SIDR_REQ";
    return event_of(end, EVENT_CM_SENT, "REQ") ? "REQ" : "REP";
}

static bool tell_no_answer(struct connection_tale *tale)
{
    tell_silence(tale, asked_with(tale->own));
    return true;
}

static bool tell_no_goodbye(struct connection_tale *tale)
{
    tell_silence(tale, "DREQ");
    return true;
}

/* -- bad news */

/* Why the other end rejected the request, by what it has left or reports. */
static bool tell_refusal(struct connection_tale *tale)
{
    char name[TALE_NAME];
    if (!tale->peer)
        return false;
    bool has_ended = facts_is(&tale->peer->end.ended);
    name_of(tale->peer, name);
    if (event_of(tale->peer, EVENT_CM_SENT, "REJ") || event_of(tale->peer, EVENT_CM_SENT, "SIDR_REP"))
        tale_say(&tale->tale, "%s rejected it: its program called rdma_reject, or its call of rdma_accept was refused.",
                 name);
    else if (event_of(tale->peer, EVENT_CM_ABANDONED, NULL))
        tale_say(&tale->tale, "%s destroyed the identifier of the request without answering it (rdma_destroy_id).",
                 name);
    else if (is_state(tale->peer, "REQ rcvd") && has_ended)
        tale_say(&tale->tale, "%s ended before it had answered%s.", name,
                 event_of(tale->peer, EVENT_CM_EVENT_FETCHED, "CONNECT_REQUEST")
                     ? ""
                     : ": it never fetched RDMA_CM_EVENT_CONNECT_REQUEST (rdma_get_cm_event)");
    else
        return false;
    return true;
}

static bool tell_rejection(struct connection_tale *tale)
{
    uint64_t pid = tale->own->identifier.peer_pid.value;
    bool rejected = event_of(tale->own, EVENT_CM_ARRIVED, "REJ") || event_of(tale->own, EVENT_CM_ARRIVED, "SIDR_REP");
    if (!rejected && event_of(tale->own, EVENT_PARTNER_ENDED, NULL)) {
        tale_say(&tale->tale, "The process of the other end ended before it had answered.");
        return true;
    }
    if (tell_refusal(tale))
        return true;
    if (rejected && pid)
        tale_say(
            &tale->tale,
            "Process %d rejected it: by rdma_reject, by rdma_destroy_id before rdma_accept, by a call of rdma_accept "
            "that "
            "was refused, or as it ended.",
            (int)pid);
    return (rejected && pid) || tell_listeners(tale, true);
}

static const struct {
    enum reason reason;
    bool (*tell)(struct connection_tale *); /* false: the cause is not known */
} causes[] = {
    {REASON_CM_NOBODY_LISTENS, tell_nobody_listens},
    {REASON_CM_REJECTED, tell_rejection},
    {REASON_CM_REFUSED, tell_rejection},
    {REASON_CM_UNANSWERED, tell_no_answer},
    {REASON_CM_DREQ_UNANSWERED, tell_no_goodbye},
};

static bool tell_cause(struct connection_tale *tale, unsigned reason)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if ((unsigned)causes[i].reason == reason)
            return causes[i].tell(tale);
    return false;
}

static void tell_bad_news(struct connection_tale *tale, const json_t *news)
{
    char name[TALE_NAME];
    unsigned reason = (unsigned)record_number(news, EVENT_FIELD_REASON);
    const char *sentence = reason_sentence(reason);
    tale_say(&tale->tale, "%s got RDMA_CM_EVENT_%.40s, status %d (reason %u).", name_of(tale->own, name),
             record_text(news, EVENT_FIELD_HEARD), (int)record_number(news, EVENT_FIELD_STATUS), reason);
    if (!tell_cause(tale, reason))
        tale_say(&tale->tale, "%s", sentence ? sentence : "The reason is unknown.");
    tale_say(&tale->tale, "\"softverbs explain %u\" has causes and cures.", reason);
}

/* -- no bad news: what is waited for, by its state */

static void tell_waiting(struct connection_tale *tale)
{
    tell_silence(tale, asked_with(tale->own));
}

static void tell_own_program(struct connection_tale *tale)
{
    tell_program(tale, tale->own);
}

static void tell_end(struct connection_tale *tale)
{
    char name[TALE_NAME];
    name_of(tale->own, name);
    if (event_of(tale->own, EVENT_PARTNER_ENDED, NULL))
        tale_say(&tale->tale, "The process of the other end has ended without a word: it was killed, or called _exit.");
    else if (event_of(tale->own, EVENT_CM_SENT, "DREQ"))
        tale_say(&tale->tale, "%s itself ended the connection (rdma_disconnect).", name);
    else if (event_of(tale->own, EVENT_CM_ARRIVED, "DREQ"))
        tale_say(&tale->tale,
                 "The other end ended the connection (rdma_disconnect, rdma_destroy_id, or its program ended)%s.",
                 is_state(tale->own, "DREQ rcvd") ? ", and is not answered before this one calls rdma_disconnect, too"
                                                  : "");
    else if (event_of(tale->own, EVENT_CM_SENT, "REJ"))
        tale_say(&tale->tale, "%s itself rejected it (rdma_reject).", name);
}

static void tell_established(struct connection_tale *tale)
{
    uint64_t seconds = tale->own->identifier.seconds.value;
    tale_say(&tale->tale, "It is connected for %" PRIu64 " second%s, with queue pair 0x%" PRIx64 ".", seconds,
             tale_plural(seconds), tale->own->identifier.peer_qp.value);
}

static void tell_listening(struct connection_tale *tale)
{
    const struct facts_identifier *own = &tale->own->identifier;
    const json_t *dropped = event_of(tale->own, EVENT_CM_DROPPED, NULL);
    uint64_t requests = own->requests.value, times = (uint64_t)record_number(dropped, EVENT_FIELD_TIMES);
    tale_say(&tale->tale,
             "It listens, with a backlog of %" PRIu64 ", and %" PRIu64
             " request%s wait%s to be fetched (rdma_get_cm_event).",
             own->backlog.value, requests, tale_plural(requests), requests == 1 ? "s" : "");
    if (dropped)
        tale_say(&tale->tale, "%" PRIu64 " request%s came while the backlog was full, and %s dropped (reason %u).",
                 times, tale_plural(times), times == 1 ? "was" : "were",
                 (unsigned)record_number(dropped, EVENT_FIELD_REASON));
}

/* The next call of the program. */
static void tell_next(struct connection_tale *tale)
{
    static const struct {
        const char *state, *next;
    } steps[] = {
        {"idle", "rdma_resolve_addr, or rdma_bind_addr"},
        {"bound", "rdma_resolve_addr, or rdma_listen"},
        {"address query", "the way to the destination, which the network is asked for"},
        {"address resolved", "rdma_resolve_route"},
        {"route resolved", "rdma_connect"},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (is_state(tale->own, steps[i].state))
            tale_say(&tale->tale, "No connection is being made: next comes %s.", steps[i].next);
}

static const struct {
    const char *state;
    void (*tell)(struct connection_tale *);
} waits[] = {
    {"REQ sent", tell_waiting},     {"REP sent", tell_waiting}, {"REQ rcvd", tell_own_program},
    {"REP rcvd", tell_own_program}, {"DREQ sent", tell_end},    {"DREQ rcvd", tell_end},
    {"timewait", tell_end},         {"disconnect", tell_end},   {"established", tell_established},
    {"listen", tell_listening},
};

static void tell_state(struct connection_tale *tale)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (is_state(tale->own, waits[i].state)) {
            waits[i].tell(tale);
            return;
        }
    if (tale->own->record.communication_id.known)
        tell_end(tale);
    else if (is_resolution(tale->own) && !event_of(tale->own, EVENT_CM_ARRIVED, "SIDR_REP"))
        tell_waiting(tale);
    else
        tell_next(tale);
}

/* -- the whole */

static void tell_ends(struct connection_tale *tale)
{
    char name[TALE_NAME], from[PLACE] = "", to[PLACE] = "", qp[PLACE] = "";
    const struct facts_identifier *own = &tale->own->identifier;
    if (*facts_text(own->local))
        snprintf(from, sizeof from, ", at %.60s", facts_text(own->local));
    if (*facts_text(own->peer))
        snprintf(to, sizeof to, " to %.60s", facts_text(own->peer));
    if (own->qp.value)
        snprintf(qp, sizeof qp, ", with queue pair 0x%" PRIx64, own->qp.value);
    tale_say(&tale->tale, "Identifier %" PRIu64 " of %s%s%s of port space %.20s%s, is in state %.40s.", own->id.value,
             name_of(tale->own, name), from, to, facts_text(own->space), qp, facts_text(own->state));
    if (tale->peer)
        tale_say(&tale->tale, "Its other end is identifier %" PRIu64 " of %s, in state %.40s.",
                 tale->peer->identifier.id.value, name_of(tale->peer, name), facts_text(tale->peer->identifier.state));
}

/* The words for the fields of an event; the rest is its meaning in events.def. */
static const struct {
    enum event event;
    const char *before;
    enum event_field field;
    const char *behind;
} lines[] = {
    {EVENT_CM_SENT, "sent ", EVENT_FIELD_MESSAGE_NAME, ""},
    {EVENT_CM_ARRIVED, "got ", EVENT_FIELD_MESSAGE_NAME, ""},
    {EVENT_CM_EVENT, "RDMA_CM_EVENT_", EVENT_FIELD_HEARD, " was raised"},
    {EVENT_CM_EVENT_FETCHED, "the program fetched RDMA_CM_EVENT_", EVENT_FIELD_HEARD, " (rdma_get_cm_event)"},
    {EVENT_CONNECTION_STATE, "the connection is in state ", EVENT_FIELD_BECAME, ""},
};

/* "12:01:02.345 sent REQ 3 times" */
static void tell_event(struct connection_tale *tale, const json_t *event)
{
    char when[TALE_NAME], more[TALE_NAME] = "";
    uint64_t times = (uint64_t)record_number(event, EVENT_FIELD_TIMES),
             rejection = (uint64_t)record_number(event, EVENT_FIELD_REJECTION);
    size_t i = 0;
    while (i < sizeof lines / sizeof *lines && !record_is(event, lines[i].event))
        i++;
    if (i == sizeof lines / sizeof *lines) {
        happened_tell(tale->tale.list, event);
        return;
    }
    if (rejection)
        snprintf(more, sizeof more, ", reason %" PRIu64, rejection);
    else if (times > 1)
        snprintf(more, sizeof more, ", %" PRIu64 " times", times);
    else if (record_number(event, EVENT_FIELD_STATUS))
        snprintf(more, sizeof more, ", status %" JSON_INTEGER_FORMAT, record_number(event, EVENT_FIELD_STATUS));
    happened_time(record_time(event), when, sizeof when);
    tale_say(&tale->tale, "%s%s%.60s%s%s.", when, lines[i].before, record_text(event, lines[i].field), lines[i].behind,
             more);
}

static void tell_events(struct connection_tale *tale, const struct connection_end *end)
{
    char name[TALE_NAME];
    size_t i;
    json_t *event;
    if (!end)
        return;
    tale_say(&tale->tale, "What happened at %s:", name_of(end, name));
    json_array_foreach(facts_json(&end->record.events), i, event) tell_event(tale, event);
}

static void tell(struct connection_tale *tale)
{
    const struct connection_end *own = tale->own;
    const json_t *news = bad_news(own);
    uint64_t waiting = own->identifier.events.value;
    tell_ends(tale);
    if (news)
        tell_bad_news(tale, news);
    else
        tell_state(tale);
    if (waiting && !is_state(own, "REQ rcvd") && !is_state(own, "REP rcvd"))
        tale_say(&tale->tale, "%" PRIu64 " event%s of it wait%s that rdma_get_cm_event has not fetched.", waiting,
                 tale_plural(waiting), waiting == 1 ? "s" : "");
    tell_events(tale, own);
    tell_events(tale, tale->peer);
}

json_t *connection_sentences(const json_t *own, const json_t *peer, const json_t *processes)
{
    struct connection_end here, there;
    struct seen seen = seen_begin(processes);
    struct connection_tale tale = {.tale = {.processes = processes ? &seen : NULL, .list = json_array()},
                                   .own = &here,
                                   .peer = peer ? &there : NULL};
    read_end(&here, own);
    read_end(&there, peer);
    tell(&tale);
    seen_end(&seen);
    return tale.tale.list;
}
