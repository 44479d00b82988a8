#include "why/waits.h"

#include <stdio.h>
#include <string.h>

#include "diagnose/diagnose.h"
#include "events/drops.h"
#include "why/explanation.h"
#include "why/listeners.h"

/* A process at this look and at an earlier one, and the sentences about it. */
struct look {
    const struct seen *seen;
    const struct seen_process *process, *before;
    struct explanation explanation;
};

static bool is_same(const struct fact_number *one, const struct fact_number *other)
{
    return one->known && other->known && one->value == other->value;
}

static struct fact_number count_of(const struct facts_qp *qp, enum event event)
{
    return (struct fact_number){seen_count(&qp->traffic, event), qp->traffic.of};
}

static const struct facts_srq *srq_of(const struct seen_process *process, const struct facts_qp *qp)
{
    return qp->srq.known ? seen_srq(process, qp->srq.value) : NULL;
}

/* -- the peer */

static const struct seen_process *process_with(const struct seen *seen, uint64_t number)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen_qp(&seen->processes[i], number))
            return &seen->processes[i];
    return NULL;
}

static void name_process(const struct facts_qp *own, const struct seen_process *process, char name[EXPLANATION_NAME])
{
    uint64_t pid = process ? process->own.pid.value : own->peer_pid.value;
    if (process)
        snprintf(name, EXPLANATION_NAME, "process %d (%.40s)", (int)pid, facts_text(process->own.program));
    else
        snprintf(name, EXPLANATION_NAME, "process %d", (int)pid);
}

static void find_peer(const struct look *look, struct known *known, char name[EXPLANATION_NAME])
{
    const struct facts_qp *own = known->own;
    const struct seen_process *process = own->peer_qp.value ? process_with(look->seen, own->peer_qp.value) : NULL;
    known->peer = process ? seen_qp(process, own->peer_qp.value) : NULL;
    known->peer_srq = known->peer ? srq_of(process, known->peer) : NULL;
    if (!process)
        process = own->peer_pid.known ? seen_find(look->seen, own->peer_pid.value) : NULL;
    known->partner = process ? &process->own : NULL;
    known->asked.ended = own->peer_pid.known && !process;
    known->absence = diagnose(DIAGNOSE_ABSENCE, known);
    name_process(own, process, name);
}

/* -- the objects of the process */

/* Notes the changes since the earlier look. */
static void compare(struct known *known, const struct facts_qp *before)
{
    const struct facts_qp *own = known->own;
    if (!before)
        return;
    known->since.still = json_equal(facts_json(&own->traffic), facts_json(&before->traffic));
    known->since.stuck =
        is_same(&own->oldest_psn, &before->oldest_psn) || is_same(&own->messages_ended, &before->messages_ended);
    known->since.refused =
        facts_is(&own->not_ready) || seen_count(&before->traffic, EVENT_RNR_RECEIVED) < known->counts.naks_got.value;
    known->since.naks = seen_count(&before->traffic, EVENT_RNR_SENT) < known->counts.naks_sent.value &&
                        is_same(&own->expected_psn, &before->expected_psn);
}

/* Returns whether the program has polled no completion of the queue since the earlier look. */
static bool is_unpolled(const struct look *look, const struct facts_cq *cq)
{
    const struct facts_cq *before = cq ? seen_cq(look->before, cq->handle.value) : NULL;
    return before && is_same(&cq->polled, &before->polled);
}

/* Notes the number and the reason of the packets that the queue pair dropped for the most frequent reason. */
static void count_losses(struct known *known)
{
    unsigned reason = 0;
    uint64_t lost = seen_main_reason(&known->own->traffic, EVENT_PACKET_DROPPED, drops_lose, &reason);
    known->count = (struct fact_number){lost, lost};
    known->reason = (struct fact_number){reason, lost};
}

/* The identifier that has the queue pair; if no identifier names it, the process's first one, which may have it. NULL:
 * the process has no identifier. */
