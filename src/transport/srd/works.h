/* The end of work of an SRD queue pair, in any order, and its places in the send queue. Pure. */
#pragma once

#include "transport/srd/srd.h"

/* Ends the work at this position. It is in no list, and none of its packets waits. */
void srd_end_work(struct srd *, uint32_t position, enum ibv_wc_status, enum reason);

/* Ends all work that has not ended, in the order of posting, as flushed. */
void srd_flush_works(struct srd *);

/* Returns true if the work at this position has not ended. */
bool srd_work_is_live(const struct srd *, uint32_t position);

/* Raises SQ_DRAINED if the queue is drained now. */
void srd_report_drained(struct srd *);
