#include "transport/srd/sender.h"

#include "base/likely.h"
#include "transport/bth.h"
#include "transport/direct.h"
#include "transport/request.h"
#include "transport/srd/flights.h"
#include "transport/srd/flows.h"
#include "transport/srd/works.h"
#include "wire/psn.h"

static struct send_wqe *work_of(const struct srd *srd, uint32_t position)
{
    return send_queue_at(&srd->common.queue, position);
}

/* ---- posted work ---- */

static enum reason check_work(const struct srd *srd, const struct send_wqe *work)
{
    const struct engine_settings *settings = &srd->common.settings;
    const struct request_kind *kind = request_kind(work);
    bool exists = kind->class >= REQUEST_SEND && kind->class <= REQUEST_READ;
    if (!exists || !op_find(op_code(SERVICE_SRD, kind->only)))
        return REASON_WORK_UNSUPPORTED;
    uint32_t most = kind->class == REQUEST_SEND ? settings->max_message : settings->max_rdma;
    return work->length > most ? REASON_MESSAGE_TOO_LONG : REASON_NONE;
}

/* A Q_Key with the high bit set in the work request means the queue pair's own (IBA 10.2.5, C10-15). */
static uint32_t qkey_of(const struct srd *srd, const struct send_wqe *work)
{
    return work->remote_qkey >> 31 ? srd->common.settings.qkey : work->remote_qkey;
}

/* Lets the owner do a READ or WRITE by itself. False: it is sent as packets. */
static bool is_done_directly(struct srd *srd, const struct send_wqe *work)
{
    struct engine_owner *owner = srd->common.owner;
    bool may = work->opcode == IBV_WR_RDMA_WRITE || work->opcode == IBV_WR_RDMA_READ;
    if (!may || !owner->operations->direct || !work->length || work->length > DIRECT_LENGTH_MAX)
        return false;
    struct direct_works these = {.count = 1, .length = work->length, .qkey = qkey_of(srd, work), .works = {work}};
    return !gather(owner, work, request_local_access(work), 0, work->length, these.pieces, &these.piece_count) &&
           owner->operations->direct(owner, &these);
}

