#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lost_event.h"

enum { SENTENCE = 320 };

/* A queue pair and what belongs to it. */
struct view {
    const struct seen *seen; /* all processes now */
    const struct seen_process *process;
    const struct facts_qp *qp, *before; /* now, and in the first look; NULL: it was not there */
    const struct facts_qp *peer;        /* on this host; NULL: not known */
    const struct seen_process *peer_process;
};

static bool is_in(const struct facts_qp *qp, const char *states)
{
    return qp->state && *qp->state && strstr(states, qp->state);
}

/* Nothing of it came or went between the looks. */
static bool is_still(const struct view *view)
{
    return view->before && json_equal(facts_json(&view->qp->traffic), facts_json(&view->before->traffic));
}

static const struct facts_srq *srq_of(const struct seen_process *process, const struct facts_qp *qp)
{
    return qp->srq.known ? seen_srq(process, qp->srq.value) : NULL;
}

static bool is_empty(const struct facts_srq *srq)
{
    return srq && facts_is_zero(&srq->posted);
}

static bool is_down(const struct seen_process *process, const struct facts_qp *qp)
{
    const json_t *down = facts_json(&process->own.down);
    for (size_t i = 0; i < json_array_size(down); i++)
        if (!strcmp(facts_text(json_string_value(json_array_get(down, i))), facts_text(qp->device)))
            return true;
    return false;
}

/* -- rules of queue pairs: each writes its sentence, or returns false */

static bool is_locked(const struct view *view, char *say)
{
    snprintf(say, SENTENCE,
             "a thread is within a call of it, or a batch is open (ibv_wr_start without ibv_wr_complete)");
    return facts_is(&view->qp->busy);
}

static bool is_not_connected(const struct view *view, char *say)
{
    snprintf(say, SENTENCE, "is in %s: ibv_modify_qp to RTR, and to RTS for sending, is missing",
             facts_text(view->qp->state));
    return is_in(view->qp, "RESET INIT");
}

static bool has_failed(const struct view *view, char *say)
{
    uint64_t error = view->qp->first_error.value;
    const char *told = facts_text(view->qp->first_error_told);
    if (error)
        snprintf(say, SENTENCE, "is in %s since its first error, %s%s%s: softverbs explain %" PRIu64,
                 facts_text(view->qp->state), facts_text(view->qp->first_error_name), *told ? ": " : "", told, error);
    else
        snprintf(say, SENTENCE, "is in %s: the program moved it there, or its peer ended", facts_text(view->qp->state));
    return is_in(view->qp, "ERR SQE");
}

static bool is_on_this_host(const struct view *view)
{
    return view->qp->peer_pid.known || view->peer;
}

static bool has_no_peer(const struct view *view, char *say)
{
    uint64_t number = view->qp->peer_qp.value;
    snprintf(say, SENTENCE, "is connected with queue pair 0x%" PRIx64 ", which no process of this directory has%s",
             number, number >> 24 ? ": more than 24 bits, so it was not brought into the host's byte order" : "");
    return !strcmp(facts_text(view->qp->type), "RC") && view->qp->peer_qp.known && !is_on_this_host(view) &&
           !facts_is(&view->qp->network);
}

/* One on another host is in no report here. */
static bool has_silent_peer(const struct view *view, char *say)
{
    snprintf(say, SENTENCE,
             "sends to queue pair 0x%" PRIx64 " on another host, which has not answered; %" PRIu64
             " times the ACK timer ran out: softverbs ping, and softverbs show qps there",
             view->qp->peer_qp.value, seen_count(&view->qp->traffic, EVENT_ACK_TIMEOUT));
    return facts_is(&view->qp->network) && facts_is_some(&view->qp->send_posted) && view->qp->traffic.of &&
           !seen_count(&view->qp->traffic, EVENT_PACKET_RECEIVED);
}

static bool has_deaf_peer(const struct view *view, char *say)
{
    if (!view->peer)
        return false;
    snprintf(say, SENTENCE, "sends to queue pair 0x%" PRIx64 " of process %d (%s), which is in %s and takes nothing",
             view->peer->number.value, (int)view->peer_process->own.pid.value,
             facts_text(view->peer_process->own.program), facts_text(view->peer->state));
    return facts_is_some(&view->qp->send_posted) && is_in(view->peer, "RESET INIT ERR");
}

static bool has_no_port(const struct view *view, char *say)
{
    const char *device = facts_text(view->qp->device);
    snprintf(say, SENTENCE,
             "is on a port that is down: softverbs event port-up %s, or the network interface below it (ip link show)",
             device);
    return is_down(view->process, view->qp) && is_in(view->qp, "RTR RTS SQD");
}

