#include "verbs/queue/receive_queue.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/likely.h"
#include "base/result.h"
#include "events/refusal.h"
#include "transport/scatter.h"
#include "verbs/object/domain.h"

/* Slots are allocated in chunks that never move: a message in progress keeps its receive while the queue grows. */
struct receive_chunk {
    struct receive_chunk *next;
    struct domain_block memory; /* the chunk's own */
    uint64_t slots[];
};

static size_t slot_size(const struct receive_queue *queue)
{
    return sizeof(struct receive_slot) + queue->sge_max * sizeof(struct ibv_sge);
}

/* The program's allocator may be called: under no lock. */
static int make_chunk(const struct receive_queue *queue, uint32_t count, struct receive_chunk **chunk)
{
    struct domain_block block;
    size_t size = sizeof **chunk + count * slot_size(queue);
    int error = domain_take(queue->domain, (enum domain_resource)queue->resource, size, &block);
    if (error)
        return error;
    *chunk = block.memory;
    memset(*chunk, 0, size);
    (*chunk)->memory = block;
    return 0;
}

static void add_chunk(struct receive_queue *queue, struct receive_chunk *chunk, uint32_t count)
{
    size_t size = slot_size(queue);
    chunk->next = queue->chunks;
    queue->chunks = chunk;
    for (uint32_t i = 0; i < count; i++) {
        struct receive_slot *slot = (struct receive_slot *)((char *)chunk->slots + i * size);
        slot->receive.sge = slot->sge;
        STAILQ_INSERT_TAIL(&queue->unused, slot, next);
    }
    queue->slots += count;
}

int receive_queue_initialize(struct receive_queue *queue, struct ibv_pd *pd, uint64_t resource, uint32_t capacity,
                             uint32_t sge_max)
{
    struct receive_chunk *chunk;
    memset(queue, 0, sizeof *queue);
    lock_set_rank(&queue->lock, LOCK_RECEIVES);
    STAILQ_INIT(&queue->posted);
    STAILQ_INIT(&queue->unused);
    queue->sge_max = sge_max;
    queue->domain = domain_of(pd);
    queue->resource = resource;
    queue->retires = resource == DOMAIN_SRQ ? 0 : 1; /* the queue pairs of an SRQ may have several CQs */
    int error = capacity ? make_chunk(queue, capacity, &chunk) : 0;
    if (!error && capacity)
        add_chunk(queue, chunk, capacity);
    queue->capacity = queue->slots;
    return error;
}

void receive_queue_destroy(struct receive_queue *queue)
{
    if (queue->source)
        queue->source->release(queue->source);
    for (struct receive_chunk *chunk = queue->chunks, *next; chunk; chunk = next) {
        struct domain_block block = chunk->memory;
        next = chunk->next;
        domain_give_back(&block);
    }
}

/* Places that are not free. */
static inline uint32_t places_used(const struct receive_queue *queue)
{
    return queue->entered - atomic_load_explicit(&queue->polled, memory_order_acquire);
}

/* Returns true if `capacity` is enough for the places that are not free, whose number is *used. */
static bool fits(const struct receive_queue *queue, uint32_t capacity, uint32_t *used)
{
    lock_assert_held(&queue->lock);
    *used = places_used(queue);
    return capacity >= *used;
}

static int refuse_capacity(uint32_t capacity, uint32_t used)
{
    return refuse(EINVAL, REASON_SRQ_HOLDS_MORE, "max_wr is %u, and %u places are used", capacity, used);
}

int receive_queue_resize(struct receive_queue *queue, uint32_t capacity)
{
    struct receive_chunk *chunk = NULL;
    uint32_t used;
    lock_take(&queue->lock);
    bool fitting = fits(queue, capacity, &used);
    uint32_t more = capacity > queue->slots ? capacity - queue->slots : 0;
    lock_release(&queue->lock);
    int error = !fitting ? refuse_capacity(capacity, used) : more ? make_chunk(queue, more, &chunk) : 0;
    if (error)
        return error;
    lock_take(&queue->lock);
    if (chunk)
        add_chunk(queue, chunk, more);
    fitting = fits(queue, capacity, &used); /* more may have been posted meanwhile */
    if (fitting)
        queue->capacity = capacity;
    lock_release(&queue->lock);
    return fitting ? 0 : refuse_capacity(capacity, used);
}

/* REASON_TOO_MANY_SGES, REASON_RECEIVE_QUEUE_FULL, or none. */
static enum reason enter_one(struct receive_queue *queue, const struct ibv_recv_wr *wr)
{
    lock_assert_held(&queue->lock);
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->sge_max)
        return REASON_TOO_MANY_SGES;
    if (places_used(queue) >= queue->capacity)
        return REASON_RECEIVE_QUEUE_FULL;
    struct receive_slot *slot = STAILQ_FIRST(&queue->unused);
    STAILQ_REMOVE_HEAD(&queue->unused, next);
    slot->receive.id = wr->wr_id;
    slot->receive.sge_count = (uint32_t)wr->num_sge;
    slot->receive.skip = 0;
    for (int i = 0; i < wr->num_sge; i++)
        slot->sge[i] = wr->sg_list[i];
    STAILQ_INSERT_TAIL(&queue->posted, slot, next);
    queue->count++;
    queue->entered++;
    return REASON_NONE;
}

static int post_one(struct receive_queue *queue, const struct ibv_recv_wr *wr)
{
    enum reason reason = enter_one(queue, wr); /* tell_refusal writes the line */
    return !reason ? 0 : refused(reason == REASON_TOO_MANY_SGES ? EINVAL : ENOMEM);
}

