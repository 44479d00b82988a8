/* The end of a queue pair. */
#pragma once

#include <infiniband/verbs.h>

struct qp;

/* A queue pair of type XRC_RECV ends with its last handle. First qp_retire under process->control: after that only
 * the caller knows the queue pair, packets and timers don't find it, the peer can't read its memory by reference any
 * more, and its completions are withdrawn. Then qp_release, which frees it. */
void qp_retire(struct qp *);
void qp_release(struct qp *);

/* ibv_destroy_qp(3): withdraws events that were not fetched, and waits until the fetched ones are acknowledged. */
void qp_wait_for_acknowledgements(struct qp *);
