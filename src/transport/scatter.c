#include "transport/scatter.h"

#include "base/likely.h"
#include "transport/gather.h"

uint64_t scatter_room(const struct recv_wqe *receive)
{
    uint64_t room = receive->skip;
    for (uint32_t i = 0; i < receive->sge_count; i++)
        room += receive->sge[i].length;
    return room;
}

/* The responder's reason for a result of receive_memory, or of gather_list for a receive. */
static cold enum reason scatter_reason(enum reason reason)
{
    switch (reason) {
    case REASON_LOCAL_LENGTH:
        return REASON_RECEIVE_TOO_SHORT;
    case REASON_LOCAL_KEY_UNKNOWN:
        return REASON_RECEIVE_KEY_UNKNOWN;
    case REASON_LOCAL_PD:
        return REASON_RECEIVE_PD;
    case REASON_LOCAL_RANGE:
        return REASON_RECEIVE_RANGE;
    case REASON_LOCAL_PERMISSION:
        return REASON_RECEIVE_PERMISSION;
    default:
        return reason;
    }
}

cold static enum reason scatter_failed(const struct iovec *to, uint32_t count)
{
    return payload_can_land(to, count) ? REASON_PACKET_PULL : REASON_RECEIVE_GONE;
}

cold static enum reason scatter_pieces(struct engine_owner *owner, const struct recv_wqe *receive, uint32_t offset,
                                       const struct payload *payload)
{
    uint32_t skipped = offset < receive->skip ? receive->skip - offset : 0;
    if (skipped >= payload->length)
        return REASON_NONE;
    uint32_t length = payload->length - skipped, start = offset + skipped - receive->skip, count;
    if (receive->limit && start >= receive->limit)
        return REASON_NONE;
    if (receive->limit && length > receive->limit - start)
        length = receive->limit - start;
    struct iovec to[PAYLOAD_PIECES_MAX];
    enum reason reason =
        gather_list(owner, true, receive->sge, receive->sge_count, IBV_ACCESS_LOCAL_WRITE, start, length, to, &count);
    if (reason)
        return scatter_reason(reason);
    return payload_copy(payload, skipped, to, count) ? REASON_NONE : scatter_failed(to, count);
}

/* Returns true if all the bytes fit the first element. */
static inline bool scatter_fits_first(const struct recv_wqe *receive, uint32_t offset, uint32_t length)
{
    return !receive->skip && !receive->limit && receive->sge_count && length && offset <= receive->sge->length &&
           length <= receive->sge->length - offset;
}

/* Flattened, so that copying a few bytes makes no call. */
__attribute__((flatten)) enum reason scatter(struct engine_owner *owner, const struct recv_wqe *receive,
                                             uint32_t offset, const struct payload *payload)
{
    struct iovec to;
    if (unlikely(!scatter_fits_first(receive, offset, payload->length)))
        return scatter_pieces(owner, receive, offset, payload);
    const struct ibv_sge used = {receive->sge->addr + offset, payload->length, receive->sge->lkey};
    enum reason reason = owner->operations->receive_memory(owner, &used, IBV_ACCESS_LOCAL_WRITE, &to);
    if (unlikely(reason != REASON_NONE))
        return scatter_reason(reason);
    return likely(payload_copy(payload, 0, &to, 1)) ? REASON_NONE : scatter_failed(&to, 1);
}