bool receive_queue_feed(struct receive_queue *queue, struct receive_source *source)
{
    lock_take(&queue->lock);
    bool first = !queue->source;
    if (first)
        queue->source = source;
    lock_release(&queue->lock);
    return first;
}

bool receive_queue_enter(struct receive_queue *queue, const struct ibv_recv_wr *wr)
{
    return !enter_one(queue, wr);
}

/* Called wherever the posted receives count. */
static inline void pull(struct receive_queue *queue)
{
    lock_assert_held(&queue->lock);
    if (unlikely(queue->source != NULL))
        queue->source->pull(queue);
}

struct receive_queue_state receive_queue_look(struct receive_queue *queue)
{
    lock_take(&queue->lock);
    pull(queue);
    bool refused = queue->refused.count && queue->refused.entered == queue->entered;
    struct receive_queue_state state = {queue->count, queue->capacity, queue->limit, refused ? queue->refused.count : 0,
                                        refused ? queue->refused.reason : REASON_NONE};
    lock_release(&queue->lock);
    return state;
}

bool receive_queue_next(struct receive_queue *queue, uint64_t *id, uint32_t *room)
{
    lock_take(&queue->lock);
    pull(queue);
    const struct receive_slot *slot = STAILQ_FIRST(&queue->posted);
    if (slot) {
        uint64_t bytes = scatter_room(&slot->receive);
        *id = slot->receive.id;
        *room = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    }
    lock_release(&queue->lock);
    return slot;
}

void receive_queue_note_refused(struct receive_queue *queue, enum reason reason)
{
    lock_take(&queue->lock);
    bool again = queue->refused.count && queue->refused.entered == queue->entered;
    queue->refused.count = again ? queue->refused.count + 1 : 1;
    queue->refused.entered = queue->entered;
    queue->refused.reason = (uint16_t)reason;
    lock_release(&queue->lock);
}

cold static void tell_refusal(struct receive_queue *queue, const struct ibv_recv_wr *wr, int error, uint32_t count)
{
    const struct receive_queue_owner *owner = &queue->owner;
    char call[96];
    snprintf(call, sizeof call, "%s 0x%x: %s of wr_id %llu", owner->kind, owner->number, owner->call,
             (unsigned long long)wr->wr_id);
    receive_queue_note_refused(queue, error == ENOMEM ? REASON_RECEIVE_QUEUE_FULL : REASON_TOO_MANY_SGES);
    if (error == ENOMEM)
        refuse_in(call, error, REASON_RECEIVE_QUEUE_FULL, "a queue of %u receives, and %u wait for a message",
                  queue->capacity, count);
    else
        refuse_in(call, error, REASON_TOO_MANY_SGES, "%d elements, and the queue was made for %u", wr->num_sge,
                  queue->sge_max);
}

int receive_queue_post(struct receive_queue *queue, const struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int error = 0;
    lock_take(&queue->lock);
    for (; wr && !error; wr = error ? wr : wr->next)
        error = post_one(queue, wr);
    uint32_t count = queue->count;
    lock_release(&queue->lock);
    if (likely(!error))
        return 0;
    *bad = (struct ibv_recv_wr *)wr;
    tell_refusal(queue, wr, error, count);
    return result_failure(error);
}

const struct recv_wqe *receive_queue_take(struct receive_queue *queue, uint64_t least, bool *limit_reached)
{
    lock_take(&queue->lock);
    pull(queue);
    struct receive_slot *slot = STAILQ_FIRST(&queue->posted);
    bool short_of_room = least && slot && scatter_room(&slot->receive) < least;
    *limit_reached = false;
    if (slot && !short_of_room) {
        STAILQ_REMOVE_HEAD(&queue->posted, next);
        queue->count--;
        *limit_reached = queue->count < queue->limit;
        if (*limit_reached)
            queue->limit = 0;
    }
    lock_release(&queue->lock);
    return short_of_room ? &receive_too_short : slot ? &slot->receive : NULL;
}

static struct receive_slot *slot_of(const struct recv_wqe *receive)
{
    return (struct receive_slot *)((char *)receive - offsetof(struct receive_slot, receive));
}

void receive_queue_return(struct receive_queue *queue, const struct recv_wqe *receive)
{
    struct receive_slot *slot = slot_of(receive);
    lock_take(&queue->lock);
    STAILQ_INSERT_HEAD(&queue->posted, slot, next);
    queue->count++;
    lock_release(&queue->lock);
}

void receive_queue_free(struct receive_queue *queue, const struct recv_wqe *receive)
{
    struct receive_slot *slot = slot_of(receive);
    lock_take(&queue->lock);
    STAILQ_INSERT_HEAD(&queue->unused, slot, next); /* the one whose cache lines are warm is the next to be used */
    lock_release(&queue->lock);
}

void receive_queue_lost(struct receive_queue *queue)
{
    lock_take(&queue->lock);
    queue->entered--;
    lock_release(&queue->lock);
}

void receive_queue_drop(struct receive_queue *queue, const struct recv_wqe *receive)
{
    receive_queue_free(queue, receive);
    receive_queue_lost(queue);
}

void receive_queue_clear(struct receive_queue *queue)
{
    lock_take(&queue->lock);
    STAILQ_CONCAT(&queue->unused, &queue->posted);
    queue->entered -= queue->count;
    queue->count = 0;
    if (queue->source)
        queue->source->clear(queue->source);
    lock_release(&queue->lock);
}

void receive_queue_settle(struct receive_queue *queue)
{
    lock_take(&queue->lock);
    atomic_store_explicit(&queue->polled, queue->entered - queue->count, memory_order_relaxed);
    lock_release(&queue->lock);
}
