/* The owner of a queue pair, which records the posted work and knows its proper outcome. */
#include <stdlib.h>
#include <string.h>

#include "transport/scatter.h"
#include "transport/testing/fuzz/bench.h"

static struct side *side_of(struct engine_owner *owner)
{
    struct side *side = (struct side *)owner;
    side->calls++;
    return side;
}

/* ---- work ---- */

BENCH_UNTRACED static bool guard_holds(const uint8_t *guard)
{
    for (unsigned i = 0; i < BENCH_GUARD; i++)
        if (guard[i] != 0xa5)
            return false;
    return true;
}

/* Returns true if the error has a cause; an honest wire and the owners never cause a broken response. */
static bool is_excused(const struct side *side, const struct entry *entry, enum ibv_wc_status status)
{
    unsigned ours = side->excuses, theirs = side->peer->excuses;
    switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_RETRY_EXC_ERR:
        return true;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return engine_settings_of(&side->engine)->rnr_retry < 7;
    case IBV_WC_LOC_PROT_ERR:
        return (entry->excuses & EXCUSE_LOCAL_KEY) || (ours & EXCUSE_DEREGISTERED);
    case IBV_WC_LOC_LEN_ERR:
        return entry->excuses & EXCUSE_LOCAL_LENGTH;
    case IBV_WC_LOC_QP_OP_ERR:
        return entry->excuses & EXCUSE_UNSUPPORTED;
    case IBV_WC_MW_BIND_ERR:
        return ours & EXCUSE_BIND;
    case IBV_WC_REM_ACCESS_ERR:
        return (ours & EXCUSE_REMOTE_KEY) || (theirs & EXCUSE_DEREGISTERED);
    case IBV_WC_REM_INV_REQ_ERR:
        return (ours & (EXCUSE_MISALIGNED | EXCUSE_SRQ)) || (theirs & (EXCUSE_SHORT_RECEIVE | EXCUSE_ACCESS));
    case IBV_WC_REM_OP_ERR:
        return theirs & (EXCUSE_RECEIVE_KEY | EXCUSE_DEREGISTERED);
    default:
        return false;
    }
}

/* A reliable service says success when the peer has it; and a READ or an atomic, when the answer is here, the right
 * one. */
static void judge_success(const struct side *side, const struct entry *entry)
{
    if (!side->bench->honest || !bench_is_reliable(side->bench))
        return;
    require(!entry->consumes || side->delivered > side->ended);
    if (!entry->brings)
        return;
    require(
        !memcmp(entry->result, entry->expected ? entry->expected : (const uint8_t *)&entry->original, entry->length));
}

static void on_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    struct side *side = side_of(owner);
    const struct entry *entry = &side->works[side->ended];
    require(side->ended < side->posted && work->id == side->ended + 1 && work->opcode == entry->opcode);
    require((status == IBV_WC_SUCCESS) == (reason == REASON_NONE));
    if (entry->result)
        require(guard_holds(entry->result + entry->length));
    if (status == IBV_WC_SUCCESS)
        judge_success(side, entry);
    else if (side->bench->honest)
        require(is_excused(side, entry, status));
    side->ended++;
}

static void on_failed(struct engine_owner *owner, bool sqe)
{
    struct side *side = side_of(owner);
    side->send_failures += sqe;
    side->failures += !sqe;
    require(side->failures <= 1 && (!sqe || !bench_is_reliable(side->bench)));
}

/* ---- receives ---- */

static const struct recv_wqe *on_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct side *side = side_of(owner);
    if (side->receives_taken == side->receives_posted)
        return NULL;
    const struct recv_wqe *receive = &side->receives[side->receives_taken % BENCH_QUEUE].receive;
    if (scatter_room(receive) < least)
        return &receive_too_short;
    side->receives_taken++;
    return receive;
}

static void on_return_receive(struct engine_owner *owner, const struct recv_wqe *receive)
{
    struct side *side = side_of(owner);
    if (receive != &side->receives[--side->receives_taken % BENCH_QUEUE].receive)
        abort();
}

