/* What a queue pair is for the loop: the endpoint that packets and deadlines come to. */
#ifndef VERBS_LIFE_QP_ENDPOINT_H
#define VERBS_LIFE_QP_ENDPOINT_H

struct device;
struct qp;

/* Before anybody else knows the queue pair, or the one inside a work queue. */
void qp_begin_endpoint(struct qp *, const struct device *);

#endif
