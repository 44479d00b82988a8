/* The end of a queue pair. */
#ifndef VERBS_LIFE_QP_RETIRE_H
#define VERBS_LIFE_QP_RETIRE_H

#include <infiniband/verbs.h>

struct qp;

/* One of type XRC_RECV ends with its last handle. First qp_retire under process->control: after that only the caller
 * knows it, packets and timers don't find it, the peer can't read its memory by reference any more, and its completions
 * are withdrawn. Then qp_release, which frees it. */
void qp_retire(struct qp *);
void qp_release(struct qp *);

/* ibv_destroy_qp(3): its events that were not fetched go, those that were fetched must be acknowledged. */
void qp_wait_for_acknowledgements(struct qp *);

#endif
