/* Two RC queue pairs of one process that are connected to each other, for programs that make mistakes on purpose. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

enum { LOOPBACK_MEMORY = 1 << 16, LOOPBACK_DEPTH = 16, LOOPBACK_ENDS = 2 };

enum loopback_variant { FAULTY, TWIN, NEIGHBOUR };

/* The options that differ from the usual. */
struct loopback_options {
    int entries; /* of the CQ; 0: enough for all */
    bool timeout_zero, retry_zero, rnr_endless;
    bool signals_all;
    uint64_t wc_flags; /* of the extended CQ; 0: the CQ is not extended */
    uint32_t cq_flags;
    bool channel;
    bool domain;                 /* the queue pairs are of a thread domain */
    bool patient;                /* with peers that have no receive: 0.7 s */
    bool srq;                    /* of the second one */
    enum ibv_mtu mtu;            /* 0: 1024 */
    uint8_t depth, target_depth; /* max_rd_atomic, max_dest_rd_atomic; 0: 4 */
    uint32_t rq_psn;
    unsigned access; /* qp_access_flags; 0: all that is remote */
    bool no_inline;  /* max_inline_data 0 */
    bool plain;      /* no builders, which devices of iWARP lack */
    int target_gid;  /* the index of the device's GID that is dgid, from its first on */
};

struct loopback {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_cq_ex *cq_ex;
    struct ibv_srq *srq;
    struct ibv_td *td;
    struct ibv_pd *domain;
    struct ibv_qp *qp[LOOPBACK_ENDS];
    char *memory;
};

/* Ends the process with 2 when something fails that no case is about. */
#define MUST(condition) ((condition) ? (void)0 : loopback_fail(#condition, __LINE__))
void loopback_fail(const char *condition, int line) __attribute__((noreturn));

void loopback_open(struct loopback *, const struct loopback_options *);
void loopback_close(struct loopback *);

/* The index of the port's first GID. */
int loopback_first_gid(struct ibv_context *);

/* Another queue pair, in RESET; the caller's. */
struct ibv_qp *loopback_make_qp(const struct loopback *, const struct loopback_options *);
/* Moves the queue pair to RTS, with the queue pair of this number as peer. */
void loopback_connect(const struct loopback *, struct ibv_qp *, uint32_t peer, const struct loopback_options *);

/* The same to RTR. */
void loopback_listen(const struct loopback *, struct ibv_qp *, uint32_t peer, const struct loopback_options *);

/* Inline, so that the place of a post is in the case. */
static inline struct ibv_sge loopback_piece(const struct loopback *loopback, unsigned at, unsigned length)
{
    return (struct ibv_sge){(uintptr_t)loopback->memory + at, length, loopback->mr->lkey};
}

/* Polls until `count` completions arrived, and returns the status of the last. */
enum ibv_wc_status loopback_poll(struct loopback *, unsigned count);
