#include "why/connection_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "diag/clean.h"
#include "diag/diag.h"
#include "print/emit.h"
#include "why/happened.h"
#include "why/tale.h"

enum { PLACE = 96, MOST_LISTENERS = 3 };

static const json_t *identifier_of(const json_t *end)
{
    return json_object_get(json_object_get(end, "id"), "identifier");
}

static bool is_state(const json_t *end, const char *state)
{
    return !strcmp(tale_text(identifier_of(end), "state"), state);
}

/* -- its events */

/* The last one of this name, and of this message or type; NULL: any. */
static const json_t *event_of(const json_t *end, const char *name, const char *which)
{
    const json_t *events = json_object_get(json_object_get(end, "id"), "events");
    for (size_t i = json_array_size(events); i--;) {
        const json_t *event = json_array_get(events, i);
        if (!strcmp(tale_text(event, "event"), name) &&
            (!which || !strcmp(tale_text(event, "message"), which) || !strcmp(tale_text(event, "cm_event"), which)))
            return event;
    }
    return NULL;
}

/* The last that was no good news. */
static const json_t *bad_news(const json_t *end)
{
    const json_t *events = json_object_get(json_object_get(end, "id"), "events");
    for (size_t i = json_array_size(events); i--;) {
        const json_t *event = json_array_get(events, i);
        if (!strcmp(tale_text(event, "event"), "CM_EVENT") && tale_number(event, "reason"))
            return event;
    }
    return NULL;
}

unsigned connection_reason(const json_t *end)
{
    return (unsigned)tale_number(bad_news(end), "reason");
}

/* How often this message was sent; 0: never, or it is no more among the events. */
static json_int_t times_sent(const json_t *end, const char *message)
{
    return tale_number(event_of(end, "CM_SENT", message), "times");
}

/* -- the listeners */

/* The port of "10.0.0.1:7174". */
static const char *port_of(const char *place)
{
    const char *colon = strrchr(place, ':');
    return colon ? colon + 1 : "";
}

static bool is_at(const json_t *listener, const json_t *own)
{
    return !strcmp(port_of(tale_text(listener, "local")), port_of(tale_text(identifier_of(own), "peer"))) &&
           !strcmp(tale_text(listener, "space"), tale_text(identifier_of(own), "space"));
}

static void tell_listener(struct tale *tale, const json_t *process, const json_t *listener)
{
    char name[TALE_NAME];
    json_int_t requests = tale_number(listener, "requests"), backlog = tale_number(listener, "backlog");
    const char *full =
        requests && requests >= backlog ? ": as many as its backlog, so that further ones are dropped" : "";
    if (requests)
        tale_say(tale,
                 "%s listens at %.60s of port space %.20s, and %" JSON_INTEGER_FORMAT
                 " request%s wait%s that rdma_get_cm_event has not fetched%s.",
                 tale_name(process, name), tale_text(listener, "local"), tale_text(listener, "space"), requests,
                 tale_plural(requests), requests == 1 ? "s" : "", full);
    else
        tale_say(tale, "%s listens at %.60s of port space %.20s.", tale_name(process, name),
                 tale_text(listener, "local"), tale_text(listener, "space"));
}

/* Those at the port that is asked for, or the others: how many. */
static int tell_listeners(struct tale *tale, bool there)
{
    size_t i, k;
    int count = 0;
    json_t *process, *each;
    json_array_foreach((json_t *)tale->processes, i, process)
        json_array_foreach(json_object_get(process, "connections"), k,
                           each) if (!strcmp(tale_text(each, "state"), "listen") && is_at(each, tale->own) == there &&
                                     count++ < MOST_LISTENERS) tell_listener(tale, process, each);
    return count;
}

static bool tell_nobody_listens(struct tale *tale)
{
    const json_t *own = identifier_of(tale->own);
    if (!tale->processes || tell_listeners(tale, true))
        return tale->processes;
    tale_say(tale, "No process of this directory listens at port %.20s of port space %.20s.",
             port_of(tale_text(own, "peer")), tale_text(own, "space"));
    tell_listeners(tale, false);
    return true;
}

/* -- why no answer comes */

static void tell_faults(struct tale *tale)
{
    json_int_t lost = 0;
    size_t i;
    json_t *process;
    json_array_foreach((json_t *)tale->processes, i, process) lost +=
        tale_number(json_object_get(json_object_get(process, "messages"), "fault_kinds"), "drop");
    if (lost)
        tale_say(tale, "Faults that were asked for lost %" JSON_INTEGER_FORMAT " message%s of the connection manager.",
                 lost, tale_plural(lost));
}