static const struct facts_identifier *id_of(const struct seen_process *process, const struct facts_qp *qp)
{
    for (size_t i = 0; i < process->identifier_count; i++)
        if (is_same(&process->identifiers[i].qp, &qp->number))
            return &process->identifiers[i];
    return process->identifier_count ? process->identifiers : NULL;
}

/* Adds a sentence about the messages of SRD for each receiver, if no message has ended since the earlier look, or the
 * oldest has waited for a second. */
static bool judge_messages(struct look *look, const struct known *of)
{
    struct facts_message message;
    struct known known = *of;
    bool waits = false;
    known.message = &message;
    for (size_t i = 0; facts_read_at(&facts_of_message, &of->own->messages, i, &message); i++)
        if (known.since.stuck || message.seconds.value)
            waits |= explanation_first(&look->explanation, DIAGNOSE_MESSAGE_WAIT, &known);
    return waits;
}

static void judge_qp(struct look *look, const struct facts_qp *own)
{
    char name[EXPLANATION_NAME], words[DIAGNOSE_ROOM];
    struct known known = {.own = own, .process = name, .place = "this directory"};
    known.cq = seen_cq(look->process, own->send_cq.value);
    known.id = id_of(look->process, own);
    known.since.unpolled = is_unpolled(look, known.cq);
    known.srq = srq_of(look->process, own);
    known.counts.naks_got = count_of(own, EVENT_RNR_RECEIVED);
    known.counts.naks_sent = count_of(own, EVENT_RNR_SENT);
    known.counts.timeouts = count_of(own, EVENT_ACK_TIMEOUT);
    known.counts.heard = !own->traffic.of || seen_count(&own->traffic, EVENT_PACKET_RECEIVED);
    known.counts.faulty = seen_count(&own->traffic, EVENT_FRAME_LOST);
    count_losses(&known);
    compare(&known, seen_qp(look->before, own->number.value));
    find_peer(look, &known, name);
    known.posting.own = known.srq ? "ibv_post_srq_recv" : "ibv_post_recv";
    known.posting.peer = known.peer_srq ? "ibv_post_srq_recv" : "ibv_post_recv";
    if (!judge_messages(look, &known))
        explanation_diagnose(&look->explanation, 0, diagnose_wait(&known, words), &known);
}

static void judge_cq(struct look *look, const struct facts_cq *cq)
{
    char words[DIAGNOSE_ROOM];
    struct known known = {.cq = cq, .words = words};
    if (!facts_is_some(&cq->waiting) || !is_unpolled(look, cq))
        return;
    diagnose_words(diagnose(DIAGNOSE_EVENT, &known), &known, words, sizeof words);
    explanation_diagnose(&look->explanation, 0, DIAGNOSIS_CQ_UNPOLLED, &known);
}

static bool is_in(const struct facts_identifier *id, const char *state)
{
    return !strcmp(facts_text(id->state), state);
}

/* The identifier of the other end, whose process is `process`; NULL: its report has no such identifier. */
static const struct facts_identifier *partner_of(const struct facts_identifier *id, const struct seen_process *process)
{
    for (size_t i = 0; i < process->identifier_count; i++)
        if (id->local && process->identifiers[i].peer && !strcmp(process->identifiers[i].peer, id->local))
            return &process->identifiers[i];
    return NULL;
}

/* Writes what the program of the other end has not done; "" where that is not known. */
static void tell_partner(const struct look *look, const struct facts_identifier *id, char words[DIAGNOSE_ROOM])
{
    char name[EXPLANATION_NAME];
    const struct seen_process *process = id->peer_pid.known ? seen_find(look->seen, id->peer_pid.value) : NULL;
    const struct facts_identifier *partner = process ? partner_of(id, process) : NULL;
    struct known known = {.id = partner, .partner = process ? &process->own : NULL};
    if (process)
        known.name = explanation_name_process(process->own.program, id->peer_pid.value, name);
    diagnose_words(diagnose(DIAGNOSE_CM_PROGRAM, &known), &known, words, DIAGNOSE_ROOM);
}

