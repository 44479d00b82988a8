#include "transport/testing/simulator/workload.h"

#include <stdlib.h>
#include <string.h>

#include "transport/testing/simulator/endpoint.h"
#include "transport/testing/simulator/judge.h"
#include "transport/testing/simulator/owner.h"

enum { UNTOUCHED = 0xa5, BATCH = 4, WORD = sizeof(uint64_t) };

static struct chance *chance_of(struct endpoint *endpoint)
{
    return &endpoint->world->chance;
}

/* Mostly a few bytes, sometimes about a whole number of packets. Unreliable messages have room to say which they are.
 */
static uint32_t choose_length(struct endpoint *endpoint)
{
    struct chance *chance = chance_of(endpoint);
    uint32_t least = endpoint_is_reliable(endpoint) ? 1 : 4, segment = endpoint->segment, length;
    if (chance_hits(chance, 60))
        return 0;
    if (chance_hits(chance, 400))
        return chance_between(chance, least, INLINE_MAX);
    if (chance_hits(chance, 300))
        length = chance_between(chance, 1, 4) * segment + chance_between(chance, 0, 2) - 1;
    else
        length = chance_between(chance, least, endpoint->longest);
    return length > endpoint->longest ? endpoint->longest : length;
}

static void make_content(struct endpoint *endpoint, struct entry *entry)
{
    entry->content = malloc(entry->length + 1);
    judge_fill(endpoint, endpoint->posted, entry->content, entry->length);
}

/* The message's local memory: inline, or new buffers. */
static void make_source(struct endpoint *endpoint, struct entry *entry)
{
    if (entry->length <= INLINE_MAX && chance_hits(chance_of(endpoint), 300)) {
        entry->flags |= IBV_SEND_INLINE;
        return;
    }
    entry->sge_count = buffers_spread(&endpoint->buffers, chance_of(endpoint), entry->length, SGE_MAX, entry->sge);
    buffers_write(&endpoint->buffers, entry->sge, entry->sge_count, entry->content, entry->length);
}

/* Makes the place for the result of a READ or an atomic. */
static void make_landing(struct endpoint *endpoint, struct entry *entry)
{
    entry->sge_count = buffers_spread(&endpoint->buffers, chance_of(endpoint), entry->length, SGE_MAX, entry->sge);
    buffers_fill(&endpoint->buffers, entry->sge, entry->sge_count, UNTOUCHED);
}

static bool overlaps(const struct entry *a, const struct entry *b)
{
    return a->remote < b->remote + b->length && b->remote < a->remote + a->length;
}

/* Adds a fence: without it, a WRITE may overtake the data of an earlier READ. */
static void fence_against_reads(struct endpoint *endpoint, struct entry *entry)
{
    for (uint32_t i = endpoint->ended; i < endpoint->posted; i++)
        if (endpoint->works[i].opcode == IBV_WR_RDMA_READ && overlaps(&endpoint->works[i], entry))
            entry->flags |= IBV_SEND_FENCE;
}

static void choose_target(struct endpoint *endpoint, struct entry *entry, uint32_t alignment)
{
    entry->rkey = KEY_TARGET;
    entry->remote = chance_below(chance_of(endpoint), TARGET_BYTES - entry->length + 1);
    entry->remote -= entry->remote % alignment;
}

static void plan_message(struct endpoint *endpoint, struct entry *entry)
{
    entry->length = choose_length(endpoint);
    make_content(endpoint, entry);
    make_source(endpoint, entry);
}

static void plan_write(struct endpoint *endpoint, struct entry *entry)
{
    bool atomic = entry->opcode == IBV_WR_ATOMIC_WRITE;
    entry->length = atomic ? WORD : choose_length(endpoint);
    choose_target(endpoint, entry, atomic ? WORD : 1);
    make_content(endpoint, entry);
    for (uint32_t i = 0; i < entry->length && !endpoint_is_reliable(endpoint); i++)
        entry->content[i] = judge_target_byte(entry->remote + i);
    make_source(endpoint, entry);
    fence_against_reads(endpoint, entry);
    memcpy(endpoint->model + entry->remote, entry->content, entry->length);
}

