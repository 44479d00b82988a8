#include "transport/request.h"

#define MESSAGE(kind, name, end)                                                                                       \
    {                                                                                                                  \
        kind, OPERATION_##name##_FIRST, OPERATION_##name##_MIDDLE, OPERATION_##name##_LAST##end,                       \
            OPERATION_##name##_ONLY##end                                                                               \
    }
#define SINGLE(kind, operation)                                                                                        \
    {                                                                                                                  \
        kind, operation, operation, operation, operation                                                               \
    }

const struct request_kind request_kinds[256] = {
    [IBV_WR_RDMA_WRITE] = MESSAGE(REQUEST_WRITE, WRITE, ),
    [WORK_IN_FORM | IBV_WR_RDMA_WRITE] = MESSAGE(REQUEST_WRITE, WRITE, ),
    [IBV_WR_RDMA_WRITE_WITH_IMM] = MESSAGE(REQUEST_WRITE, WRITE, _IMMEDIATE),
    [WORK_IN_FORM | IBV_WR_RDMA_WRITE_WITH_IMM] = MESSAGE(REQUEST_WRITE, WRITE, _IMMEDIATE),
    [IBV_WR_SEND] = MESSAGE(REQUEST_SEND, SEND, ),
    [WORK_IN_FORM | IBV_WR_SEND] = MESSAGE(REQUEST_SEND, SEND, ),
    [IBV_WR_SEND_WITH_IMM] = MESSAGE(REQUEST_SEND, SEND, _IMMEDIATE),
    [WORK_IN_FORM | IBV_WR_SEND_WITH_IMM] = MESSAGE(REQUEST_SEND, SEND, _IMMEDIATE),
    [IBV_WR_SEND_WITH_INV] = MESSAGE(REQUEST_SEND, SEND, _INVALIDATE),
    [WORK_IN_FORM | IBV_WR_SEND_WITH_INV] = MESSAGE(REQUEST_SEND, SEND, _INVALIDATE),
    [IBV_WR_RDMA_READ] = SINGLE(REQUEST_READ, OPERATION_READ_REQUEST),
    [IBV_WR_ATOMIC_CMP_AND_SWP] = SINGLE(REQUEST_ATOMIC, OPERATION_COMPARE_SWAP),
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = SINGLE(REQUEST_ATOMIC, OPERATION_FETCH_ADD),
    [NEWER_WR_FLUSH] = SINGLE(REQUEST_FLUSH, OPERATION_FLUSH),
    [IBV_WR_ATOMIC_WRITE] = SINGLE(REQUEST_ATOMIC_WRITE, OPERATION_ATOMIC_WRITE),
    [IBV_WR_LOCAL_INV] = {REQUEST_LOCAL},
    [IBV_WR_BIND_MW] = {REQUEST_LOCAL},
    [WORK_VENDOR_CONFIGURE] = {REQUEST_LOCAL},
    [WORK_VENDOR_COPY] = {REQUEST_LOCAL},
    [WORK_VENDOR_NOTHING] = {REQUEST_LOCAL},
    [WORK_VENDOR_MALFORMED] = {REQUEST_LOCAL},
    [WORK_SCRIPTED... UINT8_MAX] = {REQUEST_LOCAL},
};

uint32_t request_packets(uint32_t length, uint32_t segment)
{
    return length <= segment ? 1 : (length - 1) / segment + 1;
}

enum ibv_wc_status request_status(enum reason reason)
{
    switch (reason) {
    case REASON_LOCAL_LENGTH:
    case REASON_MESSAGE_TOO_LONG:
        return IBV_WC_LOC_LEN_ERR;
    case REASON_WORK_UNSUPPORTED:
    case REASON_READS_DISABLED:
        return IBV_WC_LOC_QP_OP_ERR;
    default:
        return IBV_WC_LOC_PROT_ERR;
    }
}

enum operation request_operation(const struct request_kind *kind, uint32_t index, bool last)
{
    if (index == 0)
        return last ? kind->only : kind->first;
    return last ? kind->last : kind->middle;
}

uint32_t request_stride_end(const struct send_wqe *work, uint32_t index)
{
    uint32_t left = work->packets - index, stride = work->stride - index % work->stride;
    return index + (left < stride ? left : stride);
}
