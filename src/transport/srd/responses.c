#include "transport/srd/responses.h"

#include "base/likely.h"
#include "transport/gather.h"
#include "transport/request.h"
#include "transport/srd/flights.h"
#include "transport/srd/flows.h"
#include "transport/srd/sender.h"
#include "transport/srd/works.h"
#include "wire/psn.h"

static cold void drop_response(struct srd *srd, const struct packet *packet, enum reason reason)
{
    srd->common.owner->operations->dropped(srd->common.owner, packet, reason);
}

/* The end of work by an answer (profile/vendors.def has EFA's own pairs). */
static const struct {
    uint8_t status; /* enum ibv_wc_status */
    uint16_t reason;
} refusals[] = {
    [SRD_NO_ACCESS] = {IBV_WC_REM_ACCESS_ERR, REASON_REMOTE_ACCESS},
    [SRD_STRANGER] = {IBV_WC_REM_ABORT_ERR, REASON_PEER_FORGOT},
    [SRD_NO_QP] = {IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP},
    [SRD_NO_RECEIVE] = {IBV_WC_RNR_RETRY_EXC_ERR, REASON_RNR_EXCEEDED},
    [SRD_TOO_LONG] = {IBV_WC_REM_INV_REQ_ERR, REASON_REMOTE_INVALID_REQUEST},
    [SRD_NO_ADDRESS] = {IBV_WC_REM_OP_ERR, REASON_PEER_NO_ADDRESS},
};

static cold void fail_by(struct srd *srd, struct srd_flight *flight, uint32_t status)
{
    bool known = status < sizeof refusals / sizeof *refusals && refusals[status].reason;
    if (known)
        srd_sender_fail(srd, flight, refusals[status].status, refusals[status].reason);
    else
        srd_sender_fail(srd, flight, IBV_WC_BAD_RESP_ERR, REASON_BAD_RESPONSE);
}

/* Returns true if the packet takes a receive, and not only data before one that does. */
static bool takes_receive(const struct send_wqe *work, const struct srd_flight *flight)
{
    return request_kind(work)->class == REQUEST_SEND ||
           srd_sender_operation(work, flight) == OPERATION_WRITE_ONLY_IMMEDIATE;
}

/* A packet of the work has reached its end. */
static void finish(struct srd *srd, struct srd_flight *flight)
{
    struct srd_flow *flow = flight->flow;
    uint32_t position = flight->work;
    struct send_wqe *work = send_queue_at(&srd->common.queue, position);
    bool received = takes_receive(work, flight);
    srd_flows_drop(srd, flight);
    if (received && (flow->busy_level = 0, flow->busy.any))
        srd_sender_try_busy(srd, flow, 2); /* there are receives again: twice as many with each message */
    if (--work->srd.out || work->srd.handed != work->length)
        return;
    if (work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && !work->last)
        srd_flows_append(srd, &flow->fresh, position); /* all its data is there: now its immediate */
    else
        srd_end_work(srd, position, IBV_WC_SUCCESS, REASON_NONE);
}

/* The receiver had no receive: the message waits, and is sent under another number. */
static cold void wait_for_receive(struct srd *srd, struct srd_flight *flight, nanos now)
{
    enum { FOR_EVER = 7 };
    struct srd_flow *flow = flight->flow;
    struct send_wqe *work = send_queue_at(&srd->common.queue, flight->work);
    uint8_t most = srd->common.settings.rnr_retry;
    owner_note(srd->common.owner, EVENT_RNR_RECEIVED, flight->number & PSN_MASK, SYNDROME_RNR);
    if (!takes_receive(work, flight) || (most != FOR_EVER && work->busy >= most))
        return fail_by(srd, flight, SRD_NO_RECEIVE);
    work->busy += work->busy < UINT8_MAX;
    work->last = 0;
    work->srd.out--;
    work->srd.handed = flight->offset;
    srd_flows_append(srd, &flow->busy, flight->work);
    srd_flows_drop(srd, flight);
    if (!flow->busy_wait.wait)
        srd_sender_await_receive(srd, flow, now);
}

/* Takes the answer to one packet. A READ ends by its response, or by a refusal. */
static void take_response(struct srd *srd, struct srd_flow *flow, uint32_t number, uint32_t status, nanos now)
{
    struct srd_flight *flight = srd_flows_at(flow, number);
    if (!flight || status == SRD_OPEN)
        return;
    const struct send_wqe *work = send_queue_at(&srd->common.queue, flight->work);
    if (status == SRD_DONE && request_kind(work)->class == REQUEST_READ)
        return;
    srd_flights_stop(srd, flight);
    if (status == SRD_DONE)
        finish(srd, flight);
    else if (status == SRD_NO_RECEIVE)
        wait_for_receive(srd, flight, now);
    else
        fail_by(srd, flight, status);
}