/* If no program listens at the port asked for, writes which program listens at the port in the other byte order. */
static void tell_swapped(const struct look *look, struct known *known, char words[DIAGNOSE_ROOM])
{
    struct listeners there = {.seen = look->seen, .asker = known->id}, other = there;
    if (listeners_next(&there, DIAGNOSE_CM_LISTENER) != DIAGNOSIS_NOTHING)
        return;
    enum diagnosis diagnosis = listeners_next(&other, DIAGNOSE_CM_SWAPPED);
    if (diagnosis == DIAGNOSIS_NOTHING)
        return;
    diagnose_words(diagnosis, &other.known, words, DIAGNOSE_ROOM);
    known->connection = other.known.connection;
}

/* Returns whether the identifier is a request that a listener of this process has, whose sentence names the request. */
static bool is_request(const struct look *look, const struct facts_identifier *id)
{
    bool listens = false;
    for (size_t i = 0; i < look->process->identifier_count; i++)
        listens |= facts_is_some(&look->process->identifiers[i].requests);
    return listens && is_in(id, "REQ rcvd") && facts_is_some(&id->events);
}

static void judge_identifier(struct look *look, const struct facts_identifier *id)
{
    char place[40] = "on another host", words[DIAGNOSE_ROOM];
    const struct facts_identifier *before = seen_identifier(look->before, id->id.value);
    struct known known = {.id = id, .process = place, .words = words};
    diagnose_words(diagnose(DIAGNOSE_CM_NEXT, &known), &known, words, sizeof words);
    if (!*words)
        tell_partner(look, id, words);
    tell_swapped(look, &known, words);
    if (id->peer_pid.known)
        snprintf(place, sizeof place, "process %d", (int)id->peer_pid.value);
    if (before && is_in(before, facts_text(id->state)) && !is_request(look, id))
        explanation_diagnose(&look->explanation, 0, diagnose(DIAGNOSE_ID, &known), &known);
}

/* Adds a sentence for each listener that no request has reached, and each identifier that was only created or bound.
 * Called if no other sentence was found. */
static void judge_idle(struct look *look)
{
    char words[DIAGNOSE_ROOM];
    for (size_t i = 0; i < look->process->identifier_count; i++) {
        struct known known = {.id = &look->process->identifiers[i]};
        known.words = diagnose_words(diagnose(DIAGNOSE_CM_NEXT, &known), &known, words, sizeof words);
        explanation_first(&look->explanation, DIAGNOSE_ID_IDLE, &known);
    }
}

static void judge_process(struct look *look)
{
    const struct facts_process *own = &look->process->own;
    struct facts_missing missing;
    bool misses = facts_read(&facts_of_missing, facts_json(&own->unacknowledged), &missing);
    int64_t more = misses ? -(int64_t)missing.events.value : 0;
    const struct known known = {
        .partner = own, .missing = misses ? &missing : NULL, .count = {(uint64_t)more, more > 0}};
    explanation_first(&look->explanation, DIAGNOSE_PROCESS, &known);
}

json_t *waits_of(const struct seen *seen, const struct seen_process *process, const struct seen_process *before)
{
    struct look look = {seen, process, before, {.list = json_array()}};
    judge_process(&look);
    for (size_t i = 0; i < process->cq_count; i++)
        judge_cq(&look, &process->cqs[i]);
    for (size_t i = 0; i < process->qp_count; i++)
        judge_qp(&look, &process->qps[i]);
    for (size_t i = 0; i < process->identifier_count; i++)
        judge_identifier(&look, &process->identifiers[i]);
    if (!json_array_size(look.explanation.list) && !process->qp_count)
        judge_idle(&look);
    if (!json_array_size(look.explanation.list))
        json_array_append_new(look.explanation.list, json_string(WAITS_FOR_NOTHING));
    return look.explanation.list;
}
