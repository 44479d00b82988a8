/* A queue pair that is its own peer. */
#pragma once

#include <infiniband/verbs.h>
#include <stdlib.h>

static inline void loop_enter(struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr *attr, int mask)
{
    attr->qp_state = state;
    if (ibv_modify_qp(qp, attr, IBV_QP_STATE | mask))
        exit(2);
}

/* Connects with the first GID of port 1, timeout, retry_cnt and rnr_retry; of an RC queue pair in RESET. Ends the
 * program where that fails. */
static inline void loop_connect(struct ibv_qp *qp, uint8_t timeout, uint8_t retries, uint8_t rnr_retries)
{
    struct ibv_qp_attr attr = {.port_num = 1,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = qp->qp_num,
                               .timeout = timeout,
                               .retry_cnt = retries,
                               .rnr_retry = rnr_retries,
                               .ah_attr = {.is_global = 1, .port_num = 1}};
    ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid);
    loop_enter(qp, IBV_QPS_INIT, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    loop_enter(qp, IBV_QPS_RTR, &attr,
               IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                   IBV_QP_MIN_RNR_TIMER);
    loop_enter(qp, IBV_QPS_RTS, &attr,
               IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}
