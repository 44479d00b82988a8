/* The names of the table's values, and from each its number and its text. Statuses and states have the names of
 * infiniband/verbs.h without their prefixes. */
#pragma once

#include <infiniband/verbs.h>

#define STATUS_NAMES(name)                                                                                             \
    name(SUCCESS) name(LOC_LEN_ERR) name(LOC_QP_OP_ERR) name(LOC_PROT_ERR) name(WR_FLUSH_ERR) name(BAD_RESP_ERR)       \
        name(LOC_ACCESS_ERR) name(REM_INV_REQ_ERR) name(REM_ACCESS_ERR) name(REM_OP_ERR) name(RETRY_EXC_ERR)           \
            name(RNR_RETRY_EXC_ERR)
#define STATE_NAMES(name) name(RESET) name(INIT) name(RTR) name(RTS) name(SQD) name(SQE) name(ERR)
#define EVENT_NAMES(name) name(QP_REQ_ERR) name(QP_ACCESS_ERR) name(QP_FATAL)

enum {
#define STATUS_NUMBER(name) STATUS_##name = IBV_WC_##name,
    STATUS_NAMES(STATUS_NUMBER)
#undef STATUS_NUMBER
#define STATE_NUMBER(name) STATE_##name = IBV_QPS_##name,
        STATE_NAMES(STATE_NUMBER)
#undef STATE_NUMBER
#define EVENT_NUMBER(name) EVENT_##name = IBV_EVENT_##name,
            EVENT_NAMES(EVENT_NUMBER)
#undef EVENT_NUMBER
};