/* A process that is there and says nothing. */
static bool is_stopped(const struct tale *tale, json_int_t pid)
{
    const json_t *process = pid ? tale_process(tale, pid) : NULL;
    return process && !json_is_true(json_object_get(process, "answers"));
}

static void tell_program(struct tale *tale, const json_t *end)
{
    char name[TALE_NAME];
    const json_t *request = event_of(end, "CM_EVENT", "CONNECT_REQUEST");
    const char *state = tale_text(identifier_of(end), "state");
    tale_name(end, name);
    if (tale_number(identifier_of(end), "events"))
        tale_say(tale, "%s has not fetched the event of it (rdma_get_cm_event): %" JSON_INTEGER_FORMAT " wait%s.", name,
                 tale_number(identifier_of(end), "events"), tale_number(identifier_of(end), "events") == 1 ? "s" : "");
    else if (!strcmp(state, "REQ rcvd") || (request && strstr(state, "rcvd")))
        tale_say(tale,
                 "%s has fetched RDMA_CM_EVENT_CONNECT_REQUEST and called neither rdma_accept nor rdma_reject for "
                 "%" JSON_INTEGER_FORMAT " second%s.",
                 name, tale_number(identifier_of(end), "seconds"),
                 tale_plural(tale_number(identifier_of(end), "seconds")));
    else if (!strcmp(state, "REP rcvd"))
        tale_say(tale, "%s has fetched RDMA_CM_EVENT_CONNECT_RESPONSE and not called rdma_establish.", name);
}

static void tell_silence(struct tale *tale, const char *message)
{
    char name[TALE_NAME];
    json_int_t times = times_sent(tale->own, message);
    json_int_t pid = tale_number(identifier_of(tale->own), "peer_pid");
    tale_say(tale, "%s sent %s %" JSON_INTEGER_FORMAT " time%s, and no answer came.", tale_name(tale->own, name),
             message, times, tale_plural(times));
    if (is_stopped(tale, pid))
        tale_say(tale, "Process %d does not answer: it is stopped (SIGSTOP, a debugger), or ends.", (int)pid);
    else if (tale->peer)
        tell_program(tale, tale->peer);
    else if (tale->processes && !tell_listeners(tale, true))
        tale_say(tale, "No process of this directory listens there: it is another host's, or has ended.");
    tell_faults(tale);
}

static bool is_resolution(const json_t *end)
{
    return event_of(end, "CM_SENT", "SIDR_REQ");
}

/* The message that it waits for an answer to. */
static const char *asked_with(const json_t *end)
{
    if (is_resolution(end))
        return "SIDR_REQ";
    return event_of(end, "CM_SENT", "REQ") ? "REQ" : "REP";
}

static bool tell_no_answer(struct tale *tale)
{
    tell_silence(tale, asked_with(tale->own));
    return true;
}

static bool tell_no_goodbye(struct tale *tale)
{
    tell_silence(tale, "DREQ");
    return true;
}

/* -- bad news */

/* Why the other end rejected the request, by what it has left or reports. */
static bool tell_refusal(struct tale *tale)
{
    char name[TALE_NAME];
    bool has_ended = json_is_true(json_object_get(tale->peer, "ended"));
    if (!tale->peer)
        return false;
    tale_name(tale->peer, name);
    if (event_of(tale->peer, "CM_SENT", "REJ") || event_of(tale->peer, "CM_SENT", "SIDR_REP"))
        tale_say(tale, "%s rejected it: its program called rdma_reject, or its call of rdma_accept was refused.", name);
    else if (event_of(tale->peer, "CM_ABANDONED", NULL))
        tale_say(tale, "%s destroyed the identifier of the request without answering it (rdma_destroy_id).", name);
    else if (is_state(tale->peer, "REQ rcvd") && has_ended)
        tale_say(tale, "%s ended before it had answered%s.", name,
                 event_of(tale->peer, "CM_EVENT_FETCHED", "CONNECT_REQUEST")
                     ? ""
                     : ": it never fetched RDMA_CM_EVENT_CONNECT_REQUEST (rdma_get_cm_event)");
    else
        return false;
    return true;
}

static bool tell_rejection(struct tale *tale)
{
    json_int_t pid = tale_number(identifier_of(tale->own), "peer_pid");
    bool rejected = event_of(tale->own, "CM_ARRIVED", "REJ") || event_of(tale->own, "CM_ARRIVED", "SIDR_REP");
    if (!rejected && event_of(tale->own, "PARTNER_ENDED", NULL)) {
        tale_say(tale, "The process of the other end ended before it had answered.");
        return true;
    }
    if (tell_refusal(tale))
        return true;
    if (rejected && pid)
        tale_say(
            tale,
            "Process %d rejected it: by rdma_reject, by rdma_destroy_id before rdma_accept, by a call of rdma_accept "
            "that "
            "was refused, or as it ended.",
            (int)pid);
    return (rejected && pid) || tell_listeners(tale, true);
}

