#include "transport/srd/srd.h"

#include <string.h>

#include "base/container.h"
#include "base/likely.h"
#include "transport/bth.h"
#include "transport/srd/flights.h"
#include "transport/srd/flows.h"
#include "transport/srd/responses.h"
#include "transport/srd/sender.h"
#include "transport/srd/sources.h"
#include "transport/srd/works.h"

static struct srd *srd_of(struct unreliable *common)
{
    return container_of(common, struct srd, common);
}

static void srd_initialize(struct unreliable *common)
{
    struct srd *srd = srd_of(common);
    struct srd_state *state = common->owner->operations->room(common->owner, sizeof *state);
    srd->requester = &state->requester;
    srd->responder = &state->responder;
    srd_flights_start(srd);
    srd_flows_start(srd);
    srd_sources_start(srd);
}

static void srd_posted(struct unreliable *common)
{
    srd_flush_works(srd_of(common));
}

static cold void refuse(struct srd *srd, const struct packet *packet, enum reason reason)
{
    struct packet out;
    srd->common.owner->operations->dropped(srd->common.owner, packet, reason);
    if (srd_refusal(packet, &out))
        srd->common.owner->operations->reply(srd->common.owner, packet, &out);
}

void srd_take(struct srd *srd, const struct packet *packet, nanos now)
{
    const struct unreliable *common = &srd->common;
    enum reason reason = bth_check(&common->settings, SERVICE_SRD, common->receiving, common->failed, packet);
    if (unlikely(reason != REASON_NONE))
        refuse(srd, packet, reason);
    else if (op_table[packet->opcode].flags & OP_RESPONSE)
        srd_responses_receive(srd, packet, now);
    else
        srd_sources_receive(srd, packet);
}

static void srd_receive(struct unreliable *common, const struct packet *packet, nanos now)
{
    srd_take(srd_of(common), packet, now);
}

bool srd_next(struct srd *srd, struct engine_target *target)
{
    const struct srd_source *source = srd_sources_next(srd);
    const struct send_wqe *work = source ? NULL : srd_sender_next(srd);
    if (source)
        *target = (struct engine_target){.gid = source->gid, .number = source->number};
    else if (work)
        *target = (struct engine_target){.address = work->address, .number = work->remote_qp};
    return source || work;
}

bool srd_write(struct srd *srd, struct packet *out, struct iovec *pieces, nanos now)
{
    srd->requester->last = NULL;
    if (srd_sources_next(srd))
        return srd_sources_transmit(srd, out, pieces);
    srd_sender_admit(srd);
    return srd_sender_transmit(srd, out, pieces, now);
}

static bool srd_transmit(struct unreliable *common, struct packet *out, struct iovec *pieces, nanos now)
{
    return srd_write(srd_of(common), out, pieces, now);
}

void srd_hold(struct srd *srd, nanos now)
{
    if (srd_sources_next(srd))
        srd_sources_hold(srd);
    else
        srd_sender_hold(srd, now);
}

void srd_nobody(struct srd *srd)
{
    if (srd_sources_next(srd))
        srd_sources_lose(srd);
    else
        srd_sender_nobody(srd);
}

void srd_retry(struct srd *srd)
{
    if (srd->requester->held)
        srd_sender_retry(srd);
    if (srd_sources_held(srd))
        srd_sources_retry(srd);
}

static void srd_unreadable(struct unreliable *common)
{
    srd_sender_unreadable(srd_of(common));
}

static void srd_expire(struct unreliable *common, nanos now)
{
    struct srd *srd = srd_of(common);
    srd->requester->watched = NANOS_NEVER;
    srd_sender_expire(srd, now);
}

static nanos srd_deadline(const struct unreliable *common)
{
    return srd_flights_deadline((const struct srd *)common);
}

static nanos srd_watch(struct unreliable *common)
{
    struct srd *srd = srd_of(common);
    srd->requester->watched = srd_flights_deadline(srd);
    return srd->requester->watched;
}

bool srd_owes(const struct srd *srd)
{
    return srd_sources_next(srd) || srd_sender_may_admit(srd) || srd_flows_ready(srd) || srd->requester->held ||
           srd_sources_held(srd);
}