static void admit(struct srd *srd, uint32_t position)
{
    struct send_wqe *work = work_of(srd, position);
    struct engine_owner *owner = srd->common.owner;
    enum reason reason = REASON_NONE;
    if (send_wqe_is_scripted(work)) {
        enum ibv_wc_status status = owner->operations->local_operation(owner, work, &reason);
        return srd_end_work(srd, position, status, reason);
    }
    if (!work->address) /* it was forgotten */
        return srd_end_work(srd, position, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    reason = check_work(srd, work);
    if (!reason && is_done_directly(srd, work))
        return srd_end_work(srd, position, IBV_WC_SUCCESS, REASON_NONE);
    struct srd_flow *flow = reason ? NULL : srd_flows_find(srd, work);
    if (!flow)
        return srd_end_work(srd, position, reason ? request_status(reason) : IBV_WC_LOC_QP_OP_ERR,
                            reason ? reason : REASON_SRD_MEMORY);
    srd_flows_append(srd, &flow->fresh, position);
    srd_flows_judge(srd, flow);
}

void srd_sender_admit_posted(struct srd *srd)
{
    struct send_queue *queue = &srd->common.queue;
    while (srd_sender_may_admit(srd)) {
        struct send_wqe *work = work_of(srd, queue->next);
        work->srd.link = work->srd.handed = work->srd.out = work->srd.moved = 0;
        work->busy = work->last = 0;
        work->started = false;
        admit(srd, queue->next++);
    }
}

/* ---- packets ---- */

/* A packet with the immediate is a whole message of one packet, or it follows the answers to all data. */
enum operation srd_sender_operation(const struct send_wqe *work, const struct srd_flight *flight)
{
    bool ends = flight->offset + flight->length == work->length, apart = flight->offset == work->length;
    if (work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && !(ends && (apart || !flight->offset)))
        return OPERATION_WRITE_ONLY;
    return request_kind(work)->only;
}

static void write_head(const struct srd *srd, const struct srd_flow *flow, enum operation operation, uint32_t number,
                       struct packet *out)
{
    const struct engine_settings *settings = &srd->common.settings;
    bth_fill(out, op_code(SERVICE_SRD, operation), settings->pkey, flow->receiver, number & PSN_MASK);
    out->source = settings->number;
    out->srd = (struct srd_header){flow->epoch, flow->cookie, number, flow->floor};
}

static enum reason write_packet(const struct srd *srd, const struct srd_flight *flight, struct packet *out,
                                struct iovec *pieces)
{
    const struct send_wqe *work = work_of(srd, flight->work);
    enum operation operation = srd_sender_operation(work, flight);
    write_head(srd, flight->flow, operation, flight->number, out);
    out->qkey = qkey_of(srd, work);
    out->address = work->remote_address + flight->offset;
    out->rkey = work->rkey;
    out->length = operation == OPERATION_WRITE_ONLY_IMMEDIATE ? work->length : flight->length;
    out->immediate = work->immediate;
    if (operation != OPERATION_READ_REQUEST)
        return request_payload(srd->common.owner, work, flight->offset, flight->length, out, pieces);
    uint32_t count; /* whether the response can be stored is known now */
    return gather(srd->common.owner, work, IBV_ACCESS_LOCAL_WRITE, flight->offset, flight->length, pieces, &count);
}

/* Makes the next packet of the flow's first fresh work; NULL: no memory. */
static struct srd_flight *cut_packet(struct srd *srd, struct srd_flow *flow)
{
    struct srd_flight *flight = srd_flows_number(srd, flow);
    if (!flight)
        return NULL;
    struct send_wqe *work = work_of(srd, flow->fresh.first);
    uint32_t left = work->length - work->srd.handed, segment = srd->common.settings.segment;
    bool whole = request_kind(work)->class == REQUEST_SEND || left < segment;
    flight->work = flow->fresh.first;
    flight->offset = work->srd.handed;
    flight->length = whole ? left : segment;
    work->srd.handed += flight->length;
    work->srd.out++;
    work->last |= srd_sender_operation(work, flight) == OPERATION_WRITE_ONLY_IMMEDIATE;
    if (work->srd.handed == work->length)
        srd_flows_take(srd, &flow->fresh);
    return flight;
}

static cold bool transmit_hello(struct srd *srd, struct srd_flow *flow, struct packet *out, nanos now)
{
    flow->greets = false;
    write_head(srd, flow, OPERATION_HELLO, 0, out);
    out->qkey = 0;
    srd_flights_wait(srd, &flow->greeting, SRD_HELLO, SRD_SENT_LEVEL + flow->greeting.tries, now);
    srd->requester->last = NULL;
    return true;
}

static bool transmit_flight(struct srd *srd, struct srd_flight *flight, struct packet *out, struct iovec *pieces,
                            nanos now)
{
    enum reason reason = write_packet(srd, flight, out, pieces);
    if (reason) {
        srd_sender_fail(srd, flight, request_status(reason), reason);
        return false;
    }
    srd_flights_wait(srd, flight, SRD_SENT, SRD_SENT_LEVEL + flight->tries, now);
    srd->requester->last = flight;
    return true;
}

/* Returns true if the owner lets other packets of the flow pass this new one. */
static bool is_held_back(struct srd *srd, struct srd_flight *flight, nanos now)
{
    struct engine_owner *owner = srd->common.owner;
    unsigned waits = owner->operations->holds_back ? owner->operations->holds_back(owner) : 0;
    if (waits)
        srd_flights_wait(srd, flight, SRD_LATE, waits - 1, now);
    return waits;
}

const struct send_wqe *srd_sender_next(struct srd *srd)
{
    srd_sender_admit(srd);
    const struct srd_flow *flow = srd_flows_ready(srd);
    if (!flow)
        return NULL;
    const struct srd_flight *again = TAILQ_FIRST(&flow->again);
    return work_of(srd, again ? again->work : flow->fresh.first);
}

bool srd_sender_transmit(struct srd *srd, struct packet *out, struct iovec *pieces, nanos now)
{
    struct srd_flow *flow = srd_flows_ready(srd);
    bool sent = false;
    if (!flow)
        return false;
    struct srd_flight *flight = TAILQ_FIRST(&flow->again);
    srd_flows_unready(srd, flow);
    if (!flow->open) {
        sent = transmit_hello(srd, flow, out, now);
    } else if (flight) {
        srd_flights_stop(srd, flight);
        sent = transmit_flight(srd, flight, out, pieces, now);
        if (sent && flight->tries)
            owner_note(srd->common.owner, EVENT_RETRANSMITTED, flight->number & PSN_MASK, 0);
    } else if ((flight = cut_packet(srd, flow))) {
        sent = !is_held_back(srd, flight, now) && transmit_flight(srd, flight, out, pieces, now);
    } else if (!srd->requester->flight_count) { /* nothing is under way whose end would bring a flight */
        srd_sender_fail_work(srd, flow, flow->fresh.first, IBV_WC_LOC_QP_OP_ERR, REASON_SRD_MEMORY);
    }
    srd_flows_judge(srd, flow);
    return sent;
}

void srd_sender_unreadable(struct srd *srd)
{
    struct srd_flight *flight = srd->requester->last;
    if (!flight || flight->wait != SRD_SENT)
        return;
    struct srd_flow *flow = flight->flow;
    srd_flights_stop(srd, flight);
    srd_sender_fail(srd, flight, request_status(REASON_LOCAL_GONE), REASON_LOCAL_GONE);
    srd_flows_judge(srd, flow);
}

void srd_sender_hold(struct srd *srd, nanos now)
{
    struct srd_flow *flow = srd_flows_ready(srd);
    if (!flow)
        return;
    srd->requester->held = true;
    srd_flights_wait(srd, &flow->greeting, SRD_HELD, 0, now);
    srd_flows_judge(srd, flow);
}

/* The shortest level has few others: first waits for a receive, and what is held back. */
void srd_sender_retry(struct srd *srd)
{
    struct srd_flight *flight = TAILQ_FIRST(&srd->requester->levels[0]), *next;
    srd->requester->held = false;
    for (; flight; flight = next) {
        next = TAILQ_NEXT(flight, entry);
        if (flight->wait != SRD_HELD)
            continue;
        srd_flights_stop(srd, flight);
        flight->wait = SRD_FREE;
        srd_flows_judge(srd, flight->flow);
    }
}

/* ---- ends ---- */

cold void srd_sender_fail_work(struct srd *srd, struct srd_flow *flow, uint32_t position, enum ibv_wc_status status,
                               enum reason reason)
{
    srd_flows_remove(srd, &flow->fresh, position);
    srd_flows_remove(srd, &flow->busy, position);
    srd_end_work(srd, position, status, reason);
}

cold void srd_sender_fail(struct srd *srd, struct srd_flight *failed, enum ibv_wc_status status, enum reason reason)
{
    struct srd_flow *flow = failed->flow;
    uint32_t position = failed->work;
    srd_flows_drop(srd, failed);
    for (uint32_t number = flow->floor; number != flow->next; number++) {
        struct srd_flight *flight = srd_flows_at(flow, number);
        if (!flight || flight->work != position)
            continue;
        srd_flights_stop(srd, flight);
        srd_flows_drop(srd, flight);
    }
    srd_sender_fail_work(srd, flow, position, status, reason);
}

void srd_sender_fail_flow(struct srd *srd, struct srd_flow *flow, enum ibv_wc_status status, enum reason reason)
{
    while (flow->floor != flow->next) { /* the oldest number always waits */
        struct srd_flight *flight = srd_flows_at(flow, flow->floor);
        srd_flights_stop(srd, flight);
        srd_sender_fail(srd, flight, status, reason);
    }
    while (flow->fresh.any)
        srd_sender_fail_work(srd, flow, flow->fresh.first, status, reason);
    while (flow->busy.any)
        srd_sender_fail_work(srd, flow, flow->busy.first, status, reason);
    flow->greeting.tries = 0; /* of the next work */
    srd_flows_judge(srd, flow);
}

void srd_sender_nobody(struct srd *srd)
{
    struct srd_flow *flow = srd_flows_ready(srd);
    if (flow)
        srd_sender_fail_flow(srd, flow, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
}

/* ---- time ---- */

/* A receiver that lives and has not taken what was sent is only slow. */
static bool is_slow(const struct srd *srd, uint32_t position)
{
    struct engine_owner *owner = srd->common.owner;
    return owner->operations->is_slow && owner->operations->is_slow(owner, work_of(srd, position));
}

/* Why a receiver is silent. Its host's answer to an earlier packet says nothing: a program may have come meanwhile. */
static enum reason why_silent(const struct srd *srd, const struct srd_flow *flow, uint32_t position, nanos now)
{
    struct engine_owner *owner = srd->common.owner;
    nanos since = now > SRD_SILENCE ? now - SRD_SILENCE : 0;
    if (owner->operations->is_refused && owner->operations->is_refused(owner, work_of(srd, position), since))
        return REASON_PEER_NO_QP;
    return flow->heard ? REASON_RETRY_EXCEEDED : REASON_PEER_UNHEARD;
}

static enum ibv_wc_status status_of_silence(enum reason reason)
{
    return reason == REASON_PEER_NO_QP ? IBV_WC_REM_INV_RD_REQ_ERR : IBV_WC_RESP_TIMEOUT_ERR;
}

static void fail_silent(struct srd *srd, struct srd_flight *flight, nanos now)
{
    enum reason reason = why_silent(srd, flight->flow, flight->work, now);
    srd_sender_fail(srd, flight, status_of_silence(reason), reason);
}

static void send_again(struct srd_flight *flight)
{
    flight->wait = SRD_AGAIN;
    TAILQ_INSERT_TAIL(&flight->flow->again, flight, entry);
}

static void expire_sent(struct srd *srd, struct srd_flight *flight, nanos now)
{
    if (is_slow(srd, flight->work))
        return srd_flights_wait(srd, flight, SRD_SENT, flight->level, now);
    uint32_t left = SRD_TRIES - flight->tries;
    owner_note(srd->common.owner, EVENT_ACK_TIMEOUT, flight->number & PSN_MASK, left);
    if (!left)
        return fail_silent(srd, flight, now);
    flight->tries++;
    send_again(flight);
}

static void expire_hello(struct srd *srd, struct srd_flow *flow, nanos now)
{
    if (!flow->fresh.any) {
        flow->greeting.tries = 0;
        flow->greets = true; /* with the next work */
    } else if (is_slow(srd, flow->fresh.first)) {
        srd_flights_wait(srd, &flow->greeting, SRD_HELLO, flow->greeting.level, now);
    } else if (++flow->greeting.tries > SRD_TRIES) {
        flow->greets = true;
        enum reason reason = why_silent(srd, flow, flow->fresh.first, now);
        srd_sender_fail_flow(srd, flow, status_of_silence(reason), reason);
    } else {
        flow->greets = true;
    }
}

void srd_sender_await_receive(struct srd *srd, struct srd_flow *flow, nanos now)
{
    srd_flights_wait(srd, &flow->busy_wait, SRD_BUSY, flow->busy_level, now);
    flow->busy_level += flow->busy_level < SRD_BUSY_LEVEL;
}

void srd_sender_try_busy(struct srd *srd, struct srd_flow *flow, uint32_t most)
{
    while (flow->busy.any && most--)
        srd_flows_append(srd, &flow->fresh, srd_flows_take(srd, &flow->busy));
    if (!flow->busy.any)
        srd_flights_stop(srd, &flow->busy_wait);
    srd_flows_judge(srd, flow);
}

/* Where messages wait for ever for a receive, one of them is enough to find out. */
static uint32_t busy_most(const struct srd *srd)
{
    enum { FOR_EVER = 7 };
    return srd->common.settings.rnr_retry == FOR_EVER ? 1 : UINT32_MAX;
}

/* The message that is tried may end by an error, which says nothing about receives; so the others are tried too. */
static void expire_busy(struct srd *srd, struct srd_flow *flow, nanos now)
{
    srd_sender_try_busy(srd, flow, busy_most(srd));
    if (flow->busy.any)
        srd_sender_await_receive(srd, flow, now);
}

void srd_sender_expire(struct srd *srd, nanos now)
{
    struct srd_flight *flight;
    while ((flight = srd_flights_due(srd, now))) {
        struct srd_flow *flow = flight->flow;
        enum srd_wait wait = flight->wait;
        flight->wait = SRD_FREE;
        if (wait == SRD_SENT)
            expire_sent(srd, flight, now);
        else if (wait == SRD_LATE)
            send_again(flight);
        else if (wait == SRD_HELLO)
            expire_hello(srd, flow, now);
        else if (wait == SRD_BUSY)
            expire_busy(srd, flow, now);
        srd_flows_judge(srd, flow);
    }
}
