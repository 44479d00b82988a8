#include "check/shadow/flight.h"

#include <pthread.h>
#include <string.h>

#include "check/shadow/memory.h"

enum { FLIGHT_MOST = 1 << 16 }; /* more work is forgotten, as its completions are polled unseen */

struct wqe_queue *flight_receives(struct shadow *owner)
{
    return owner->kind == SHADOW_SRQ ? &owner->srq.receives : &owner->qp.receives;
}

/* Counts the completions due in the CQ of a queue pair, and its signalled sends. */
static void count_due(struct shadow *owner, const struct wqe *wqe, uint32_t change)
{
    if (owner->kind != SHADOW_QP || !(wqe->flags & WQE_SIGNALED))
        return;
    struct shadow *cq = wqe->flags & WQE_RECEIVE ? owner->qp.recv_cq : owner->qp.send_cq;
    uint32_t sends = wqe->flags & WQE_RECEIVE ? 0 : change;
    owner->qp.signaled += sends;
    if (!cq)
        return;
    cq->cq.due += change;
    cq->cq.sends_due += sends;
    if (sends && change == 1) /* it completes after the arming, which raises the event */
        cq->cq.armer = 0;
}

static void enter(struct shadow *owner, struct wqe_queue *queue, struct wqe *wqe)
{
    wqe->begun = shadow_moment();
    wqe->returned = 0;
    wqe->thread = (uintptr_t)pthread_self();
    memory_bound(wqe);
    count_due(owner, wqe, 1);
    HOOKS_CALL(posted, owner, wqe);
    if (queue->count && wqe_at(queue, queue->count - 1)->wr_id == wqe->wr_id)
        queue->has_alike = true;
    wqe_add(queue);
}

static struct wqe *find_room(struct shadow *owner, struct wqe_queue *queue)
{
    shadow_assert_locked();
    if (queue->count >= FLIGHT_MOST && owner->kind == SHADOW_SRQ)
        wqe_clear(queue);
    if (queue->count >= FLIGHT_MOST)
        shadow_end_work(owner);
    return wqe_room(queue);
}

static uint8_t flags_of_send(const struct shadow *qp, enum ibv_wr_opcode opcode, unsigned send_flags)
{
    unsigned flags = send_flags & IBV_SEND_SIGNALED || qp->qp.signals_all ? WQE_SIGNALED : 0;
    if (send_flags & IBV_SEND_INLINE)
        flags |= WQE_INLINE;
    if (send_flags & IBV_SEND_FENCE)
        flags |= WQE_FENCE;
    if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        flags |= WQE_WRITES;
    return (uint8_t)flags;
}

/* `remote_addr` is at the same place in wr.rdma and in wr.atomic. */
static void set_remote(struct wqe *wqe, const struct ibv_send_wr *wr)
{
    bool atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    wqe->remote = wr->wr.rdma.remote_addr;
    wqe->rkey = atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
}

uint64_t flight_begin_sends(struct shadow *qp, const struct ibv_send_wr *wr, const void *posted)
{
    shadow_assert_locked();
    uint64_t first = shadow_moment();
    for (; wr; wr = wr->next) {
        struct wqe *wqe = find_room(qp, &qp->qp.sends);
        if (!wqe)
            break;
        wqe_begin(wqe, wr->wr_id, posted, wr->opcode, flags_of_send(qp, wr->opcode, wr->send_flags));
        wqe_set_list(wqe, wr->sg_list, wr->num_sge, qp->qp.cap.max_send_sge);
        if (qp->qp.datagrams)
            wqe_set_receiver(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn);
        else
            set_remote(wqe, wr);
        enter(qp, &qp->qp.sends, wqe);
    }
    return first;
}

uint64_t flight_begin_receives(struct shadow *owner, const struct ibv_recv_wr *wr, const void *posted)
{
    shadow_assert_locked();
    uint64_t first = shadow_moment();
    uint32_t most = owner->kind == SHADOW_SRQ ? owner->sges_most : owner->qp.cap.max_recv_sge;
    for (; wr; wr = wr->next) {
        struct wqe *wqe = find_room(owner, flight_receives(owner));
        if (!wqe)
            break;
        wqe_begin(wqe, wr->wr_id, posted, 0, WQE_RECEIVE | WQE_WRITES | WQE_SIGNALED);
        wqe_set_list(wqe, wr->sg_list, wr->num_sge, most);
        enter(owner, flight_receives(owner), wqe);
    }
    return first;
}

uint64_t flight_begin_batch(struct shadow *qp)
{
    shadow_assert_locked();
    uint64_t first = shadow_moment();
    for (uint32_t at = 0; at < qp->qp.batch.work.count; at++) {
        struct wqe *wqe = find_room(qp, &qp->qp.sends);
        if (!wqe)
            break;
        wqe_copy(wqe, wqe_at(&qp->qp.batch.work, at));
        wqe->flags = (uint16_t)(wqe->flags | flags_of_send(qp, wqe->opcode, 0));
        enter(qp, &qp->qp.sends, wqe);
    }
    qp->qp.batch.work.count = 0;
    return first;
}