static bool is_this(const struct side *sender, const struct entry *entry, const struct posted_receive *slot,
                    const struct recv_cqe *arrival, uint32_t grh)
{
    bool writes = entry->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool immediate = writes || entry->opcode == IBV_WR_SEND_WITH_IMM,
         invalidate = entry->opcode == IBV_WR_SEND_WITH_INV;
    unsigned flags = (immediate ? IBV_WC_WITH_IMM : 0) | (invalidate ? IBV_WC_WITH_INV : 0);
    if (!entry->consumes || arrival->length != grh + entry->length || arrival->flags != flags ||
        arrival->opcode != (writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
        return false;
    if (flags && arrival->immediate_or_key != entry->immediate)
        return false;
    uint32_t skip = slot->receive.skip < entry->length ? slot->receive.skip : entry->length,
             stored = entry->length - skip;
    if (slot->receive.limit && stored > slot->receive.limit)
        stored = slot->receive.limit;
    return writes || !memcmp(slot->place + grh, sender->source + entry->at + skip, stored);
}

/* Finds a delivered message. A reliable one arrives once, in its turn, whole; an unreliable one was sent at least. */
static void find_delivered(struct side *sender)
{
    while (sender->delivered < sender->posted && !sender->works[sender->delivered].consumes)
        sender->delivered++;
    require(sender->delivered < sender->posted);
}

static void judge_message(struct side *side, const struct posted_receive *slot, const struct recv_cqe *arrival)
{
    struct side *sender = side->peer;
    uint32_t grh = side->bench->service == SERVICE_UD ? UD_GRH_LENGTH : 0;
    if (bench_is_reliable(side->bench)) {
        find_delivered(sender);
        require(is_this(sender, &sender->works[sender->delivered], slot, arrival, grh));
        sender->delivered++;
        return;
    }
    unsigned i = 0;
    while (i < sender->posted && !is_this(sender, &sender->works[i], slot, arrival, grh))
        i++;
    require(i < sender->posted);
}

static void on_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct side *side = side_of(owner);
    const struct posted_receive *slot = &side->receives[side->receives_ended % BENCH_QUEUE];
    require(side->receives_ended < side->receives_taken && receive == &slot->receive);
    require((arrival->status == IBV_WC_SUCCESS) == (arrival->reason == REASON_NONE));
    require(guard_holds(slot->place + slot->size));
    if (arrival->status == IBV_WC_SUCCESS) {
        require(arrival->opcode == IBV_WC_RECV_RDMA_WITH_IMM || receive->limit ||
                arrival->length <= slot->size + receive->skip);
        if (side->bench->honest)
            judge_message(side, slot, arrival);
    } else if (arrival->reason == REASON_INVALIDATE_KEY && side->bench->honest) {
        find_delivered(side->peer); /* it is acknowledged all the same */
        side->peer->delivered++;
    }
    side->receives_ended++;
}

/* ---- memory ---- */

struct zone {
    uint32_t key;
    void *memory;
    uint64_t size;
    unsigned access;
};

static enum reason find(struct side *side, const struct zone *zones, unsigned count, uint32_t key, uint64_t address,
                        uint64_t length, unsigned access, struct iovec *memory)
{
    unsigned i = 0;
    while (i < count && zones[i].key != key)
        i++;
    if (i == count || side->deregistered)
        return REASON_LOCAL_KEY_UNKNOWN;
    if (address > zones[i].size || length > zones[i].size - address)
        return REASON_LOCAL_RANGE;
    if ((zones[i].access & access) != access)
        return REASON_LOCAL_PERMISSION;
    side->writable += access && access != IBV_ACCESS_REMOTE_READ;
    *memory = (struct iovec){(uint8_t *)zones[i].memory + address, length};
    return REASON_NONE;
}

static enum reason on_local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                   struct iovec *memory)
{
    struct side *side = side_of(owner);
    const struct zone zones[] = {
        {KEY_SOURCE, side->source, BENCH_SOURCE, 0},
        {KEY_INBOX, side->inbox, BENCH_QUEUE * BENCH_SLOT, IBV_ACCESS_LOCAL_WRITE},
        {KEY_RESULTS, side->results, BENCH_QUEUE * BENCH_SLOT, IBV_ACCESS_LOCAL_WRITE},
    };
    return find(side, zones, 3, sge->lkey, sge->addr, sge->length, access, memory);
}