static void plan_read(struct endpoint *endpoint, struct entry *entry)
{
    entry->length = choose_length(endpoint);
    choose_target(endpoint, entry, 1);
    entry->content = malloc(entry->length + 1);
    memcpy(entry->content, endpoint->model + entry->remote, entry->length);
    make_landing(endpoint, entry);
}

static void plan_flush(struct endpoint *endpoint, struct entry *entry, struct send_wqe *work)
{
    entry->length = choose_length(endpoint);
    choose_target(endpoint, entry, 1);
    work->compare_or_add = entry->length;
    work->swap = NEWER_FLUSH_GLOBAL | (chance_hits(chance_of(endpoint), 500) ? NEWER_FLUSH_REGION << 8 : 0);
    entry->length = 0;
}

/* Plans an atomic. The result is known on the pair's own counters; on the node's shared one only the sum is. */
static void plan_atomic(struct endpoint *endpoint, struct entry *entry, struct send_wqe *work)
{
    struct chance *chance = chance_of(endpoint);
    uint32_t which = chance_below(chance, COUNTERS);
    uint64_t *model = &endpoint->counter_model[which], original = *model;
    entry->length = WORD;
    entry->rkey = KEY_COUNTERS;
    entry->remote = which * WORD;
    make_landing(endpoint, entry);
    work->compare_or_add = chance_below(chance, 1 << 20);
    work->swap = chance_next(chance);
    if (entry->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && chance_hits(chance, 400)) {
        entry->rkey = KEY_SHARED;
        entry->remote = 0;
        entry->add = work->compare_or_add;
        return;
    }
    entry->content = malloc(WORD);
    memcpy(entry->content, &original, WORD);
    if (entry->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        *model += work->compare_or_add;
        return;
    }
    if (chance_hits(chance, 600))
        work->compare_or_add = original;
    if (work->compare_or_add == original)
        *model = work->swap;
}

/* The data that an earlier READ brings is sent on: only the fence makes that right. */
static bool plan_forwarding(struct endpoint *endpoint, struct entry *entry)
{
    for (uint32_t i = endpoint->posted; i-- > endpoint->ended;) {
        const struct entry *read = &endpoint->works[i];
        if (read->opcode != IBV_WR_RDMA_READ || read->fault)
            continue;
        entry->flags |= IBV_SEND_FENCE;
        entry->length = read->length;
        entry->content = malloc(read->length + 1);
        memcpy(entry->content, read->content, read->length);
        memcpy(entry->sge, read->sge, sizeof(read->sge));
        entry->sge_count = read->sge_count;
        buffers_keep(&endpoint->buffers, entry->sge, entry->sge_count);
        return true;
    }
    return false;
}

static uint8_t choose_opcode(struct endpoint *endpoint)
{
    static const uint8_t reliable[] = {
        IBV_WR_SEND,      IBV_WR_SEND,         IBV_WR_SEND_WITH_IMM,      IBV_WR_SEND_WITH_INV,
        IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,    IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_LOCAL_INV, IBV_WR_ATOMIC_WRITE, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
        NEWER_WR_FLUSH,
    };
    static const uint8_t unreliable[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                         IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_LOCAL_INV};
    if (endpoint_is_reliable(endpoint))
        return reliable[chance_below(chance_of(endpoint), sizeof(reliable))];
    return unreliable[chance_below(chance_of(endpoint), endpoint->service == SERVICE_UC ? 5 : 2)];
}

static void plan_entry(struct endpoint *endpoint, struct entry *entry, struct send_wqe *work)
{
    switch (entry->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_ATOMIC_WRITE:
        plan_write(endpoint, entry);
        break;
    case IBV_WR_RDMA_READ:
        plan_read(endpoint, entry);
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        plan_atomic(endpoint, entry, work);
        break;
    case NEWER_WR_FLUSH:
        plan_flush(endpoint, entry, work);
        break;
    case IBV_WR_LOCAL_INV:
        break;
    default:
        if (!endpoint_is_reliable(endpoint) || !chance_hits(chance_of(endpoint), 150) ||
            !plan_forwarding(endpoint, entry))
            plan_message(endpoint, entry);
    }
}

