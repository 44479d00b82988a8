/* A harness for cases without a second process: verbs called directly, the far end being this process too. Whatever
 * fails here fails the case. */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

#include "harness.h"

/* The first device. Closing it destroys what a case has left. */
struct ibv_context *local_open(void);

/* 4 KiB of zeroes, registered with all access; `local_memory` is its first byte. */
struct ibv_mr *local_register(struct ibv_pd *);
char *local_memory(struct ibv_mr *);

/* Attributes that most connections have: port 1, GID 0, all access, PSNs 0, timeout 10, 2 retries, rnr_retry 7. */
void local_initialize(struct ibv_qp *);                    /* RESET to INIT */
void local_receive_from(struct ibv_qp *, uint32_t number); /* INIT to RTR; UD: `number` means nothing */
void local_send(struct ibv_qp *);                          /* RTR to RTS */
void local_connect(struct ibv_qp *, struct ibv_qp *);      /* both to RTS */

/* RC, on one CQ, 16 work requests of one SGE, connected with itself. */
struct ibv_qp *local_loop(struct ibv_pd *, struct ibv_cq *);

enum ibv_qp_state local_state(struct ibv_qp *);

/* The next completion within two seconds. */
struct ibv_wc local_poll(struct ibv_cq *);
/* The queue has no completion, and gets no completion in 20 ms. */
void local_poll_nothing(struct ibv_cq *);

/* The next asynchronous event within two seconds, acknowledged. */
struct ibv_async_event local_event(struct ibv_context *);
void local_no_event(struct ibv_context *);

/* NULL and this errno. */
#define EXPECT_ERRNO(call, expected)                                                                                   \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        EXPECT_TRUE(!(call));                                                                                          \
        EXPECT(errno, ==, expected);                                                                                   \
    } while (0)
