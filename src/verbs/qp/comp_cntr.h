/* Completion counters: ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3), which came with release 65. Thread-safe.
 *
 * Work of a queue pair is counted when its completion is made, whether or not it is signalled. */
#ifndef VERBS_QP_COMP_CNTR_H
#define VERBS_QP_COMP_CNTR_H

#include "base/likely.h"
#include "verbs/qp/qp.h"

/* 0 or EINVAL. A program of a later release passes a larger structure, whose rest becomes zeros. */
int comp_cntr_query_caps(struct ibv_context *, struct newer_comp_cntr_caps *, size_t size);

/* NULL and errno: EINVAL bits, flags or a type that do not exist; ENOMEM. */
struct newer_comp_cntr *comp_cntr_create(struct ibv_context *, const struct newer_comp_cntr_init_attr *);

/* 0 or an errno: EBUSY while a queue pair counts there, ENOENT when the handle was overwritten. */
int comp_cntr_destroy(struct newer_comp_cntr *);

/* One of the two values of a counter. */
enum comp_cntr_value { COMP_CNTR_DONE, COMP_CNTR_FAILED };
int comp_cntr_set(struct newer_comp_cntr *, enum comp_cntr_value, uint64_t value);
int comp_cntr_add(struct newer_comp_cntr *, enum comp_cntr_value, uint64_t amount);
int comp_cntr_read(struct newer_comp_cntr *, enum comp_cntr_value, uint64_t *value);

/* 0 or an errno: EINVAL in another state than RESET and INIT, of another context, or nothing to count; EOPNOTSUPP what
 * the device or the queue pair can't count; EBUSY what another counter counts. */
int comp_cntr_attach(struct ibv_qp *, struct newer_comp_cntr *, const struct newer_qp_attach_comp_cntr_attr *);

/* Under process->control: the queue pair ends. */
void comp_cntr_detach(struct qp *);

/* Under qp->lock: work of this kind ended. Only for queue pairs that count. */
void comp_cntr_count(struct qp *, enum ibv_wc_opcode, enum ibv_wc_status, uint32_t length);

static inline void comp_cntr_ended(struct qp *qp, enum ibv_wc_opcode opcode, enum ibv_wc_status status, uint32_t length)
{
    if (unlikely(qp->counting.operations))
        comp_cntr_count(qp, opcode, status, length);
}

#endif
