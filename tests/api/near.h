/* The near end lives in this process, so tests may call there what no puppet knows: its objects as the verbs see them.
 */
#ifndef API_NEAR_H
#define API_NEAR_H

#include "pair.h"
#include "stage.h"

static inline struct ibv_qp *near_qp(const struct pair *pair)
{
    return stage_object(pair->near.puppet->stage, KIND_QP, pair->near.qp);
}

static inline struct ibv_pd *near_pd(const struct pair *pair)
{
    return stage_object(pair->near.puppet->stage, KIND_PD, pair->near.pd);
}

static inline struct ibv_mr *near_mr(const struct pair *pair)
{
    return stage_object(pair->near.puppet->stage, KIND_MR, pair->near.mr);
}

/* Like end_send from the far end to the near one, to what this key and address name there. */
static inline struct send far_send_to(const struct pair *pair, enum ibv_wr_opcode opcode, uint64_t id, uint32_t rkey,
                                      uint64_t address, uint32_t length)
{
    struct send send = end_send(&pair->far, &pair->near, opcode, id, 0, length);
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        send.wr.wr.atomic.rkey = rkey;
        send.wr.wr.atomic.remote_addr = address;
    } else {
        send.wr.wr.rdma.rkey = rkey;
        send.wr.wr.rdma.remote_addr = address;
    }
    return send;
}

#endif
