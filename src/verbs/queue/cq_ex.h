/* The iterator of a completion queue: ibv_create_cq_ex(3). */
#pragma once

#include "verbs/queue/cq.h"

/* Fills the iterator's functions of a new CQ. */
void cq_extend(struct cq *);

/* Sets the iterator's functions as the layers' lowest calls. */
void cq_bottom(struct calls *);

enum {
    CQ_WC_FLAGS = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
                  IBV_WC_EX_WITH_TM_INFO
};
