/* Shared receive queues with tag matching: ibv_create_srq_ex(3) with IBV_SRQT_TM, ibv_post_srq_ops(3). The rules are
 * in transport/tm/tags.h; memory, lock, completions, and the particulars of queue pairs on such an SRQ are here. */
#pragma once

#include <stdio.h>

#include "facts/facts.h"
#include "verbs/queue/srq.h"

enum {
    SRQ_TAGS_MAX = 1 << 18,            /* max_num_tags */
    SRQ_TAGS_OPERATIONS_MAX = 1 << 16, /* max_ops */
    SRQ_TAGS_SGES = 8,                 /* max_sge of a tagged buffer */
    SRQ_TAGS_WORK = 16,                /* places in the send queue of each queue pair, besides the program's own */
    SRQ_TAGS_ROOM = SRQ_TAGS_SGES * sizeof(struct ibv_sge), /* bytes of such a place: elements or inline data */
};

/* ibv_post_srq_ops(3). Thread-safe. */
int srq_tags_operate(struct ibv_srq *, struct ibv_ops_wr *, struct ibv_ops_wr **bad);

/* The most tags of the list. */
uint32_t srq_tags_count(const struct srq *);

/* Executes one operation; an unsignalled one that fails has no completion. REASON_NONE or why it is refused. May be
 * called under qp->lock. */
enum reason srq_tags_execute(struct srq *, struct ibv_ops_wr *);

/* Writes a shared receive queue as a JSON object: the caller's facts, and with tag matching those about its list,
 * unless another thread has the list. */
void srq_tags_report(FILE *, const struct srq *, struct facts_srq *);

/* Writes the oldest buffers on the list as JSON objects, with `separator` before the first; no buffers if another
 * thread has the list. Returns the separator for what follows. */
const char *srq_tags_report_list(FILE *, const struct srq *, const char *separator);
