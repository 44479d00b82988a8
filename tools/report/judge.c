#include "judge.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lost_event.h"

enum { SENTENCE = 320 };

/* A queue pair and what belongs to it. */
struct view {
    const json_t *processes; /* all of them now */
    const json_t *process;
    const json_t *qp, *before; /* now, and in the first look; NULL: it was not there */
    const json_t *peer;        /* on this host; NULL: not known */
    const json_t *peer_process;
};

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const json_t *find(const json_t *list, const char *key, json_int_t number)
{
    size_t i;
    json_t *each;
    json_array_foreach(list, i, each) if (number_of(each, key) == number) return each;
    return NULL;
}

static bool is_in(const json_t *qp, const char *states)
{
    const char *state = text_of(qp, "state");
    return *state && strstr(states, state);
}

/* Nothing of it came or went between the looks. */
static bool is_still(const struct view *view)
{
    return view->before && json_equal(json_object_get(view->qp, "traffic"), json_object_get(view->before, "traffic"));
}

static const json_t *cq_of(const struct view *view, const char *which)
{
    return find(json_object_get(view->process, "cqs"), "handle", number_of(view->qp, which));
}

static const json_t *srq_of(const json_t *process, const json_t *qp)
{
    const json_t *handle = json_object_get(qp, "srq");
    return handle ? find(json_object_get(process, "srqs"), "handle", json_integer_value(handle)) : NULL;
}

static bool is_empty(const json_t *srq)
{
    return srq && !number_of(srq, "posted");
}

static bool is_down(const json_t *process, const json_t *qp)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(process, "down"), i,
                       name) if (json_is_string(name) &&
                                 !strcmp(json_string_value(name), text_of(qp, "device"))) return true;
    return false;
}

/* -- rules of queue pairs: each writes its sentence, or returns false */

static bool is_locked(const struct view *view, char *say)
{
    snprintf(say, SENTENCE,
             "a thread is within a call of it, or a batch is open (ibv_wr_start without ibv_wr_complete)");
    return json_is_true(json_object_get(view->qp, "busy"));
}

static bool is_not_connected(const struct view *view, char *say)
{
    snprintf(say, SENTENCE, "is in %s: ibv_modify_qp to RTR, and to RTS for sending, is missing",
             text_of(view->qp, "state"));
    return is_in(view->qp, "RESET INIT");
}

static bool has_failed(const struct view *view, char *say)
{
    json_int_t error = number_of(view->qp, "first_error");
    const char *told = json_object_get(view->qp, "first_error_told") ? text_of(view->qp, "first_error_told") : "";
    if (error)
        snprintf(say, SENTENCE, "is in %s since its first error, %s%s%s: softverbs explain %" JSON_INTEGER_FORMAT,
                 text_of(view->qp, "state"), text_of(view->qp, "first_error_name"), *told ? ": " : "", told, error);
    else
        snprintf(say, SENTENCE, "is in %s: the program moved it there, or its peer ended", text_of(view->qp, "state"));
    return is_in(view->qp, "ERR SQE");
}

static bool is_on_this_host(const struct view *view)
{
    return json_object_get(view->qp, "peer_pid") || view->peer;
}

static bool has_no_peer(const struct view *view, char *say)
{
    json_int_t number = number_of(view->qp, "peer_qp");
    snprintf(say, SENTENCE, "is connected with queue pair 0x%" PRIx64 ", which no process of this directory has%s",
             (uint64_t)number,
             number >> 24 ? ": more than 24 bits, so it was not brought into the host's byte order" : "");
    return !strcmp(text_of(view->qp, "type"), "RC") && json_object_get(view->qp, "peer_qp") && !is_on_this_host(view) &&
           !json_is_true(json_object_get(view->qp, "network"));
}

/* One on another host is in no report here. */
static bool has_silent_peer(const struct view *view, char *say)
{
    const json_t *traffic = json_object_get(view->qp, "traffic");
    snprintf(say, SENTENCE,
             "sends to queue pair 0x%" PRIx64 " on another host, which has not answered; %" JSON_INTEGER_FORMAT
             " times the ACK timer ran out: softverbs ping, and softverbs show qps there",
             (uint64_t)number_of(view->qp, "peer_qp"), number_of(traffic, "timeouts"));
    return json_is_true(json_object_get(view->qp, "network")) && number_of(view->qp, "send_posted") &&
           !json_object_size(json_object_get(traffic, "received"));
}

static bool has_deaf_peer(const struct view *view, char *say)
{
    if (!view->peer)
        return false;
    snprintf(say, SENTENCE, "sends to queue pair 0x%" PRIx64 " of process %d (%s), which is in %s and takes nothing",
             (uint64_t)number_of(view->peer, "number"), (int)number_of(view->peer_process, "pid"),
             text_of(view->peer_process, "program"), text_of(view->peer, "state"));
    return number_of(view->qp, "send_posted") && is_in(view->peer, "RESET INIT ERR");
}

