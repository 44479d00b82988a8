/* Completion counters: ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3), which release 65 added. Thread-safe.
 *
 * Work of a queue pair is counted when its completion is made, whether or not it is signalled. */
#pragma once

#include "base/likely.h"
#include "verbs/qp/qp.h"

/* Writes the capabilities, and zeros to the rest of a later release's larger structure. Returns 0. */
int comp_cntr_query_caps(struct ibv_context *, struct newer_comp_cntr_caps *, size_t size);

/* Makes a counter. NULL and errno: EINVAL unknown bits, flags or type; ENOMEM. */
struct newer_comp_cntr *comp_cntr_create(struct ibv_context *, const struct newer_comp_cntr_init_attr *);

/* Destroys a counter. 0 or an errno: EBUSY while a queue pair uses it, ENOENT for an overwritten handle. */
int comp_cntr_destroy(struct newer_comp_cntr *);

enum comp_cntr_value { COMP_CNTR_DONE, COMP_CNTR_FAILED };

/* Set, add to and read one of the two values of a counter. 0, or ENOENT for an overwritten handle. */
int comp_cntr_set(struct newer_comp_cntr *, enum comp_cntr_value, uint64_t value);
int comp_cntr_add(struct newer_comp_cntr *, enum comp_cntr_value, uint64_t amount);
int comp_cntr_read(struct newer_comp_cntr *, enum comp_cntr_value, uint64_t *value);

/* Attaches a counter. 0 or an errno: EINVAL in another state than RESET and INIT, for a counter of another context, for
 * no operation, or unknown bits; EOPNOTSUPP for operations that can't be counted; EBUSY for operations that another
 * counter counts; ENOENT for an overwritten handle. */
int comp_cntr_attach(struct ibv_qp *, struct newer_comp_cntr *, const struct newer_qp_attach_comp_cntr_attr *);

/* Detaches all counters of a queue pair that ends. Under process->control. */
void comp_cntr_detach(struct qp *);

/* Counts the end of work of this kind, under qp->lock. Only for queue pairs that count. */
void comp_cntr_count(struct qp *, enum ibv_wc_opcode, enum ibv_wc_status, uint32_t length);

static inline void comp_cntr_ended(struct qp *qp, enum ibv_wc_opcode opcode, enum ibv_wc_status status, uint32_t length)
{
    if (unlikely(qp->counting.operations))
        comp_cntr_count(qp, opcode, status, length);
}
