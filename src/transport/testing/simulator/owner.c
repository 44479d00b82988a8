#include "transport/testing/simulator/owner.h"

#include "transport/scatter.h"
#include "transport/testing/simulator/endpoint.h"
#include "transport/testing/simulator/judge.h"

static struct endpoint *endpoint_of(struct engine_owner *owner)
{
    return (struct endpoint *)owner;
}

static void sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status, enum reason reason)
{
    struct endpoint *endpoint = endpoint_of(owner);
    const struct watched watched = world_watched(endpoint);
    struct watcher *watcher = endpoint->world->watcher;
    if (watcher)
        watcher->operations->sent(watcher, &watched, work, status);
    judge_sent(endpoint, work, status, reason);
}

static const struct recv_wqe *take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct endpoint *endpoint = endpoint_of(owner);
    if (endpoint->service == SERVICE_XRC && packet->srq != endpoint->number)
        world_complain(endpoint->world, endpoint, "a message for SRQ 0x%x", packet->srq);
    if (endpoint->receives_taken != endpoint->receives_ended)
        world_complain(endpoint->world, endpoint, "takes a receive while it has one");
    if (endpoint->receives_taken == endpoint->receives_posted)
        return NULL;
    const struct recv_wqe *receive = &endpoint->receives[endpoint->receives_taken]->receive;
    if (scatter_room(receive) < least)
        return &receive_too_short;
    endpoint->receives_taken++;
    return receive;
}

static void return_receive(struct engine_owner *owner, const struct recv_wqe *receive)
{
    struct endpoint *endpoint = endpoint_of(owner);
    if (endpoint->receives_taken == endpoint->receives_ended ||
        receive != &endpoint->receives[endpoint->receives_taken - 1]->receive)
        world_complain(endpoint->world, endpoint, "returns a receive that it does not have");
    endpoint->receives_taken--;
}

static void end_receive(struct endpoint *endpoint, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    const struct watched watched = world_watched(endpoint);
    struct watcher *watcher = endpoint->world->watcher;
    if (watcher)
        watcher->operations->received(watcher, &watched, receive, arrival);
    judge_received(endpoint, receive, arrival);
}

static void received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    end_receive(endpoint_of(owner), receive, arrival);
}

static enum reason local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                struct iovec *memory)
{
    struct endpoint *endpoint = endpoint_of(owner);
    if (!sge->length)
        world_complain(endpoint->world, endpoint, "asks for local memory of length 0");
    return buffers_find(&endpoint->buffers, sge, memory);
}

static enum reason remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address, uint32_t length,
                                 unsigned access, struct iovec *memory)
{
    struct endpoint *endpoint = endpoint_of(owner);
    uint8_t *start = rkey == KEY_TARGET     ? endpoint->target
                     : rkey == KEY_COUNTERS ? (uint8_t *)endpoint->counters
                     : rkey == KEY_SHARED   ? (uint8_t *)&endpoint->world->shared[endpoint->node]
                                            : NULL;
    uint64_t size = rkey == KEY_TARGET     ? sizeof(endpoint->target)
                    : rkey == KEY_COUNTERS ? sizeof(endpoint->counters)
                                           : sizeof(endpoint->world->shared[0]);
    if (!length && !(access & NEWER_ACCESS_FLUSH_GLOBAL))
        world_complain(endpoint->world, endpoint, "asks for remote memory of length 0");
    if (!start)
        return REASON_REMOTE_KEY_UNKNOWN;
    if (address > size || length > size - address)
        return REASON_REMOTE_RANGE;
    *memory = (struct iovec){start + address, length};
    return REASON_NONE;
}

/* Each SEND with invalidate has another key, so that a second execution is noticed. */
static enum reason invalidate(struct engine_owner *owner, uint32_t rkey)
{
    struct endpoint *endpoint = endpoint_of(owner);
    uint32_t id = rkey - KEY_REVOCABLE;
    if (id >= endpoint->peer->posted || endpoint->peer->works[id].invalidated)
        return REASON_INVALIDATE_KEY;
    endpoint->peer->works[id].invalidated = true;
    return REASON_NONE;
}