static bool has_no_port(const struct view *view, char *say)
{
    const char *device = text_of(view->qp, "device");
    snprintf(say, SENTENCE,
             "is on a port that is down: softverbs event port-up %s, or the network interface below it (ip link show)",
             device);
    return is_down(view->process, view->qp) && is_in(view->qp, "RTR RTS SQD");
}

static bool waits_for_receives(const struct view *view, char *say)
{
    const json_t *srq = view->peer ? srq_of(view->peer_process, view->peer) : NULL;
    json_int_t naks = number_of(json_object_get(view->qp, "traffic"), "rnrs_received");
    int length = is_empty(srq) ? snprintf(say, SENTENCE,
                                          "sends, and its peer's shared receive queue with handle %" JSON_INTEGER_FORMAT
                                          " is empty (ibv_post_srq_recv)",
                                          number_of(srq, "handle"))
                               : snprintf(say, SENTENCE, "sends, and its peer has no receive posted (ibv_post_recv)");
    snprintf(say + length, SENTENCE - (size_t)length,
             ": it answered %" JSON_INTEGER_FORMAT " times that it is not ready", naks);
    return naks && number_of(view->qp, "send_posted");
}

static bool refuses_messages(const struct view *view, char *say)
{
    json_int_t naks = number_of(json_object_get(view->qp, "traffic"), "rnrs_sent");
    const json_t *srq = srq_of(view->process, view->qp);
    snprintf(say, SENTENCE,
             "has no receive posted (%s) for a message of its peer, to which it sent %" JSON_INTEGER_FORMAT " RNR NAKs",
             srq ? "ibv_post_srq_recv" : "ibv_post_recv", naks);
    return naks && !number_of(view->qp, "recv_posted") && (!srq || is_empty(srq));
}

static bool has_unpolled_sends(const struct view *view, char *say)
{
    const json_t *cq = cq_of(view, "send_cq");
    snprintf(say, SENTENCE,
             "%" JSON_INTEGER_FORMAT " work requests are done or under way, and %" JSON_INTEGER_FORMAT
             " completions wait in completion queue %" JSON_INTEGER_FORMAT ": it is not polled%s",
             number_of(view->qp, "send_posted"), number_of(cq, "waiting"), number_of(view->qp, "send_cq"),
             number_of(view->qp, "send_posted") >= number_of(view->qp, "send_wr")
                 ? ", and the send queue is full, so that ibv_post_send gives ENOMEM"
                 : "");
    return is_still(view) && number_of(view->qp, "send_posted") && number_of(cq, "waiting");
}

static bool has_unsignalled_sends(const struct view *view, char *say)
{
    snprintf(say, SENTENCE,
             "%" JSON_INTEGER_FORMAT " work requests were sent and nothing is under way: they have no completion, as "
             "they are not signalled (IBV_SEND_SIGNALED)",
             number_of(view->qp, "send_posted"));
    return is_still(view) && number_of(view->qp, "send_posted") && is_in(view->qp, "RTS SQD");
}

static bool waits_for_message(const struct view *view, char *say)
{
    json_int_t posted = number_of(view->qp, "recv_posted");
    snprintf(say, SENTENCE, "has nothing to send; %" JSON_INTEGER_FORMAT " receives wait for a message of the peer",
             posted);
    return is_still(view) && posted;
}

static bool has_no_receive(const struct view *view, char *say)
{
    const json_t *srq = srq_of(view->process, view->qp);
    if (srq)
        snprintf(say, SENTENCE,
                 "has nothing to send, and its shared receive queue with handle %" JSON_INTEGER_FORMAT
                 " is empty (ibv_post_srq_recv)",
                 number_of(srq, "handle"));
    else
        snprintf(say, SENTENCE, "has nothing to send, and no receive is posted");
    return is_still(view) && (!srq || is_empty(srq));
}

static bool (*const rules[])(const struct view *, char *) = {
    is_locked,      is_not_connected,   has_failed,       has_no_port,        has_no_peer,           has_silent_peer,
    has_deaf_peer,  waits_for_receives, refuses_messages, has_unpolled_sends, has_unsignalled_sends, waits_for_message,
    has_no_receive,
};

/* -- its queues */

static void add(json_t *said, const char *what, json_int_t number, const char *sentence)
{
    char line[SENTENCE + 64];
    snprintf(line, sizeof line, "%s 0x%" PRIx64 " %s.", what, (uint64_t)number, sentence);
    json_array_append_new(said, json_string(line));
}

static void find_peer(struct view *view)
{
    size_t i;
    json_t *process;
    json_int_t number = number_of(view->qp, "peer_qp");
    json_array_foreach(view->processes, i, process)
    {
        const json_t *found = number ? find(json_object_get(process, "qps"), "number", number) : NULL;
        if (found) {
            view->peer = found;
            view->peer_process = process;
        }
    }
}

