/* A fixture for cases in one process: a device with a domain, a completion queue and memory, and what is made on it.
 * Whatever fails here fails the case. */
#pragma once

#include "one_process.h"

struct fixture {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char *memory;
};

/* Objects that are left when it closes are destroyed with it. */
struct fixture fixture_open(void);
void fixture_close(struct fixture *);

/* A queue pair of 4 work requests each way, of one SGE, on the one completion queue. */
struct ibv_qp_init_attr fixture_describe(const struct fixture *, enum ibv_qp_type);
struct ibv_qp *fixture_qp(const struct fixture *, enum ibv_qp_type);
struct ibv_srq *fixture_srq(struct fixture *, uint32_t size);

/* Posts `count` signalled WRITEs of the memory's first 8 bytes to its byte 64; wr_id counts from 0. */
void fixture_write(struct fixture *, struct ibv_qp *, int count);
