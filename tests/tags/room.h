/* One process with both sides of tag matching, through the public API: a tag-matching SRQ with a queue pair for each
 * sender, and the senders. */
#pragma once

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ROOM_SENDERS = 4,
    ROOM_MEMORY = 16 << 20,
    ROOM_HALF = ROOM_MEMORY / 2,
    TMH = 16,
    HEAD = 32,
    ROOM_RECEIVES = 4096 /* of the SRQ */
};

struct room_sender {
    struct ibv_qp *qp;    /* the sender's: ordinary */
    struct ibv_qp *tm_qp; /* on the SRQ */
};

struct room {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel, *sender_channel;
    struct ibv_cq_ex *cq;     /* the SRQ's */
    struct ibv_cq *sender_cq; /* sends and receives of all senders */
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    uint8_t *memory; /* the lower half is the receiver's, the upper one the senders' */
    struct room_sender senders[ROOM_SENDERS];
    uint32_t tags, operations;
};

/* A completion of the SRQ's queue. */
struct room_event {
    uint64_t id;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    unsigned flags;
    uint32_t length, vendor, qp_number;
    uint64_t tag;
    uint32_t application;
    uint32_t immediate;
};

/* Opens the first device and makes everything; `tags` is the size of the list. False: errno says why. */
bool room_open(struct room *, uint32_t tags, uint32_t operations);
void room_close(struct room *);
bool room_connect(struct room *, int sender); /* makes both queue pairs, RTS */
void room_disconnect(struct room *, int sender);
bool room_join(struct ibv_qp *, uint32_t peer, const union ibv_gid *); /* to RTS */
struct ibv_srq *room_make_srq(struct room *, struct ibv_srq_init_attr_ex *);
struct ibv_qp *room_make_tm_qp(struct room *, uint32_t max_send_wr); /* has builders for sends */

/* Receiver. Buffers are offsets in the lower half. */
int room_add(struct room *, uint64_t tag, uint64_t mask, uint64_t id, uint32_t offset, uint32_t length, int flags,
             uint32_t count, uint32_t *handle);
int room_operate(struct room *, enum ibv_ops_wr_opcode, uint64_t id, uint32_t handle, int flags, uint32_t count);
int room_post(struct room *, uint64_t id, uint32_t offset, uint32_t length); /* an ordinary receive */
bool room_poll(struct room *, struct room_event *);
bool room_wait(struct room *, struct room_event *); /* as long as patience lasts */
void room_let_come(void);                           /* before one polls for what must not be there */

/* Senders. Buffers are offsets in the upper half; messages are built there. */
uint8_t *room_upper(struct room *, uint32_t offset);
void room_head(uint8_t *to, uint8_t opcode, uint32_t application, uint64_t tag);
void room_rendezvous_head(struct room *, uint8_t *to, uint32_t application, uint64_t tag, uint32_t data,
                          uint32_t length);
int room_send(struct room *, int sender, uint64_t id, uint32_t offset, uint32_t length);
int room_post_finish(struct room *, int sender, uint64_t id, uint32_t offset); /* a receive for a FIN */
bool room_sender_wait(struct room *, struct ibv_wc *);
