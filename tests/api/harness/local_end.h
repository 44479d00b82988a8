/* The near end lives in this process, so tests may make any call there: these are its objects as the verbs see them.
 */
#pragma once

#include "end_objects.h"
#include "pair.h"

static inline struct ibv_qp *near_qp(const struct pair *pair)
{
    return end_object(pair->near.remote->objects, KIND_QP, pair->near.qp);
}

static inline struct ibv_pd *near_pd(const struct pair *pair)
{
    return end_object(pair->near.remote->objects, KIND_PD, pair->near.pd);
}

static inline struct ibv_mr *near_mr(const struct pair *pair)
{
    return end_object(pair->near.remote->objects, KIND_MR, pair->near.mr);
}

/* Orders what the far end does to memory here and what the test itself does there, in either order. The far end's
 * completion says that it is done, but another process sends it, which orders no memory accesses by the rules of C.
 * The library's accesses are under the queue pair's lock, and so is a query. */
static inline void near_in_step(const struct pair *pair)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(ibv_query_qp(near_qp(pair), &attr, IBV_QP_STATE, &init), ==, 0);
}

/* A request like end_send from the far end to the near one, to what this key and address name there. */
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
