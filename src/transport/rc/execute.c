#include "transport/rc/execute.h"

#include <stdatomic.h>

#include "base/likely.h"
#include "transport/rc/responses.h"
#include "transport/request.h"
#include "transport/scatter.h"
#include "wire/foreign/foreign.h"
#include "wire/guarded.h"
#include "wire/psn.h"

enum reason execute_send(struct rc *rc, uint32_t flags, const struct packet *packet)
{
    struct responder *responder = &rc->responder;
    enum reason reason = scatter(rc->owner, responder->receive, responder->received, &packet->payload);
    if (reason || !(flags & OP_IETH))
        return reason;
    return rc->owner->operations->invalidate(rc->owner, packet->invalidate_key);
}

static enum reason execute_store(const struct payload *payload, const struct iovec *memory)
{
    if (payload_copy(payload, 0, memory, 1))
        return REASON_NONE;
    return payload_can_land(memory, 1) ? REASON_PACKET_PULL : REASON_REMOTE_GONE;
}

/* `memory` is the whole WRITE's, which was found when its first packet was checked. */
static enum reason execute_write_start(struct rc *rc, const struct packet *packet, const struct iovec *memory)
{
    struct responder *responder = &rc->responder;
    responder->write_address = packet->address;
    responder->write_rkey = packet->rkey;
    responder->write_length = packet->length;
    if (!packet->payload.length)
        return REASON_NONE;
    return execute_store(&packet->payload, &(struct iovec){memory->iov_base, packet->payload.length});
}

enum reason execute_write(struct rc *rc, uint32_t flags, const struct packet *packet, const struct iovec *checked)
{
    struct responder *responder = &rc->responder;
    if (flags & OP_START)
        return execute_write_start(rc, packet, checked);
    if (!packet->payload.length)
        return REASON_NONE;
    struct iovec memory;
    enum reason reason = rc->owner->operations->remote_memory(rc->owner, responder->write_rkey,
                                                              responder->write_address + responder->received,
                                                              packet->payload.length, IBV_ACCESS_REMOTE_WRITE, &memory);
    if (reason)
        return reason;
    return execute_store(&packet->payload, &memory);
}

static struct responder_resource *keep(struct rc *rc, const struct packet *packet, uint32_t packets)
{
    struct responder *responder = &rc->responder;
    responder->expected_psn = psn_add(packet->psn, packets);
    responder->msn++;
    return responses_save(rc, packet, packets);
}

enum reason execute_read(struct rc *rc, const struct packet *packet)
{
    struct responder_resource *saved = keep(rc, packet, request_packets(packet->length, rc->settings.segment));
    saved->rkey = packet->rkey;
    saved->address = packet->address;
    saved->length = saved->until = packet->length;
    return REASON_NONE;
}

/* The data that arrived before the flush has been stored in the order of arrival; the fence puts it before all that
 * this thread does next, the answer among it. Copies into memory of a device have ended (wire/foreign/foreign.h). */
enum reason execute_flush(struct rc *rc, const struct packet *packet)
{
    atomic_thread_fence(memory_order_seq_cst);
    keep(rc, packet, 1);
    return REASON_NONE;
}

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % ATOMIC_LENGTH == 0;
}

/* An address that is aligned for the peer may be unaligned memory here (ibv_reg_mr_iova); then the operation is atomic
 * only among those of the verbs. False: the memory is gone. */
static bool compare_and_swap(void *memory, uint64_t compare, uint64_t swap, uint64_t *found)
{
    if (is_aligned(memory))
        return guarded_compare_and_swap((uint64_t *)memory, compare, swap, found);
    return guarded_copy(found, memory, ATOMIC_LENGTH) &&
           (*found != compare || guarded_copy(memory, &swap, ATOMIC_LENGTH));
}

static bool fetch_and_add(void *memory, uint64_t add, uint64_t *found)
{
    if (is_aligned(memory))
        return guarded_fetch_and_add((uint64_t *)memory, add, found);
    if (!guarded_copy(found, memory, ATOMIC_LENGTH))
        return false;
    uint64_t sum = *found + add;
    return guarded_copy(memory, &sum, ATOMIC_LENGTH);
}

static bool change(struct rc *rc, void *memory, const struct packet *packet, uint64_t *found)
{
    if (unlikely(rc->settings.owner_changes && rc->owner->operations->change))
        return rc->owner->operations->change(rc->owner, packet, memory, found);
    if (op_operation(packet->opcode) == OPERATION_COMPARE_SWAP)
        return compare_and_swap(memory, packet->compare, packet->swap_or_add, found) ||
               foreign_compare_and_swap(memory, packet->compare, packet->swap_or_add, found);
    return fetch_and_add(memory, packet->swap_or_add, found) ||
           foreign_fetch_and_add(memory, packet->swap_or_add, found);
}

enum reason execute_atomic(struct rc *rc, const struct packet *packet)
{
    struct iovec memory;
    enum reason reason = rc->owner->operations->remote_memory(rc->owner, packet->rkey, packet->address, ATOMIC_LENGTH,
                                                              IBV_ACCESS_REMOTE_ATOMIC, &memory);
    if (reason)
        return reason;
    uint64_t original;
    if (!change(rc, memory.iov_base, packet, &original))
        return REASON_REMOTE_GONE;
    keep(rc, packet, 1)->original = original;
    return REASON_NONE;
}

enum reason execute_atomic_write(struct rc *rc, const struct packet *packet)
{
    struct iovec memory;
    enum reason reason = rc->owner->operations->remote_memory(rc->owner, packet->rkey, packet->address, ATOMIC_LENGTH,
                                                              IBV_ACCESS_REMOTE_WRITE, &memory);
    if (reason)
        return reason;
    uint64_t before;
    if (unlikely(rc->settings.owner_changes && rc->owner->operations->change))
        reason = rc->owner->operations->change(rc->owner, packet, memory.iov_base, &before) ? REASON_NONE
                                                                                            : REASON_REMOTE_GONE;
    else
        reason = execute_store(&packet->payload, &memory);
    if (!reason)
        keep(rc, packet, 1);
    return reason;
}