static enum ibv_wc_status local_operation(struct engine_owner *owner, const struct send_wqe *work, enum reason *reason)
{
    struct endpoint *endpoint = endpoint_of(owner);
    world_note(endpoint->world, endpoint, "executes", work->id, 0);
    return IBV_WC_SUCCESS;
}

void owner_flush_receives(struct endpoint *endpoint)
{
    const struct recv_cqe flushed = {.status = IBV_WC_WR_FLUSH_ERR, .reason = REASON_FLUSHED, .opcode = IBV_WC_RECV};
    while (endpoint->receives_taken != endpoint->receives_posted)
        end_receive(endpoint, &endpoint->receives[endpoint->receives_taken++]->receive, &flushed);
}

static void failed(struct engine_owner *owner, bool sqe)
{
    struct endpoint *endpoint = endpoint_of(owner);
    struct world *world = endpoint->world;
    const struct send_queue *queue = engine_queue(&endpoint->engine);
    world_note(world, endpoint, "fails", sqe, 0);
    world_enter(endpoint, IBV_QPS_RTS, sqe ? IBV_QPS_SQE : IBV_QPS_ERR);
    if (!sqe)
        endpoint_flush(endpoint);
    if (queue->head != queue->tail)
        world_complain(world, endpoint, "failed with work in its queue");
    if (sqe) {
        events_add(&world->events, (struct world_event){.time = world->now + chance_below(&world->chance, 100000),
                                                        .kind = EVENT_RESUME,
                                                        .target = endpoint->index});
        return;
    }
    endpoint->failed = true;
    endpoint->gone_since = world->now;
    owner_flush_receives(endpoint);
}

static void event(struct engine_owner *owner, enum ibv_event_type type)
{
    struct endpoint *endpoint = endpoint_of(owner);
    struct world *world = endpoint->world;
    const struct send_queue *queue = engine_queue(&endpoint->engine);
    world_note(world, endpoint, "raises", type, 0);
    if (type != IBV_EVENT_SQ_DRAINED)
        return;
    if (!endpoint->draining || queue->head != queue->next)
        world_complain(world, endpoint, "is not drained");
    endpoint->drained = true;
    events_add(&world->events, (struct world_event){.time = world->now + chance_below(&world->chance, 100000),
                                                    .kind = EVENT_RESUME,
                                                    .target = endpoint->index});
}

static void dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    struct endpoint *endpoint = endpoint_of(owner);
    const struct watched watched = world_watched(endpoint);
    struct watcher *watcher = endpoint->world->watcher;
    world_note(endpoint->world, endpoint, "drops", packet->psn, reason);
    if (watcher)
        watcher->operations->dropped(watcher, &watched, packet, reason);
    if (reason == REASON_NONE)
        world_complain(endpoint->world, endpoint, "drops psn %u for no reason", packet->psn);
}

static void note(struct engine_owner *owner, enum event what, uint64_t a, uint64_t b)
{
    struct endpoint *endpoint = endpoint_of(owner);
    const struct watched watched = world_watched(endpoint);
    struct watcher *watcher = endpoint->world->watcher;
    if (watcher)
        watcher->operations->note(watcher, &watched, what, a, b);
}

static void watch(struct engine_owner *owner, nanos deadline)
{
    struct endpoint *endpoint = endpoint_of(owner);
    if (deadline >= endpoint->watched)
        world_complain(endpoint->world, endpoint, "reports a deadline that is not sooner to its owner");
    world_watch(endpoint, deadline);
}

const struct owner_operations host_of_simulator = {
    .sent = sent,
    .take_receive = take_receive,
    .return_receive = return_receive,
    .received = received,
    .local_memory = local_memory,
    .receive_memory = local_memory,
    .remote_memory = remote_memory,
    .invalidate = invalidate,
    .local_operation = local_operation,
    .failed = failed,
    .event = event,
    .dropped = dropped,
    .note = note,
    .watch = watch,
};