static bool waits_for_receives(const struct view *view, char *say)
{
    const struct facts_srq *srq = view->peer ? srq_of(view->peer_process, view->peer) : NULL;
    uint64_t naks = seen_count(&view->qp->traffic, EVENT_RNR_RECEIVED);
    int length = is_empty(srq) ? snprintf(say, SENTENCE,
                                          "sends, and its peer's shared receive queue with handle %" PRIu64
                                          " is empty (ibv_post_srq_recv)",
                                          srq->handle.value)
                               : snprintf(say, SENTENCE, "sends, and its peer has no receive posted (ibv_post_recv)");
    snprintf(say + length, SENTENCE - (size_t)length, ": it answered %" PRIu64 " times that it is not ready", naks);
    return naks && facts_is_some(&view->qp->send_posted);
}

static bool refuses_messages(const struct view *view, char *say)
{
    uint64_t naks = seen_count(&view->qp->traffic, EVENT_RNR_SENT);
    const struct facts_srq *srq = srq_of(view->process, view->qp);
    snprintf(say, SENTENCE,
             "has no receive posted (%s) for a message of its peer, to which it sent %" PRIu64 " RNR NAKs",
             srq ? "ibv_post_srq_recv" : "ibv_post_recv", naks);
    return naks && facts_is_zero(&view->qp->recv_posted) && (!srq || is_empty(srq));
}

static bool has_unpolled_sends(const struct view *view, char *say)
{
    const struct facts_cq *cq = seen_cq(view->process, view->qp->send_cq.value);
    snprintf(say, SENTENCE,
             "%" PRIu64 " work requests are done or under way, and %" PRIu64
             " completions wait in completion queue %" PRIu64 ": it is not polled%s",
             view->qp->send_posted.value, cq ? cq->waiting.value : 0, view->qp->send_cq.value,
             view->qp->send_wr.known && view->qp->send_posted.value >= view->qp->send_wr.value
                 ? ", and the send queue is full, so that ibv_post_send gives ENOMEM"
                 : "");
    return is_still(view) && facts_is_some(&view->qp->send_posted) && cq && facts_is_some(&cq->waiting);
}

static bool has_unsignalled_sends(const struct view *view, char *say)
{
    snprintf(say, SENTENCE,
             "%" PRIu64 " work requests were sent and nothing is under way: they have no completion, as "
             "they are not signalled (IBV_SEND_SIGNALED)",
             view->qp->send_posted.value);
    return is_still(view) && facts_is_some(&view->qp->send_posted) && is_in(view->qp, "RTS SQD");
}

static bool waits_for_message(const struct view *view, char *say)
{
    uint64_t posted = view->qp->recv_posted.value;
    snprintf(say, SENTENCE, "has nothing to send; %" PRIu64 " receives wait for a message of the peer", posted);
    return is_still(view) && posted;
}

static bool has_no_receive(const struct view *view, char *say)
{
    const struct facts_srq *srq = srq_of(view->process, view->qp);
    if (srq)
        snprintf(say, SENTENCE,
                 "has nothing to send, and its shared receive queue with handle %" PRIu64
                 " is empty (ibv_post_srq_recv)",
                 srq->handle.value);
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

static void add(json_t *said, const char *what, uint64_t number, const char *sentence)
{
    char line[SENTENCE + 64];
    snprintf(line, sizeof line, "%s 0x%" PRIx64 " %s.", what, number, sentence);
    json_array_append_new(said, json_string(line));
}

static void find_peer(struct view *view)
{
    uint64_t number = view->qp->peer_qp.value;
    for (size_t i = 0; number && i < view->seen->count; i++) {
        const struct facts_qp *found = seen_qp(&view->seen->processes[i], number);
        if (found) {
            view->peer = found;
            view->peer_process = &view->seen->processes[i];
        }
    }
}

static void judge_qp(struct view *view, json_t *said)
{
    char sentence[SENTENCE];
    find_peer(view);
    for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++)
        if (rules[rule](view, sentence)) {
            add(said, "Queue pair", view->qp->number.value, sentence);
            return;
        }
}

static void judge_qps(const struct seen *seen, const struct seen_process *process, const struct seen_process *before,
                      json_t *said)
{
    for (size_t i = 0; i < process->qp_count; i++) {
        const struct facts_qp *qp = &process->qps[i];
        struct view view = {.seen = seen, .process = process, .qp = qp, .before = seen_qp(before, qp->number.value)};
        judge_qp(&view, said);
    }
}

