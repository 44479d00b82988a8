/* Rules of scripts on work and receives in memory (docs/reference/scripts.md): of their actions, `complete` alone has
 * an effect, as there is no call that could fail or wait. */
#pragma once

struct ibv_recv_wr;
struct ibv_sge;
struct qp;
struct receive_queue;
struct send_wqe;

/* Gives work the end that a rule decides. */
void obey_work(struct qp *, struct send_wqe *);

/* Gives a receive the element that ends it as a rule decides. `element` must live as long as the request. */
void obey_receive(const struct receive_queue *, struct ibv_recv_wr *, struct ibv_sge *element);
