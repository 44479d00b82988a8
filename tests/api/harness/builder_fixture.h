/* A fixture for builders, ibv_wr_post(3): one queue pair, mostly connected with itself, and what it needs. Whatever
 * fails here fails the case. */
#pragma once

#include "one_process.h"

enum {
    SENDS = 8,
    INLINE = 64,
    TARGET = 2048, /* where in the memory the far side is */
    ID = 1000,
    OPS_RC = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
             IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
             IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
             IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE,
    OPS_UD = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
};

struct builder {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *sent, *received;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;
    char *memory;
};

/* NULL and errno when it is refused. */
struct ibv_qp *builder_make_qp(struct builder *builder, enum ibv_qp_type type, uint64_t operations);
/* Opens a builder with a queue pair in RESET. */
struct builder builder_open(enum ibv_qp_type type, uint64_t operations);
/* Opens a builder of RC, with all operations, connected with itself. */
struct builder builder_open_connected(void);
/* Objects that are left are destroyed with it. */
void builder_close(struct builder *builder);
/* The receive is into the target, with wr_id ID. */
void builder_post_receive(struct builder *builder, uint32_t length);
/* Begins a batch of one signalled work request. */
struct ibv_qp_ex *builder_start(struct builder *builder);
/* The memory's first bytes are what is sent. */
void builder_set_source(struct builder *builder, const char *text);
/* Ends the batch, whose completion must arrive and be a success. */
void builder_complete(struct builder *builder, enum ibv_wc_opcode opcode);
/* The receive's completion, with this text in the target. */
struct ibv_wc builder_expect_received(struct builder *builder, const char *text);
/* The address of the target, and eight bytes of the memory. */
uint64_t builder_target(const struct builder *builder);
uint64_t builder_word_at(const struct builder *builder, size_t offset);
