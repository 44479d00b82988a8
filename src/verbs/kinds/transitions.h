/* Words for the tables of transitions (qp_kind.transitions; IBA 11.2.5.2, table 91). */
#pragma once

#include <infiniband/verbs.h>

enum {
    /* attributes of transitions, by the part of the queue pair that needs them */
    DATAGRAM = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
    CONNECTED = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    PATH = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    RESPONDER = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    RETRY = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
    REQUESTER = RETRY | IBV_QP_MAX_QP_RD_ATOMIC,

    /* attributes that may change while the queue pair begins, and while it runs */
    STARTING = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
    RUNNING_DATAGRAM = IBV_QP_CUR_STATE | IBV_QP_QKEY,
    RUNNING = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE,
    RUNNING_RESPONDER = RUNNING | IBV_QP_MIN_RNR_TIMER,
    /* attributes that may change while the send queue is drained */
    DRAINED = IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE,
};

#define MAY(from, to, required, optional) [IBV_QPS_##from][IBV_QPS_##to] = {true, required, optional}