/* Searches from the newest work back, since the work of this call is among the newest. */
void flight_end(struct shadow *owner, struct wqe_queue *queue, uint64_t first, unsigned taken, unsigned count)
{
    shadow_assert_locked();
    uint64_t now = shadow_moment();
    const struct wqe *newest = NULL;
    for (uint32_t at = queue->count; at-- > 0;) {
        struct wqe *wqe = wqe_at(queue, at);
        if (wqe->begun <= first)
            break;
        if (wqe->begun > first + count || wqe->returned)
            continue;
        wqe->returned = now;
        if (wqe->begun <= first + taken) {
            newest = newest ? newest : wqe;
            continue;
        }
        count_due(owner, wqe, -1u);
        wqe_drop(queue, at);
    }
    if (newest)
        HOOKS_CALL(taken, owner, newest);
}

static void end_wqe(struct shadow *qp, struct wqe_queue *queue, uint32_t at, const struct calls_completion *completion)
{
    struct wqe wqe;
    wqe_copy(&wqe, wqe_at(queue, at));
    if (queue == &qp->qp.sends || queue == &qp->qp.receives)
        count_due(qp, &wqe, -1u);
    wqe_remove(queue, at);
    HOOKS_CALL(completed, qp, &wqe, completion);
    if (wqe.flags & WQE_WRITES)
        memory_note_written(&wqe);
}

/* Ends the unsignalled work before the work at `until`. */
static void end_silent(struct shadow *qp, uint32_t until, const struct calls_completion *completion)
{
    struct wqe_queue *queue = &qp->qp.sends;
    if (until == 0)
        return;
    struct wqe last;
    wqe_copy(&last, wqe_at(queue, until));
    for (uint32_t at = 0; at < until;) {
        const struct wqe *wqe = wqe_at(queue, at);
        if (wqe->flags & WQE_SIGNALED || !wqe_is_before(wqe, &last)) {
            at++;
            continue;
        }
        end_wqe(qp, queue, at, completion);
        until--;
    }
}

/* Finds the work of a completion by its wr_id: it was signalled, or has failed. */
static uint32_t find_flight(const struct wqe_queue *queue, const struct calls_completion *completion)
{
    uint32_t at = 0;
    for (; at < queue->count; at++) {
        const struct wqe *wqe = wqe_at(queue, at);
        if (wqe->wr_id == completion->wr_id && (wqe->flags & WQE_SIGNALED || completion->status != IBV_WC_SUCCESS))
            break;
    }
    return at;
}

/* Of a queue whose work ends in any order any work of the same wr_id may have completed. Looks at all work only where
 * the program posts work after other work of the same wr_id. False: no other work that was looked at has this wr_id. */
static bool doubt_others(struct wqe_queue *queue, uint32_t at)
{
    enum { NEAR = 64 };
    uint32_t until = queue->count - at > NEAR && !queue->has_alike ? at + NEAR : queue->count;
    bool found = false;
    for (uint32_t other = at + 1; other < until; other++) {
        struct wqe *wqe = wqe_at(queue, other);
        if (wqe->wr_id != wqe_at(queue, at)->wr_id)
            continue;
        found = true;
        if (!(wqe->flags & WQE_UNSURE))
            wqe_doubt(wqe);
    }
    return found;
}

static void complete_send(struct shadow *qp, const struct calls_completion *completion)
{
    struct wqe_queue *queue = &qp->qp.sends;
    uint32_t at = find_flight(queue, completion), before = queue->count;
    if (at == before)
        return;
    if (qp->qp.unordered && doubt_others(queue, at))
        wqe_doubt(wqe_at(queue, at));
    end_silent(qp, at, completion);
    at -= before - queue->count;
    end_wqe(qp, queue, at, completion);
}

static void complete_receive(struct shadow *qp, const struct calls_completion *completion)
{
    struct wqe_queue *queue = flight_receives(shadow_receiver(qp));
    uint32_t at = find_flight(queue, completion);
    bool is_unsolicited = qp->qp.unsolicited && completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if (at == queue->count || is_unsolicited)
        return;
    bool unordered = qp->qp.unordered || (qp->qp.srq && qp->qp.srq->srq.users > 1);
    if (unordered && doubt_others(queue, at))
        wqe_doubt(wqe_at(queue, at));
    end_wqe(qp, queue, at, completion);
}

void flight_complete(const struct calls_completion *completion)
{
    shadow_assert_locked();
    struct shadow *qp = shadow_find_number(SHADOW_QP, completion->qp_number);
    if (!qp)
        return;
    if (completion->status != IBV_WC_SUCCESS && !qp->qp.unordered)
        qp->qp.state = IBV_QPS_ERR;
    if (completion->opcode & IBV_WC_RECV)
        complete_receive(qp, completion);
    else
        complete_send(qp, completion);
}
