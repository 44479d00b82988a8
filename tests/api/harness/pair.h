/* Two ends with what most tests need: a queue pair each, connected, with CQs and a registered piece of memory. */
#pragma once

#include "harness.h"
#include "remote_end.h"

struct end {
    struct remote_end *remote;
    int pd, channel, send_cq, receive_cq, srq, qp, mr, ah;
    uint32_t number; /* of the queue pair */
    uint64_t memory, length;
    uint32_t lkey, rkey;
    union ibv_gid gid;
    struct ibv_qp_cap cap;
    int cqe; /* true size of the send CQ */
};

/* The properties of a pair. pair_wishes() gives: RC, 64 work requests, 4 SGEs, 64 bytes inline, CQs of 256 (one for
 * sending and one for receiving), 64 KiB of memory with all access, timeout 10 (4 ms), 2 retries, rnr_retry 7. */
struct wishes {
    enum ibv_qp_type type;
    struct ibv_qp_cap cap;
    bool signal_all;
    bool srq;     /* the far end receives through an SRQ of cap.max_recv_wr */
    bool channel; /* both CQs of both ends report to one channel */
    bool one_cq;
    int cqe;
    uint64_t cq_flags; /* not 0: extended CQs with these fields */
    uint64_t length;
    int access;
    unsigned qp_access;
    uint8_t timeout, retries, rnr_retries, rnr_timer, reads, served_reads;
    uint32_t qkey;
    int gid_index;
};

enum {
    ACCESS_ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    QKEY = 0x11111111,
};

struct pair {
    struct end near, far;
    struct wishes wishes;
};

struct wishes pair_wishes(enum ibv_qp_type);

/* Everything made, both queue pairs in RTS (UD: with an address handle to the other end). Fails the case otherwise. */
struct pair pair_open(enum ibv_qp_type);
struct pair pair_open_as(struct wishes);

/* The steps of it, for tests that stop half-way. */
struct pair pair_make(struct wishes); /* queue pairs in RESET */
void pair_connect(struct pair *);
int end_initialize(struct end *, const struct wishes *); /* to INIT; the errno of modify */
int end_ready_to_receive(struct end *, const struct wishes *, const struct end *peer);
int end_ready_to_send(struct end *, const struct wishes *);
int end_move(struct end *, enum ibv_qp_state);
enum ibv_qp_state end_state(struct end *);
/* One more queue pair at an end, on the same CQs and PD; the end's qp and number are that one then. */
void end_create_qp(struct end *, const struct wishes *);

/* One SGE into the end's own memory. */
struct ibv_sge end_sge(const struct end *, uint64_t offset, uint32_t length);
/* A signalled work request from this end's memory at `offset` to the same offset of the peer's. */
struct send end_send(const struct end *, const struct end *peer, enum ibv_wr_opcode, uint64_t id, uint64_t offset,
                     uint32_t length);
struct receive end_receive(const struct end *, uint64_t id, uint64_t offset, uint32_t length);

/* Post and expect that it is taken. */
void end_post(struct end *, struct send);
void end_post_receive(struct end *, struct receive);

/* The next completion of the queue, which must arrive. */
struct ibv_wc end_sent(struct end *);
struct ibv_wc end_received(struct end *);
/* The completion must arrive and be this. */
void end_expect_sent(struct end *, uint64_t id, enum ibv_wc_status);
void end_expect_received(struct end *, uint64_t id, enum ibv_wc_status, uint32_t length);
/* No completion is there now. The caller must have waited by other means for messages that could still be on their way.
 */
void end_expect_nothing(struct end *);

/* A SEND from one end to the other that must arrive; shows that the pair still works and that whatever was sent before
 * it has arrived or is lost. Uses the last 4 KiB of both memories, which are of one length. */
void pair_ping(struct pair *, struct end *from, struct end *to);
