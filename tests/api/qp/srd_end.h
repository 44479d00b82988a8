/* Ends of scalable reliable datagrams, under a profile of EFA. Each end has a protection domain, a completion queue, a
 * region and a queue pair in RTS; all ends of a process share the device's one GID. Whatever fails here fails the
 * case. */
#pragma once

#include <infiniband/efadv.h>

#include "one_process.h"

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

enum {
    SRD_QKEY = 0x11111111,
    SRD_SENDS = 16,
    SRD_RECEIVES = 64,
    SRD_INLINE = 32,
    SRD_LONGEST = 8928, /* max_msg_sz of the profile */
    SRD_BYTES = 2 << 20,
    SRD_FOR_EVER = 7, /* rnr_retry */
    SRD_ALL_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
};

struct srd_end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;
    union ibv_gid gid;
    unsigned char *memory; /* SRD_BYTES */
};

struct srd_wishes {
    uint32_t sends, receives, rnr_retry;
    uint16_t flags; /* EFADV_QP_FLAGS_ */
};

struct ibv_context *srd_device(void);
/* An end on this device. */
struct srd_end srd_open_on(struct ibv_context *, struct srd_wishes);
/* The same with SRD_SENDS and SRD_RECEIVES, for ever. */
struct srd_end srd_open(struct ibv_context *);
void srd_close(struct srd_end *);

/* NULL and errno where it is refused. */
struct ibv_qp *srd_make_qp(struct ibv_context *, struct ibv_pd *, struct ibv_cq *, uint64_t operations,
                           struct srd_wishes);
void srd_to_rts(struct ibv_qp *, uint32_t rnr_retry);

/* A handle of the end's domain that leads to the device's GID. */
struct ibv_ah *srd_handle(const struct srd_end *);
int srd_number(struct ibv_ah *); /* efadv_query_ah */

/* A work request as its builders make it; NULL of `ah` calls no ibv_wr_set_ud_addr. */
struct srd_wr {
    enum ibv_wr_opcode opcode;
    struct ibv_ah *ah;
    uint32_t qpn, qkey, rkey, immediate;
    uint64_t id, remote;
    const void *from;
    uint32_t length, lkey;
    unsigned flags; /* 0: IBV_SEND_SIGNALED */
};

/* Of the first `length` bytes of the near end; READs and WRITEs are of the far end's second half. */
struct srd_wr srd_wr(const struct srd_end *near, const struct srd_end *far, struct ibv_ah *, enum ibv_wr_opcode,
                     uint32_t length);
/* Begins it within a batch. */
void srd_build(struct srd_end *, const struct srd_wr *);
/* The answer of ibv_wr_complete. */
int srd_try(struct srd_end *, const struct srd_wr *);
void srd_post(struct srd_end *, struct srd_wr);
void srd_post_receive(struct srd_end *, uint64_t id, uint32_t offset, uint32_t length);

/* The next completion must have these. */
struct ibv_wc srd_expect(struct srd_end *, uint64_t id, enum ibv_wc_status, uint32_t vendor);

/* A pattern that no shift leaves alike. */
void srd_fill(unsigned char *, uint32_t length, unsigned seed);
bool srd_is_filled(const unsigned char *, uint32_t length, unsigned seed);