static void judge_qps(const json_t *processes, const json_t *process, const json_t *before, json_t *said)
{
    size_t i;
    json_t *qp;
    char sentence[SENTENCE];
    json_array_foreach(json_object_get(process, "qps"), i, qp)
    {
        json_int_t number = number_of(qp, "number");
        struct view view = {.processes = processes,
                            .process = process,
                            .qp = qp,
                            .before = find(json_object_get(before, "qps"), "number", number)};
        find_peer(&view);
        for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++)
            if (rules[rule](&view, sentence)) {
                add(said, "Queue pair", number, sentence);
                break;
            }
    }
}

static void judge_cqs(const json_t *process, const json_t *before, json_t *said)
{
    size_t i;
    json_t *cq;
    char sentence[SENTENCE];
    json_array_foreach(json_object_get(process, "cqs"), i, cq)
    {
        json_int_t handle = number_of(cq, "handle"), waiting = number_of(cq, "waiting");
        const json_t *old = find(json_object_get(before, "cqs"), "handle", handle);
        if (!waiting || number_of(old, "waiting") != waiting)
            continue;
        snprintf(sentence, sizeof sentence, "has %" JSON_INTEGER_FORMAT " completions that nothing polls, and %s",
                 waiting, lost_event_words(cq));
        add(said, "Completion queue", handle, sentence);
    }
}

/* -- librdmacm: what a program that waits in rdma_get_cm_event can hear of */

static bool is_state(const json_t *connection, const char *state)
{
    return !strcmp(text_of(connection, "state"), state);
}

/* False: there is nothing to say. */
static bool judge_connection(const json_t *now, char *say)
{
    json_int_t seconds = number_of(now, "seconds"), events = number_of(now, "events");
    char peer[40] = "on another host";
    if (json_object_get(now, "peer_pid"))
        snprintf(peer, sizeof peer, "process %d", (int)number_of(now, "peer_pid"));
    if (events)
        snprintf(say, SENTENCE, "has %" JSON_INTEGER_FORMAT " events that rdma_get_cm_event does not fetch", events);
    else if (is_state(now, "REQ rcvd"))
        snprintf(say, SENTENCE,
                 "was asked for a connection by %s %" JSON_INTEGER_FORMAT
                 " seconds ago: neither rdma_accept nor rdma_reject was called",
                 text_of(now, "peer"), seconds);
    else if (is_state(now, "REQ sent") || is_state(now, "REP sent"))
        snprintf(say, SENTENCE, "waits for an answer of %s for %" JSON_INTEGER_FORMAT " seconds", text_of(now, "peer"),
                 seconds);
    else if (is_state(now, "established"))
        snprintf(say, SENTENCE,
                 "is connected with %s (%s) for %" JSON_INTEGER_FORMAT
                 " seconds, and no event waits: RDMA_CM_EVENT_DISCONNECTED comes when one side calls rdma_disconnect",
                 text_of(now, "peer"), peer, seconds);
    else
        return false;
    return true;
}

static void judge_connections(const json_t *process, const json_t *before, json_t *said)
{
    size_t i;
    json_t *connection;
    char sentence[SENTENCE];
    json_array_foreach(json_object_get(process, "connections"), i, connection)
    {
        json_int_t id = number_of(connection, "id");
        const json_t *old = find(json_object_get(before, "connections"), "id", id);
        if (old && is_state(old, text_of(connection, "state")) && judge_connection(connection, sentence))
            add(said, "Identifier", id, sentence);
    }
}

/* -- one process */

static void add_unacknowledged(const json_t *process, json_t *said)
{
    char line[SENTENCE];
    const json_t *wait = json_object_get(process, "unacknowledged");
    if (!wait)
        return;
    if (number_of(wait, "events") < 0)
        snprintf(line, sizeof line,
                 "The %s with handle %" JSON_INTEGER_FORMAT " is being destroyed, and %" JSON_INTEGER_FORMAT
                 " more events of it were acknowledged than fetched: they were another object's.",
                 text_of(wait, "object"), number_of(wait, "handle"), -number_of(wait, "events"));
    else
        snprintf(line, sizeof line,
                 "The %s with handle %" JSON_INTEGER_FORMAT " is being destroyed, and waits for %" JSON_INTEGER_FORMAT
                 " events to be acknowledged (ibv_ack_cq_events, ibv_ack_async_event).",
                 text_of(wait, "object"), number_of(wait, "handle"), number_of(wait, "events"));
    json_array_append_new(said, json_string(line));
}

json_t *judge(const json_t *processes, const json_t *process, const json_t *before)
{
    json_t *said = json_array();
    if (!json_is_true(json_object_get(process, "answers")))
        json_array_append_new(said, json_string("It does not answer: it is stopped (SIGSTOP, a debugger), or ends."));
    else if (json_is_true(json_object_get(process, "busy")) && !json_object_get(process, "unacknowledged"))
        json_array_append_new(said, json_string("A thread makes or destroys an object, and waits: for events that were "
                                                "not acknowledged, or for work that uses the object."));
    add_unacknowledged(process, said);
    judge_cqs(process, before, said);
    judge_qps(processes, process, before, said);
    judge_connections(process, before, said);
    if (!json_array_size(said))
        json_array_append_new(said, json_string(JUDGE_NOTHING));
    return said;
}