/* The receiver has forgotten the flow, and with it what it has executed: what waits for an answer ends. */
static cold void lose_flow(struct srd *srd, struct srd_flow *flow)
{
    while (flow->floor != flow->next) {
        struct srd_flight *flight = srd_flows_at(flow, flow->floor);
        srd_flights_stop(srd, flight);
        fail_by(srd, flight, SRD_STRANGER);
    }
    srd_flows_renew(srd, flow);
}

static cold void take_welcome(struct srd *srd, struct srd_flow *flow, const struct packet *packet)
{
    if (flow->open)
        return;
    srd_flights_stop(srd, &flow->greeting);
    flow->greeting.tries = 0;
    flow->greets = false;
    flow->cookie = packet->srd.cookie;
    flow->open = true;
}

static cold void refuse_greeting(struct srd *srd, struct srd_flow *flow, const struct packet *packet)
{
    uint32_t status = packet->srd.floor;
    if (status != SRD_NO_QP || packet->payload.length)
        return drop_response(srd, packet, REASON_PACKET_STALE_RESPONSE);
    srd_flights_stop(srd, &flow->greeting);
    srd_sender_fail_flow(srd, flow, refusals[status].status, refusals[status].reason);
    srd_flows_renew(srd, flow); /* so a second refusal ends no work that comes now */
}

static void take_acknowledge(struct srd *srd, struct srd_flow *flow, const struct packet *packet, nanos now)
{
    uint8_t statuses[SRD_WINDOW];
    struct iovec to = {statuses, packet->payload.length};
    if (!packet->payload.length && packet->srd.floor == SRD_STRANGER && srd_flows_at(flow, packet->srd.number))
        return lose_flow(srd, flow);
    if (!packet->payload.length)
        return take_response(srd, flow, packet->srd.number, packet->srd.floor, now);
    if (packet->payload.length > sizeof statuses || !payload_copy(&packet->payload, 0, &to, 1))
        return drop_response(srd, packet, REASON_PACKET_PULL);
    for (uint32_t i = 0; i < packet->payload.length; i++)
        take_response(srd, flow, packet->srd.number + i, statuses[i], now);
}

static void take_data(struct srd *srd, struct srd_flow *flow, const struct packet *packet)
{
    struct srd_flight *flight = srd_flows_at(flow, packet->srd.number);
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint32_t count;
    if (!flight || flight->length != packet->payload.length)
        return drop_response(srd, packet, REASON_PACKET_STALE_RESPONSE);
    const struct send_wqe *work = send_queue_at(&srd->common.queue, flight->work);
    if (request_kind(work)->class != REQUEST_READ)
        return drop_response(srd, packet, REASON_PACKET_STALE_RESPONSE);
    enum reason reason =
        gather(srd->common.owner, work, IBV_ACCESS_LOCAL_WRITE, flight->offset, flight->length, pieces, &count);
    bool stored = !reason && payload_copy(&packet->payload, 0, pieces, count);
    if (!reason && !stored && payload_can_land(pieces, count))
        return drop_response(srd, packet, REASON_PACKET_PULL);
    srd_flights_stop(srd, flight);
    if (stored)
        return finish(srd, flight);
    reason = reason ? reason : REASON_LOCAL_GONE;
    srd_sender_fail(srd, flight, request_status(reason), reason);
}

void srd_responses_receive(struct srd *srd, const struct packet *packet, nanos now)
{
    struct srd_flow *flow = srd_flows_of_epoch(srd, packet->srd.epoch);
    enum operation operation = op_operation(packet->opcode);
    if (!flow || packet->source != flow->receiver || (flow->open && packet->srd.cookie != flow->cookie))
        return drop_response(srd, packet, REASON_PACKET_STALE_RESPONSE);
    flow->heard = true;
    if (operation == OPERATION_WELCOME)
        take_welcome(srd, flow, packet);
    else if (!flow->open)
        refuse_greeting(srd, flow, packet);
    else if (operation == OPERATION_ACKNOWLEDGE)
        take_acknowledge(srd, flow, packet, now);
    else
        take_data(srd, flow, packet);
    srd_flows_judge(srd, flow);
}