/* A work of the chosen fault: a message, a WRITE or an atomic that is wrong in one way. */
static void plan_fault(struct endpoint *endpoint, struct entry *entry)
{
    enum { MUCH = 1 << 16, BYTES = 100 };
    bool writes = endpoint->service != SERVICE_UD && entry->fault == FAULT_REMOTE_KEY;
    entry->opcode = entry->fault == FAULT_MISALIGNED ? IBV_WR_ATOMIC_FETCH_AND_ADD
                    : writes                         ? IBV_WR_RDMA_WRITE
                                                     : IBV_WR_SEND;
    entry->length = entry->fault == FAULT_MISALIGNED            ? WORD
                    : entry->fault == FAULT_LONGER_THAN_ALLOWED ? MUCH + 1
                    : entry->fault == FAULT_LONGER_THAN_RECEIVE ? endpoint->longest + 1
                                                                : BYTES;
    entry->rkey = entry->fault == FAULT_MISALIGNED ? KEY_COUNTERS : KEY_NOBODY;
    entry->remote = entry->fault == FAULT_MISALIGNED ? WORD / 2 : 0;
    entry->flags &= ~IBV_SEND_INLINE;
    entry->sge_count = 1;
    make_content(endpoint, entry);
    entry->sge_count = buffers_spread(&endpoint->buffers, chance_of(endpoint), entry->length, 1, entry->sge);
    buffers_write(&endpoint->buffers, entry->sge, entry->sge_count, entry->content, entry->length);
}