static const struct {
    enum reason reason;
    bool (*tell)(struct tale *); /* false: the cause is not known */
} causes[] = {
    {REASON_CM_NOBODY_LISTENS, tell_nobody_listens},
    {REASON_CM_REJECTED, tell_rejection},
    {REASON_CM_REFUSED, tell_rejection},
    {REASON_CM_UNANSWERED, tell_no_answer},
    {REASON_CM_DREQ_UNANSWERED, tell_no_goodbye},
};

static bool tell_cause(struct tale *tale, unsigned reason)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if ((unsigned)causes[i].reason == reason)
            return causes[i].tell(tale);
    return false;
}

static void tell_bad_news(struct tale *tale, const json_t *news)
{
    char name[TALE_NAME];
    unsigned reason = (unsigned)tale_number(news, "reason");
    const char *sentence = reason_sentence(reason);
    tale_say(tale, "%s got RDMA_CM_EVENT_%.40s, status %d (reason %u).", tale_name(tale->own, name),
             tale_text(news, "cm_event"), (int)tale_number(news, "status"), reason);
    if (!tell_cause(tale, reason))
        tale_say(tale, "%s", sentence ? sentence : "The reason is unknown.");
    tale_say(tale, "\"softverbs explain %u\" has causes and cures.", reason);
}

/* -- no bad news: what is waited for, by its state */

static void tell_waiting(struct tale *tale)
{
    tell_silence(tale, asked_with(tale->own));
}

static void tell_own_program(struct tale *tale)
{
    tell_program(tale, tale->own);
}

static void tell_end(struct tale *tale)
{
    char name[TALE_NAME];
    tale_name(tale->own, name);
    if (event_of(tale->own, "PARTNER_ENDED", NULL))
        tale_say(tale, "The process of the other end has ended without a word: it was killed, or called _exit.");
    else if (event_of(tale->own, "CM_SENT", "DREQ"))
        tale_say(tale, "%s itself ended the connection (rdma_disconnect).", name);
    else if (event_of(tale->own, "CM_ARRIVED", "DREQ"))
        tale_say(tale, "The other end ended the connection (rdma_disconnect, rdma_destroy_id, or its program ended)%s.",
                 is_state(tale->own, "DREQ rcvd") ? ", and is not answered before this one calls rdma_disconnect, too"
                                                  : "");
    else if (event_of(tale->own, "CM_SENT", "REJ"))
        tale_say(tale, "%s itself rejected it (rdma_reject).", name);
}

static void tell_established(struct tale *tale)
{
    json_int_t seconds = tale_number(identifier_of(tale->own), "seconds");
    tale_say(tale, "It is connected for %" JSON_INTEGER_FORMAT " second%s, with queue pair 0x%" PRIx64 ".", seconds,
             tale_plural(seconds), (uint64_t)tale_number(identifier_of(tale->own), "peer_qp"));
}

static void tell_listening(struct tale *tale)
{
    const json_t *own = identifier_of(tale->own), *dropped = event_of(tale->own, "CM_DROPPED", NULL);
    json_int_t requests = tale_number(own, "requests"), times = tale_number(dropped, "times");
    tale_say(tale,
             "It listens, with a backlog of %" JSON_INTEGER_FORMAT ", and %" JSON_INTEGER_FORMAT
             " request%s wait%s to be fetched (rdma_get_cm_event).",
             tale_number(own, "backlog"), requests, tale_plural(requests), requests == 1 ? "s" : "");
    if (dropped)
        tale_say(tale,
                 "%" JSON_INTEGER_FORMAT " request%s came while the backlog was full, and %s dropped (reason %u).",
                 times, tale_plural(times), times == 1 ? "was" : "were", (unsigned)tale_number(dropped, "reason"));
}

/* The next call of the program. */
static void tell_next(struct tale *tale)
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
            tale_say(tale, "No connection is being made: next comes %s.", steps[i].next);
}

static const struct {
    const char *state;
    void (*tell)(struct tale *);
} waits[] = {
    {"REQ sent", tell_waiting},     {"REP sent", tell_waiting}, {"REQ rcvd", tell_own_program},
    {"REP rcvd", tell_own_program}, {"DREQ sent", tell_end},    {"DREQ rcvd", tell_end},
    {"timewait", tell_end},         {"disconnect", tell_end},   {"established", tell_established},
    {"listen", tell_listening},
};

