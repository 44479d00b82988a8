#include "transport/testing/simulator/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/time_scale.h"
#include "transport/scatter.h"
#include "transport/testing/simulator/endpoint.h"
#include "wire/psn.h"

enum { IDENTITY = 4, UNTOUCHED = 0xa5, GUARD = 64 };

void judge_fill(const struct endpoint *sender, uint32_t id, uint8_t *bytes, uint32_t length)
{
    struct chance chance = {(uint64_t)sender->number << 32 | id};
    for (uint32_t i = 0; i < length; i += 8) {
        uint64_t value = chance_next(&chance);
        memcpy(bytes + i, &value, length - i < 8 ? length - i : 8);
    }
    if (!endpoint_is_reliable(sender) && length >= IDENTITY)
        memcpy(bytes, &id, IDENTITY);
}

uint8_t judge_target_byte(uint64_t address)
{
    return 1 + address % 251;
}

uint64_t judge_hash(const uint8_t *target, const uint64_t *counters)
{
    uint64_t hash = 0, word;
    for (unsigned i = 0; i < TARGET_BYTES; i += sizeof(word)) {
        memcpy(&word, target + i, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    for (unsigned i = 0; i < COUNTERS; i++)
        hash = (hash ^ counters[i]) * 0x9e3779b97f4a7c15;
    return hash;
}

/* ---- work ---- */

static bool is_gone(const struct endpoint *endpoint)
{
    return world_is_dead(endpoint) || engine_has_failed(&endpoint->engine);
}

/* IBA 9.7.6.1.3: the peer is silent for retry_count + 1 periods, each of up to four times the value on a network.
 * Timers may be late, and an RNR wait may have begun. */
static bool is_in_time(const struct endpoint *endpoint, const struct entry *entry)
{
    const struct plan *plan = &endpoint->world->plan;
    const struct engine_settings *settings = engine_settings_of(&endpoint->engine);
    enum { SLACK = 2 * NANOS_MILLISECOND };
    nanos start = endpoint->peer->gone_since + plan->delay_most;
    if (start < endpoint->oldest_since)
        start = endpoint->oldest_since;
    if (start < entry->posted)
        start = entry->posted;
    nanos period = (time_scaled(4096ull << settings->timeout) << (settings->first_window ? 2 : 0)) + plan->lateness;
    nanos rnr = time_scaled(rnr_wait(engine_settings_of(&endpoint->peer->engine)->min_rnr_timer)) + plan->lateness;
    return endpoint->world->now <= start + rnr + (settings->retry_count + 2) * period + SLACK;
}

/* Returns true if enough time has passed: an RNR NAK costs its wait, and rnr_retry of them must be endured. */
static bool has_waited(const struct endpoint *endpoint, const struct entry *entry)
{
    const struct engine_settings *settings = engine_settings_of(&endpoint->engine);
    nanos start = endpoint->oldest_since > entry->posted ? endpoint->oldest_since : entry->posted;
    nanos wait = time_scaled(rnr_wait(engine_settings_of(&endpoint->peer->engine)->min_rnr_timer));
    return endpoint->world->now - start >= settings->rnr_retry * wait;
}

static enum ibv_wc_status fault_status(const struct endpoint *endpoint, enum fault fault)
{
    static const enum ibv_wc_status reliable[FAULTS] = {
        [FAULT_LOCAL_KEY] = IBV_WC_LOC_PROT_ERR,
        [FAULT_REMOTE_KEY] = IBV_WC_REM_ACCESS_ERR,
        [FAULT_LONGER_THAN_RECEIVE] = IBV_WC_REM_INV_REQ_ERR,
        [FAULT_LONGER_THAN_ALLOWED] = IBV_WC_LOC_LEN_ERR,
        [FAULT_MISALIGNED] = IBV_WC_REM_INV_REQ_ERR,
    };
    bool local = fault == FAULT_LOCAL_KEY || fault == FAULT_LONGER_THAN_ALLOWED;
    return local || endpoint_is_reliable(endpoint) ? reliable[fault] : IBV_WC_SUCCESS;
}

static bool may_fail(const struct endpoint *endpoint, const struct entry *entry, enum ibv_wc_status status)
{
    if (entry->fault && status == fault_status(endpoint, entry->fault))
        return true;
    if (!endpoint_is_reliable(endpoint))
        return false;
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return is_gone(endpoint->peer) && is_in_time(endpoint, entry);
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return entry->consumes && engine_settings_of(&endpoint->engine)->rnr_retry < 7 && has_waited(endpoint, entry);
    case IBV_WC_REM_OP_ERR:
        return entry->consumes && endpoint->peer->bad_receive;
    default:
        return false;
    }
}

static void judge_failure(struct endpoint *endpoint, struct entry *entry, enum ibv_wc_status status)
{
    bool fine = status == IBV_WC_WR_FLUSH_ERR ? endpoint->send_broken || endpoint_is_flushing(endpoint)
                                              : !endpoint->send_broken && may_fail(endpoint, entry, status);
    if (!fine)
        world_complain(endpoint->world, endpoint, "work %u ends with status %d", endpoint->ended, status);
    endpoint->send_broken = true;
    entry->uncertain = true;
    endpoint->world->shared_perhaps[endpoint->peer ? endpoint->peer->node : 0] += entry->add;
}

/* The sure sum of a shared counter counts what has succeeded. */
static void judge_success(struct endpoint *endpoint, struct entry *entry)
{
    struct world *world = endpoint->world;
    bool brings = entry->opcode == IBV_WR_RDMA_READ || entry->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                  entry->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (endpoint->send_broken || (endpoint_is_reliable(endpoint) && engine_has_failed(&endpoint->engine)))
        world_complain(world, endpoint, "work %u succeeds after a failure", endpoint->ended);
    if (entry->fault && fault_status(endpoint, entry->fault))
        world_complain(world, endpoint, "work %u succeeds with fault %d", endpoint->ended, entry->fault);
    if (endpoint_is_reliable(endpoint) && entry->consumes && !entry->delivered)
        world_complain(world, endpoint, "work %u succeeds and was not delivered", endpoint->ended);
    if (brings && entry->content) {
        uint32_t at = buffers_compare(&endpoint->buffers, entry->sge, entry->sge_count, entry->content, entry->length);
        if (at != entry->length)
            world_complain(world, endpoint, "work %u brought a wrong byte at %u of %u", endpoint->ended, at,
                           entry->length);
    }
    if (endpoint->peer)
        world->shared_sure[endpoint->peer->node] += entry->add;
}

void judge_sent(struct endpoint *endpoint, const struct send_wqe *work, enum ibv_wc_status status, enum reason reason)
{
    struct world *world = endpoint->world;
    struct entry *entry = &endpoint->works[endpoint->ended];
    world_note(world, endpoint, "ends", work->id, status);
    if (endpoint->ended == endpoint->posted || work->id != endpoint->ended) {
        world_complain(world, endpoint, "work %u of %u is due, and %u ends", endpoint->ended, endpoint->posted,
                       (unsigned)work->id);
        return;
    }
    if ((status == IBV_WC_SUCCESS) != (reason == REASON_NONE))
        world_complain(world, endpoint, "work %u ends with status %d and reason %d", endpoint->ended, status, reason);
    if (status == IBV_WC_SUCCESS)
        judge_success(endpoint, entry);
    else
        judge_failure(endpoint, entry, status);
    buffers_drop(&endpoint->buffers, entry->sge, entry->sge_count);
    endpoint->ended++;
    endpoint->oldest_since = world->now;
    world->statistics.ended[status]++;
}

/* ---- receives ---- */

static struct entry *next_message(struct endpoint *sender)
{
    while (sender->delivered < sender->posted) {
        struct entry *entry = &sender->works[sender->delivered];
        if (entry->consumes && !entry->delivered)
            return entry;
        sender->delivered++;
    }
    return NULL;
}

/* Finds an unreliable message by its contents; NULL: it has no bytes and no immediate. */
static struct entry *identify(struct endpoint *endpoint, struct endpoint *sender, const struct posted_receive *slot,
                              const struct recv_cqe *arrival)
{
    uint32_t id = 0, header = endpoint->service == SERVICE_UD ? UD_GRH_LENGTH : 0;
    if (arrival->flags & IBV_WC_WITH_IMM)
        id = arrival->immediate_or_key;
    else if (arrival->length < header + IDENTITY)
        return NULL;
    else
        for (unsigned i = 0; i < IDENTITY; i++)
            id |= (uint32_t)buffers_at(&endpoint->buffers, slot->sge, slot->receive.sge_count, header + i) << 8 * i;
    if (id >= sender->posted || !sender->works[id].consumes) {
        world_complain(endpoint->world, endpoint, "message 0x%x was never sent", id);
        return NULL;
    }
    const struct plan *plan = &endpoint->world->plan;
    if (sender->works[id].delivered && !plan->duplication)
        world_complain(endpoint->world, endpoint, "message %u comes twice", id);
    if (endpoint->peer && plan->in_order && id + 1 < endpoint->last_seen)
        world_complain(endpoint->world, endpoint, "message %u comes after %u", id, endpoint->last_seen - 1);
    endpoint->last_seen = id + 1;
    return &sender->works[id];
}

static void judge_bytes(struct endpoint *endpoint, const struct posted_receive *slot, const struct entry *entry,
                        uint32_t header)
{
    struct buffers *buffers = &endpoint->buffers;
    uint32_t room = scatter_room(&slot->receive), end = header + entry->length;
    for (uint32_t i = 0; i < end; i++) {
        uint8_t wanted = i < header ? 0 : entry->content[i - header];
        if (buffers_at(buffers, slot->sge, slot->receive.sge_count, i) != wanted) {
            world_complain(endpoint->world, endpoint, "a message has a wrong byte at %u of %u", i, end);
            return;
        }
    }
    if (endpoint->service == SERVICE_UC) /* a lost message that had the receive before may have left more */
        return;
    for (uint32_t i = end; i < room && i < end + GUARD; i++)
        if (buffers_at(buffers, slot->sge, slot->receive.sge_count, i) != UNTOUCHED)
            world_complain(endpoint->world, endpoint, "a message of %u bytes changed byte %u", end, i);
}

static unsigned expected_flags(const struct endpoint *endpoint, const struct entry *entry)
{
    bool immediate = entry->opcode == IBV_WR_SEND_WITH_IMM || entry->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    return immediate ? IBV_WC_WITH_IMM : entry->opcode == IBV_WR_SEND_WITH_INV ? IBV_WC_WITH_INV : 0;
}

static void judge_write(struct endpoint *endpoint, const struct entry *entry)
{
    for (uint32_t i = 0; i < entry->length; i++) {
        uint64_t at = entry->remote + i;
        if (endpoint->target[at] != (endpoint_is_reliable(endpoint) ? entry->content[i] : judge_target_byte(at))) {
            world_complain(endpoint->world, endpoint, "a WRITE has a wrong byte at %u of %u", i, entry->length);
            return;
        }
    }
}

static void judge_message(struct endpoint *endpoint, const struct posted_receive *slot, struct entry *entry,
                          const struct recv_cqe *arrival)
{
    uint32_t header = endpoint->service == SERVICE_UD ? UD_GRH_LENGTH : 0;
    bool writes = entry->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    unsigned flags = expected_flags(endpoint, entry);
    if (arrival->opcode != (writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) || arrival->flags != flags ||
        arrival->length != header + entry->length || (flags && arrival->immediate_or_key != entry->immediate) ||
        arrival->solicited != !!(entry->flags & IBV_SEND_SOLICITED) || !arrival->packet)
        world_complain(endpoint->world, endpoint, "a receive ends with opcode %d flags %u length %u of %u",
                       arrival->opcode, arrival->flags, arrival->length, header + entry->length);
    if (entry->delivered && endpoint_is_reliable(endpoint))
        world_complain(endpoint->world, endpoint, "a message comes twice");
    if (writes)
        judge_write(endpoint, entry);
    else
        judge_bytes(endpoint, slot, entry, header);
    if (endpoint_is_reliable(endpoint) && entry->target_hash != judge_hash(endpoint->target, endpoint->counters))
        world_complain(endpoint->world, endpoint, "a message comes before or after its turn");
    entry->delivered = true;
}

static struct endpoint *find_sender(struct endpoint *endpoint, const struct recv_cqe *arrival)
{
    struct world *world = endpoint->world;
    if (endpoint->peer)
        return endpoint->peer;
    for (uint32_t i = 0; i < world->count; i++)
        if (world->endpoints[i].service == SERVICE_UD && world->endpoints[i].number == arrival->source)
            return &world->endpoints[i];
    world_complain(world, endpoint, "a datagram from 0x%x", arrival->source);
    return NULL;
}

static void judge_arrival(struct endpoint *endpoint, const struct posted_receive *slot, const struct recv_cqe *arrival)
{
    struct endpoint *sender = find_sender(endpoint, arrival);
    if (!sender)
        return;
    if (slot->bad_key && arrival->length && arrival->opcode == IBV_WC_RECV)
        world_complain(endpoint->world, endpoint, "a receive with a bad key succeeds");
    struct entry *entry =
        endpoint_is_reliable(endpoint) ? next_message(sender) : identify(endpoint, sender, slot, arrival);
    if (entry)
        judge_message(endpoint, slot, entry, arrival);
    else if (endpoint_is_reliable(endpoint))
        world_complain(endpoint->world, endpoint, "a message comes that was not sent");
}

static bool has_posted_fault(const struct endpoint *sender, enum fault fault)
{
    return sender && sender->fault == fault && sender->posted > sender->fault_at;
}

static void judge_error(struct endpoint *endpoint, const struct posted_receive *slot, enum ibv_wc_status status)
{
    bool fine = status == IBV_WC_WR_FLUSH_ERR   ? engine_has_failed(&endpoint->engine)
                : status == IBV_WC_LOC_PROT_ERR ? slot->bad_key
                : status == IBV_WC_LOC_LEN_ERR  ? has_posted_fault(endpoint->peer, FAULT_LONGER_THAN_RECEIVE)
                                                : false;
    if (!fine)
        world_complain(endpoint->world, endpoint, "receive %u ends with status %d", endpoint->receives_ended, status);
}

void judge_received(struct endpoint *endpoint, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct world *world = endpoint->world;
    struct posted_receive *slot = endpoint->receives[endpoint->receives_ended];
    world_note(world, endpoint, "receives", arrival->status, arrival->length);
    if (endpoint->receives_ended >= endpoint->receives_taken || receive != &slot->receive) {
        world_complain(world, endpoint, "receives end out of order");
        return;
    }
    if ((arrival->status == IBV_WC_SUCCESS) != (arrival->reason == REASON_NONE))
        world_complain(world, endpoint, "a receive ends with status %d and reason %d", arrival->status,
                       arrival->reason);
    if (arrival->status == IBV_WC_SUCCESS)
        judge_arrival(endpoint, slot, arrival);
    else
        judge_error(endpoint, slot, arrival->status);
    buffers_drop(&endpoint->buffers, slot->sge, slot->receive.sge_count);
    free(slot);
    endpoint->receives[endpoint->receives_ended++] = NULL;
    world->statistics.received++;
}