static bool consumes_receive(uint8_t opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
           opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void fill_work(const struct endpoint *endpoint, const struct entry *entry, struct send_wqe *work)
{
    work->id = endpoint->posted;
    work->opcode = entry->opcode;
    work->flags = entry->flags;
    work->length = entry->length;
    work->immediate = entry->immediate;
    work->rkey = entry->rkey;
    work->remote_address = entry->remote;
    work->remote_qp = entry->remote_qp;
    work->remote_qkey = entry->remote_qp & 1 ? 0x80000000 : 0x1234; /* our own, or as it is */
    work->remote_srq = endpoint->peer ? endpoint->peer->number : 0;
    work->sge_count = entry->sge_count;
    if (entry->flags & IBV_SEND_INLINE)
        memcpy(work->inline_data, entry->content, entry->length);
    else
        memcpy(work->sge, entry->sge, entry->sge_count * sizeof(*entry->sge));
    for (uint32_t i = 0; entry->fault == FAULT_LOCAL_KEY && i < entry->sge_count; i++)
        work->sge[i].lkey = KEY_NOBODY;
}

/* Chooses a pair's peer; for a datagram any datagram endpoint, this one, too. */
static struct endpoint *choose_receiver(struct endpoint *endpoint)
{
    struct world *world = endpoint->world;
    uint32_t first = world->count - world->plan.datagrams;
    if (endpoint->peer)
        return endpoint->peer;
    return &world->endpoints[first + chance_below(&world->chance, world->plan.datagrams)];
}

/* The receiver's program posts a receive for each message: usually at once, sometimes late. */
static void announce_receive(struct endpoint *receiver)
{
    struct world *world = receiver->world;
    nanos late = chance_hits(&world->chance, 300) ? chance_below(&world->chance, world->plan.late_receives) : 0;
    events_add(&world->events,
               (struct world_event){.time = world->now + late, .kind = EVENT_POST_RECEIVE, .target = receiver->index});
}

static unsigned choose_flags(struct endpoint *endpoint)
{
    struct chance *chance = chance_of(endpoint);
    return (chance_hits(chance, 500) ? IBV_SEND_SIGNALED : 0) | (chance_hits(chance, 200) ? IBV_SEND_SOLICITED : 0) |
           (chance_hits(chance, 150) ? IBV_SEND_FENCE : 0);
}

/* False: the queue is full. */
static bool post_one(struct endpoint *endpoint)
{
    struct send_queue *queue = engine_queue(&endpoint->engine);
    struct send_wqe *work = send_queue_reserve(queue);
    struct entry *entry = &endpoint->works[endpoint->posted];
    struct endpoint *receiver = choose_receiver(endpoint);
    if (!work)
        return false;
    memset(work, 0, sizeof(*work));
    entry->flags = choose_flags(endpoint);
    entry->opcode = choose_opcode(endpoint);
    entry->remote_qp = receiver->number;
    entry->posted = endpoint->world->now;
    entry->immediate = endpoint->posted + (entry->opcode == IBV_WR_SEND_WITH_INV ? KEY_REVOCABLE : 0);
    if (endpoint->fault && endpoint->posted == endpoint->fault_at)
        entry->fault = endpoint->fault;
    if (entry->fault)
        plan_fault(endpoint, entry);
    else
        plan_entry(endpoint, entry, work);
    entry->consumes = consumes_receive(entry->opcode);
    entry->target_hash = entry->consumes ? judge_hash(endpoint->model, endpoint->counter_model) : 0;
    fill_work(endpoint, entry, work);
    world_note(endpoint->world, endpoint, "posts", entry->opcode, entry->length);
    if (entry->consumes)
        announce_receive(receiver);
    endpoint->posted++;
    send_queue_commit(queue);
    return true;
}

void workload_post(struct endpoint *endpoint)
{
    struct world *world = endpoint->world;
    nanos pause = NANOS_MICROSECOND + chance_below(&world->chance, world->plan.pause);
    for (unsigned n = chance_between(&world->chance, 1, BATCH); n && endpoint->posted < endpoint->to_post; n--)
        if (!post_one(endpoint)) {
            pause = NANOS_MILLISECOND;
            break;
        }
    engine_posted(&endpoint->engine);
    if (endpoint_is_flushing(endpoint) && endpoint->ended != endpoint->posted)
        world_complain(world, endpoint, "keeps work in the error state");
    if (endpoint->posted < endpoint->to_post)
        events_add(&world->events,
                   (struct world_event){.time = world->now + pause, .kind = EVENT_POST, .target = endpoint->index});
}

/* The peer's message that takes the receive number `index`, when it was posted already. */
static const struct entry *find_message(const struct endpoint *sender, uint32_t index)
{
    for (uint32_t i = 0; i < sender->posted; i++)
        if (sender->works[i].consumes && index-- == 0)
            return &sender->works[i];
    return NULL;
}

/* Chooses the message's exact length when that is known; else enough for any message. */
static uint32_t choose_room(struct endpoint *endpoint)
{
    const struct entry *entry = NULL;
    if (endpoint_is_reliable(endpoint))
        entry = find_message(endpoint->peer, endpoint->receives_posted);
    if (endpoint->service == SERVICE_UD && endpoint->world->plan.errors && chance_hits(chance_of(endpoint), 200))
        return chance_below(chance_of(endpoint), endpoint->longest); /* too short for some */
    if (!entry)
        return endpoint->longest + (endpoint->service == SERVICE_UD ? UD_GRH_LENGTH : 0);
    if (entry->fault == FAULT_LONGER_THAN_RECEIVE)
        return entry->length - 1;
    return entry->length + (chance_hits(chance_of(endpoint), 500) ? 0 : chance_below(chance_of(endpoint), 100));
}

void workload_post_receive(struct endpoint *endpoint)
{
    struct world *world = endpoint->world;
    if (endpoint->receives_posted == RECEIVES_MAX)
        return;
    struct posted_receive *slot = calloc(1, sizeof(*slot));
    uint32_t count = buffers_spread(&endpoint->buffers, &world->chance, choose_room(endpoint), SGE_MAX, slot->sge);
    buffers_fill(&endpoint->buffers, slot->sge, count, UNTOUCHED);
    slot->receive = (struct recv_wqe){.id = endpoint->receives_posted, .sge_count = count, .sge = slot->shown};
    slot->bad_key = world->plan.errors && chance_hits(&world->chance, 5);
    memcpy(slot->shown, slot->sge, sizeof(slot->sge));
    for (uint32_t i = 0; slot->bad_key && i < count; i++)
        slot->shown[i].lkey = KEY_NOBODY;
    endpoint->bad_receive |= slot->bad_key;
    endpoint->receives[endpoint->receives_posted++] = slot;
    world_note(world, endpoint, "posts a receive", endpoint->receives_posted, slot->bad_key);
    if (endpoint->failed)
        owner_flush_receives(endpoint);
}
