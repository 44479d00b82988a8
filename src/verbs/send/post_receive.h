/* ibv_post_recv(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

int qp_post_receive(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