static void judge_cqs(const struct seen_process *process, const struct seen_process *before, json_t *said)
{
    char sentence[SENTENCE];
    for (size_t i = 0; i < process->cq_count; i++) {
        const struct facts_cq *cq = &process->cqs[i], *old = seen_cq(before, cq->handle.value);
        if (!facts_is_some(&cq->waiting) || !old || old->waiting.value != cq->waiting.value)
            continue;
        snprintf(sentence, sizeof sentence, "has %" PRIu64 " completions that nothing polls, and %s", cq->waiting.value,
                 lost_event_words(cq));
        add(said, "Completion queue", cq->handle.value, sentence);
    }
}

/* -- librdmacm: what a program that waits in rdma_get_cm_event can hear of */

static bool is_state(const struct facts_identifier *identifier, const char *state)
{
    return !strcmp(facts_text(identifier->state), state);
}

/* False: there is nothing to say. */
static bool judge_identifier(const struct facts_identifier *now, char *say)
{
    uint64_t seconds = now->seconds.value;
    const char *place = facts_text(now->peer);
    char peer[40] = "on another host";
    if (now->peer_pid.known)
        snprintf(peer, sizeof peer, "process %d", (int)now->peer_pid.value);
    if (facts_is_some(&now->events))
        snprintf(say, SENTENCE, "has %" PRIu64 " events that rdma_get_cm_event does not fetch", now->events.value);
    else if (is_state(now, "REQ rcvd"))
        snprintf(say, SENTENCE,
                 "was asked for a connection by %s %" PRIu64
                 " seconds ago: neither rdma_accept nor rdma_reject was called",
                 place, seconds);
    else if (is_state(now, "REQ sent") || is_state(now, "REP sent"))
        snprintf(say, SENTENCE, "waits for an answer of %s for %" PRIu64 " seconds", place, seconds);
    else if (is_state(now, "established"))
        snprintf(say, SENTENCE,
                 "is connected with %s (%s) for %" PRIu64
                 " seconds, and no event waits: RDMA_CM_EVENT_DISCONNECTED comes when one side calls rdma_disconnect",
                 place, peer, seconds);
    else
        return false;
    return true;
}

static void judge_identifiers(const struct seen_process *process, const struct seen_process *before, json_t *said)
{
    char sentence[SENTENCE];
    for (size_t i = 0; i < process->identifier_count; i++) {
        const struct facts_identifier *now = &process->identifiers[i], *old = seen_identifier(before, now->id.value);
        if (old && is_state(old, facts_text(now->state)) && judge_identifier(now, sentence))
            add(said, "Identifier", now->id.value, sentence);
    }
}

/* -- one process */

static void add_unacknowledged(const struct seen_process *process, json_t *said)
{
    char line[SENTENCE];
    struct facts_missing wait;
    if (!facts_read(&facts_of_missing, facts_json(&process->own.unacknowledged), &wait))
        return;
    int64_t events = (int64_t)wait.events.value;
    if (events < 0)
        snprintf(line, sizeof line,
                 "The %s with handle %" PRIu64 " is being destroyed, and %" PRId64
                 " more events of it were acknowledged than fetched: they were another object's.",
                 facts_text(wait.object), wait.handle.value, -events);
    else
        snprintf(line, sizeof line,
                 "The %s with handle %" PRIu64 " is being destroyed, and waits for %" PRId64
                 " events to be acknowledged (ibv_ack_cq_events, ibv_ack_async_event).",
                 facts_text(wait.object), wait.handle.value, events);
    json_array_append_new(said, json_string(line));
}

json_t *judge(const struct seen *seen, const struct seen_process *process, const struct seen_process *before)
{
    json_t *said = json_array();
    if (!facts_is(&process->own.answers))
        json_array_append_new(said, json_string("It does not answer: it is stopped (SIGSTOP, a debugger), or ends."));
    else if (facts_is(&process->own.busy) && !process->own.unacknowledged.of)
        json_array_append_new(said, json_string("A thread makes or destroys an object, and waits: for events that were "
                                                "not acknowledged, or for work that uses the object."));
    add_unacknowledged(process, said);
    judge_cqs(process, before, said);
    judge_qps(seen, process, before, said);
    judge_identifiers(process, before, said);
    if (!json_array_size(said))
        json_array_append_new(said, json_string(JUDGE_NOTHING));
    return said;
}