static void tell_state(struct tale *tale)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (is_state(tale->own, waits[i].state)) {
            waits[i].tell(tale);
            return;
        }
    if (json_object_get(json_object_get(tale->own, "id"), "communication_id"))
        tell_end(tale);
    else if (is_resolution(tale->own) && !event_of(tale->own, "CM_ARRIVED", "SIDR_REP"))
        tell_waiting(tale);
    else
        tell_next(tale);
}

/* -- the whole */

static void tell_ends(struct tale *tale)
{
    char name[TALE_NAME], from[PLACE] = "", to[PLACE] = "", qp[PLACE] = "";
    const json_t *own = identifier_of(tale->own);
    if (*tale_text(own, "local"))
        snprintf(from, sizeof from, ", at %.60s", tale_text(own, "local"));
    if (*tale_text(own, "peer"))
        snprintf(to, sizeof to, " to %.60s", tale_text(own, "peer"));
    if (tale_number(own, "qp"))
        snprintf(qp, sizeof qp, ", with queue pair 0x%" PRIx64, (uint64_t)tale_number(own, "qp"));
    tale_say(tale, "Identifier %" JSON_INTEGER_FORMAT " of %s%s%s of port space %.20s%s, is in state %.40s.",
             tale_number(own, "id"), tale_name(tale->own, name), from, to, tale_text(own, "space"), qp,
             tale_text(own, "state"));
    if (tale->peer)
        tale_say(tale, "Its other end is identifier %" JSON_INTEGER_FORMAT " of %s, in state %.40s.",
                 tale_number(identifier_of(tale->peer), "id"), tale_name(tale->peer, name),
                 tale_text(identifier_of(tale->peer), "state"));
}

/* The words for the fields of an event; the rest is its meaning in events.def. */
static const struct {
    const char *event, *before, *field, *behind;
} lines[] = {
    {"CM_SENT", "sent ", "message", ""},
    {"CM_ARRIVED", "got ", "message", ""},
    {"CM_EVENT", "RDMA_CM_EVENT_", "cm_event", " was raised"},
    {"CM_EVENT_FETCHED", "the program fetched RDMA_CM_EVENT_", "cm_event", " (rdma_get_cm_event)"},
    {"CONNECTION_STATE", "the connection is in state ", "now", ""},
};

/* "12:01:02.345 sent REQ 3 times" */
static void tell_event(struct tale *tale, const json_t *event)
{
    char when[TALE_NAME], more[TALE_NAME] = "";
    json_int_t times = tale_number(event, "times"), rejection = tale_number(event, "rej_reason");
    size_t i = 0;
    while (i < sizeof lines / sizeof *lines && strcmp(lines[i].event, tale_text(event, "event")) != 0)
        i++;
    if (i == sizeof lines / sizeof *lines) {
        happened_tell(tale->list, event);
        return;
    }
    if (rejection)
        snprintf(more, sizeof more, ", reason %" JSON_INTEGER_FORMAT, rejection);
    else if (times > 1)
        snprintf(more, sizeof more, ", %" JSON_INTEGER_FORMAT " times", times);
    else if (tale_number(event, "status"))
        snprintf(more, sizeof more, ", status %" JSON_INTEGER_FORMAT, tale_number(event, "status"));
    happened_time(tale_number(event, "time"), when, sizeof when);
    tale_say(tale, "%s%s%.60s%s%s.", when, lines[i].before, tale_text(event, lines[i].field), lines[i].behind, more);
}

static void tell_events(struct tale *tale, const json_t *end)
{
    char name[TALE_NAME];
    size_t i;
    json_t *event;
    if (!end)
        return;
    tale_say(tale, "What happened at %s:", tale_name(end, name));
    json_array_foreach(json_object_get(json_object_get(end, "id"), "events"), i, event) tell_event(tale, event);
}

json_t *connection_sentences(const json_t *own, const json_t *peer, const json_t *processes)
{
    struct tale tale = {.own = own, .peer = peer, .processes = processes, .list = json_array()};
    const json_t *news = bad_news(own);
    json_int_t waiting = tale_number(identifier_of(own), "events");
    tell_ends(&tale);
    if (news)
        tell_bad_news(&tale, news);
    else
        tell_state(&tale);
    if (waiting && !is_state(own, "REQ rcvd") && !is_state(own, "REP rcvd"))
        tale_say(&tale, "%" JSON_INTEGER_FORMAT " event%s of it wait%s that rdma_get_cm_event has not fetched.",
                 waiting, tale_plural(waiting), waiting == 1 ? "s" : "");
    tell_events(&tale, own);
    tell_events(&tale, peer);
    return tale.list;
}
