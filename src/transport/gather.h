/* Local memory of a message: a byte range of a scatter/gather list, or of inline data, as pieces of plain memory. */
#pragma once

#include "transport/owner.h"

/* Appends to `pieces` (room for PAYLOAD_PIECES_MAX) the memory of the bytes [offset, offset + length) of the list
 * and writes their number. The host's local_memory knows a work request's elements, which are asked for whole if the
 * range touches them, so that a wrong one is found with its first byte; receive_memory knows a receive's, which may
 * be longer than the message: only the bytes of the range are asked for, as perftest needs it. access: 0 to read
 * them, IBV_ACCESS_LOCAL_WRITE to store into them. REASON_LOCAL_LENGTH: the list is shorter than the range, or needs
 * too many pieces. */
enum reason gather_list(struct engine_owner *, bool receive, const struct ibv_sge *, uint32_t sge_count,
                        unsigned access, uint32_t offset, uint32_t length, struct iovec *pieces, uint32_t *count);

/* Gathers the message of a work request, inline data included. Not for WORK_INTO_RECEIVE. */
__attribute__((always_inline)) static inline enum reason gather(struct engine_owner *owner, const struct send_wqe *work,
                                                                unsigned access, uint32_t offset, uint32_t length,
                                                                struct iovec *pieces, uint32_t *count)
{
    if (!(work->flags & IBV_SEND_INLINE))
        return gather_list(owner, false, work->sge, work->sge_count, access, offset, length, pieces, count);
    if (offset > work->length || length > work->length - offset)
        return REASON_LOCAL_LENGTH;
    *count = length > 0;
    pieces[0] = (struct iovec){(uint8_t *)work->inline_data + offset, length};
    return REASON_NONE;
}