static enum reason on_remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address, uint32_t length,
                                    unsigned access, struct iovec *memory)
{
    struct side *side = side_of(owner);
    const struct zone zones[] = {
        {KEY_SOURCE, side->source, BENCH_SOURCE, IBV_ACCESS_REMOTE_READ},
        {KEY_TARGET, side->target, BENCH_TARGET, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE},
        {KEY_COUNTERS, side->counters, BENCH_COUNTERS * 8, IBV_ACCESS_REMOTE_ATOMIC},
    };
    enum reason reason = find(side, zones, 3, rkey, address, length, access, memory);
    return reason ? reason + (REASON_REMOTE_KEY_UNKNOWN - REASON_LOCAL_KEY_UNKNOWN) : REASON_NONE;
}

static enum reason on_invalidate(struct engine_owner *owner, uint32_t rkey)
{
    side_of(owner);
    return rkey == KEY_WINDOW ? REASON_NONE : REASON_INVALIDATE_KEY;
}

static enum ibv_wc_status on_local_operation(struct engine_owner *owner, const struct send_wqe *work,
                                             enum reason *reason)
{
    struct side *side = side_of(owner);
    require(work->id == side->ended + 1); /* in its turn, all before it has ended */
    *reason = side->bind_fails ? REASON_INVALIDATE_LOCAL : REASON_NONE;
    return side->bind_fails ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS;
}

/* ---- the rest ---- */

static enum reason on_select_srq(struct engine_owner *owner, uint32_t number)
{
    return number == 1 || number == 2 ? REASON_NONE : REASON_XRC_SRQ;
}

static void on_event(struct engine_owner *owner, enum ibv_event_type event)
{
    side_of(owner);
    require(event == IBV_EVENT_COMM_EST || event == IBV_EVENT_SQ_DRAINED || event == IBV_EVENT_QP_REQ_ERR ||
            event == IBV_EVENT_QP_ACCESS_ERR);
}

static void on_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    struct side *side = side_of(owner);
    require(reason != REASON_NONE);
    side->last_drop = reason;
    side->drops++;
}

static void on_watch(struct engine_owner *owner, nanos deadline)
{
    struct side *side = side_of(owner);
    require(deadline < side->watched);
    side->watched = deadline;
}

const struct owner_operations bench_operations = {
    .sent = on_sent,
    .take_receive = on_take_receive,
    .return_receive = on_return_receive,
    .select_srq = on_select_srq,
    .received = on_received,
    .local_memory = on_local_memory,
    .receive_memory = on_local_memory,
    .remote_memory = on_remote_memory,
    .invalidate = on_invalidate,
    .local_operation = on_local_operation,
    .failed = on_failed,
    .event = on_event,
    .dropped = on_dropped,
    .watch = on_watch,
};

/* ---- expectations ---- */

static void expect_atomic(struct side *side, const struct send_wqe *work, struct entry *entry)
{
    uint64_t *counter = &side->counter_model[work->remote_address / 8 % BENCH_COUNTERS];
    entry->original = *counter;
    entry->length = 8;
    if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        *counter += work->compare_or_add;
    else if (*counter == work->compare_or_add)
        *counter = work->swap;
}

/* Only of valid work: the peer's memory is compared only when nothing has failed. */
static void expect_store(struct side *side, const struct send_wqe *work, const struct entry *entry)
{
    uint32_t length = work->opcode == IBV_WR_ATOMIC_WRITE ? 8 : work->length;
    if (work->rkey == KEY_TARGET && work->remote_address <= BENCH_TARGET - length && entry->at <= BENCH_SOURCE - length)
        memcpy(side->target_model + work->remote_address, side->source + entry->at, length);
}

void bench_expect(struct side *side, const struct send_wqe *work)
{
    struct entry *entry = &side->works[side->posted];
    switch (work->opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        expect_atomic(side, work, entry);
        entry->brings = entry->result;
        return;
    case IBV_WR_RDMA_READ:
        entry->brings = entry->result && work->rkey == KEY_SOURCE;
        entry->expected = side->peer->source + work->remote_address % BENCH_SOURCE;
        return;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_ATOMIC_WRITE:
        expect_store(side, work, entry);
        break;
    default:
        break;
    }
    entry->consumes = work->opcode == IBV_WR_SEND || work->opcode == IBV_WR_SEND_WITH_IMM ||
                      work->opcode == IBV_WR_SEND_WITH_INV || work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
