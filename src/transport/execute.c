#include "transport/execute.h"

#include <string.h>

#include "transport/answers.h"
#include "transport/scatter.h"
#include "wire/psn.h"

enum { ATOMIC_LENGTH = 8 };

enum reason execute_send(struct rc *rc, uint32_t flags, const struct packet *packet)
{
    struct responder *responder = &rc->responder;
    enum reason reason = scatter(rc->host, responder->receive, responder->received, &packet->payload);
    if (reason || !(flags & OP_IETH))
        return reason;
    return rc->host->operations->invalidate(rc->host, packet->invalidate_key);
}

enum reason execute_write(struct rc *rc, uint32_t flags, const struct packet *packet)
{
    struct responder *responder = &rc->responder;
    if (flags & OP_START) {
        responder->write_address = packet->address;
        responder->write_rkey = packet->rkey;
        responder->write_length = packet->length;
    }
    if (!packet->payload.length)
        return REASON_NONE;
    struct iovec memory;
    enum reason reason = rc->host->operations->remote_memory(rc->host, responder->write_rkey,
                                                             responder->write_address + responder->received,
                                                             packet->payload.length, IBV_ACCESS_REMOTE_WRITE, &memory);
    if (reason)
        return reason;
    return payload_copy(&packet->payload, 0, &memory, 1) ? REASON_NONE : REASON_PACKET_PULL;
}

static struct rc_saved *keep(struct rc *rc, const struct packet *packet, uint32_t packets)
{
    struct responder *responder = &rc->responder;
    responder->expected_psn = psn_add(packet->psn, packets);
    responder->msn++;
    return answers_save(rc, packet, packets);
}

enum reason execute_read(struct rc *rc, const struct packet *packet)
{
    uint32_t segment = rc->settings.segment, length = packet->length;
    struct rc_saved *saved = keep(rc, packet, length <= segment ? 1 : (length - 1) / segment + 1);
    saved->rkey = packet->rkey;
    saved->address = packet->address;
    saved->length = saved->until = length;
    return REASON_NONE;
}

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % ATOMIC_LENGTH == 0;
}

static uint64_t load(const void *memory)
{
    uint64_t value;
    memcpy(&value, memory, sizeof(value));
    return value;
}

/* An aligned address of the peer's may lie on unaligned memory (ibv_reg_mr_iova); then only the verbs are atomic. */
static uint64_t compare_and_swap(void *memory, uint64_t compare, uint64_t swap)
{
    uint64_t found = compare;
    if (is_aligned(memory)) {
        __atomic_compare_exchange_n((uint64_t *)memory, &found, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return found;
    }
    found = load(memory);
    if (found == compare)
        memcpy(memory, &swap, sizeof(swap));
    return found;
}

static uint64_t fetch_and_add(void *memory, uint64_t add)
{
    if (is_aligned(memory))
        return __atomic_fetch_add((uint64_t *)memory, add, __ATOMIC_SEQ_CST);
    uint64_t found = load(memory), sum = found + add;
    memcpy(memory, &sum, sizeof(sum));
    return found;
}

enum reason execute_atomic(struct rc *rc, const struct packet *packet)
{
    struct iovec memory;
    enum reason reason = rc->host->operations->remote_memory(rc->host, packet->rkey, packet->address, ATOMIC_LENGTH,
                                                             IBV_ACCESS_REMOTE_ATOMIC, &memory);
    if (reason)
        return reason;
    bool swaps = op_operation(packet->opcode) == OPERATION_COMPARE_SWAP;
    uint64_t original = swaps ? compare_and_swap(memory.iov_base, packet->compare, packet->swap_or_add)
                              : fetch_and_add(memory.iov_base, packet->swap_or_add);
    keep(rc, packet, 1)->original = original;
    return REASON_NONE;
}

enum reason execute_atomic_write(struct rc *rc, const struct packet *packet)
{
    struct iovec memory;
    enum reason reason = rc->host->operations->remote_memory(rc->host, packet->rkey, packet->address, ATOMIC_LENGTH,
                                                             IBV_ACCESS_REMOTE_WRITE, &memory);
    if (reason)
        return reason;
    if (!payload_copy(&packet->payload, 0, &memory, 1))
        return REASON_PACKET_PULL;
    keep(rc, packet, 1);
    return REASON_NONE;
}
