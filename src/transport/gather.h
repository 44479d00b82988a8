/* Local memory of a message: a byte range of a scatter/gather list, or of inline data, as pieces of plain memory. */
#pragma once

#include "transport/owner.h"

/* Writes to `pieces` (room for PAYLOAD_PIECES_MAX) the memory of the bytes [offset, offset + length) of the list, and
 * the number of pieces. The owner's local_memory looks up elements of a work request whole, as soon as the range
 * touches them, so that a wrong element is found with its first byte. Its receive_memory looks up only those bytes of a
 * receive that are in the range: perftest posts receives that are longer than their memory. access: 0 to read the
 * bytes, IBV_ACCESS_LOCAL_WRITE to store them. REASON_LOCAL_LENGTH: the list is shorter than the range, or needs too
 * many pieces. */
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
