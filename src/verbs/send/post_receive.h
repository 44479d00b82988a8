/* ibv_post_recv(3). Thread-safe. */
#ifndef VERBS_SEND_POST_RECEIVE_H
#define VERBS_SEND_POST_RECEIVE_H

#include <infiniband/verbs.h>

int qp_post_receive(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);

#endif
