#include "transport/gather.h"

#include "base/likely.h"

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The part of one element that begins `offset` bytes into it. */
static enum reason gather_element(struct engine_owner *owner, bool receive, const struct ibv_sge *sge, unsigned access,
                                  uint32_t offset, uint32_t length, struct iovec *piece)
{
    if (receive) {
        const struct ibv_sge used = {sge->addr + offset, length, sge->lkey};
        return owner->operations->receive_memory(owner, &used, access, piece);
    }
    enum reason reason = owner->operations->local_memory(owner, sge, access, piece);
    if (reason)
        return reason;
    piece->iov_base = (uint8_t *)piece->iov_base + offset;
    piece->iov_len = length;
    return REASON_NONE;
}

enum reason gather_list(struct engine_owner *owner, bool receive, const struct ibv_sge *sge, uint32_t sge_count,
                        unsigned access, uint32_t offset, uint32_t length, struct iovec *pieces, uint32_t *count)
{
    *count = 0;
    if (likely(!receive && sge_count == 1 && !offset && length == sge->length && length)) {
        *count = 1;
        return owner->operations->local_memory(owner, sge, access, pieces);
    }
    for (uint32_t i = 0; length; i++) {
        if (i == sge_count || *count == PAYLOAD_PIECES_MAX)
            return REASON_LOCAL_LENGTH;
        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        uint32_t part = lesser(length, sge[i].length - offset);
        enum reason reason = gather_element(owner, receive, &sge[i], access, offset, part, &pieces[(*count)++]);
        if (reason)
            return reason;
        length -= part;
        offset = 0;
    }
    return REASON_NONE;
}