static bool srd_has_output(const struct unreliable *common)
{
    return srd_owes((const struct srd *)common);
}

static void forget_flow(struct srd *srd, struct srd_flow *flow, const void *argument)
{
    (void)argument;
    for (uint32_t number = flow->floor; number != flow->next; number++) {
        struct srd_flight *flight = srd_flows_at(flow, number);
        if (flight) {
            srd_flights_stop(srd, flight);
            srd_flows_drop(srd, flight);
        }
    }
    flow->greets |= flow->greeting.wait == SRD_HELLO;
    srd_flights_stop(srd, &flow->greeting);
    srd_flights_stop(srd, &flow->busy_wait);
    flow->fresh.any = flow->busy.any = false;
    srd_flows_judge(srd, flow);
}

/* The answers that the responder owes are sent nevertheless: the messages have arrived. */
static void srd_flush(struct unreliable *common)
{
    struct srd *srd = srd_of(common);
    common->failed = true;
    srd_flows_each(srd, forget_flow, NULL);
    srd_flush_works(srd);
}

static void srd_drained(struct unreliable *common)
{
    srd_report_drained(srd_of(common));
}

/* ---- address handles ---- */

/* Finds work of the list that names the address. Each end of work may move the others, so the search begins anew. */
static bool find_work(struct srd *srd, const struct srd_works *works, const void *address, uint32_t *position)
{
    uint32_t at = works->first;
    for (bool more = works->any; more; at = send_queue_at(&srd->common.queue, at)->srd.link) {
        *position = at;
        if (send_queue_at(&srd->common.queue, at)->address == address)
            return true;
        more = at != works->last;
    }
    return false;
}

static void forget_of_flow(struct srd *srd, struct srd_flow *flow, const void *address)
{
    uint32_t position;
    for (uint32_t number = flow->floor; number != flow->next; number++) {
        struct srd_flight *flight = srd_flows_at(flow, number);
        if (!flight || send_queue_at(&srd->common.queue, flight->work)->address != address)
            continue;
        srd_flights_stop(srd, flight);
        srd_sender_fail(srd, flight, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    }
    while (find_work(srd, &flow->fresh, address, &position) || find_work(srd, &flow->busy, address, &position))
        srd_sender_fail_work(srd, flow, position, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    srd_flows_judge(srd, flow);
}

void srd_forget_address(struct srd *srd, const void *address)
{
    const struct send_queue *queue = &srd->common.queue;
    srd_sender_admit(srd);
    srd_flows_each(srd, forget_of_flow, address);
    for (uint32_t at = queue->next; at != queue->tail; at++) /* in SQD */
        if (send_queue_at(queue, at)->address == address)
            send_queue_at(queue, at)->address = NULL;
}

size_t srd_first_room(void)
{
    return sizeof(struct srd_state);
}

/* Counts a message of its receiver. */
static void describe_work(const struct srd *srd, const struct send_wqe *work, struct engine_messages *messages)
{
    uint32_t i = 0;
    for (; i < messages->receivers; i++) {
        const struct send_wqe *oldest = messages->waiting[i].oldest;
        if (oldest->remote_qp == work->remote_qp && oldest->swap == work->swap)
            break;
    }
    if (i < messages->receivers)
        messages->waiting[i].count++;
    else if (i < ENGINE_WAITING)
        messages->waiting[messages->receivers++] = (struct engine_waiting){work, 1, srd_flows_are_busy(srd, work)};
}

void srd_describe(const struct srd *srd, struct engine_messages *messages)
{
    const struct send_queue *queue = &srd->common.queue;
    *messages = (struct engine_messages){.ended = srd->requester->ended};
    for (uint32_t at = queue->head; at != queue->tail; at++)
        if (srd_work_is_live(srd, at))
            describe_work(srd, send_queue_at(queue, at), messages);
}

const struct unreliable_operations srd_operations = {
    .initialize = srd_initialize,
    .posted = srd_posted,
    .receive = srd_receive,
    .transmit = srd_transmit,
    .unreadable = srd_unreadable,
    .flush = srd_flush,
    .expire = srd_expire,
    .watch = srd_watch,
    .deadline = srd_deadline,
    .has_output = srd_has_output,
    .drained = srd_drained,
};
