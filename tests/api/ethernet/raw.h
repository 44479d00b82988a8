/* Tests of raw packets: the far end sends Ethernet frames, receivers of this process get what their rules say. */
#pragma once

#include "local_end.h"

enum {
    FRAME = 100, /* bytes of a frame, unless said otherwise */
    ROOM = 2048, /* of a receive */
    RECEIVES = 16,
    TYPE = 0x1234, /* an EtherType that nothing looks into */
    UDP_FRAME = 60,
    KEY = 40,
    QUEUES = 4,
    FLAGS = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_CVLAN,
};

extern const uint8_t mac[6], other_mac[6], group_mac[6];

/* A receiver in this process. */
struct receiver {
    struct ibv_qp *qp;
    struct ibv_cq_ex *cq;
    struct ibv_mr *mr;
    uint8_t memory[RECEIVES][ROOM];
};

struct got {
    int64_t id;
    uint32_t length, tag, flags, number;
    uint16_t cvlan;
    enum ibv_wc_status status;
};

struct wanted {
    const uint8_t *mac;
    enum ibv_flow_attr_type type;
    uint32_t flags, tag;
    uint16_t priority;
    bool drop;
    struct ibv_counters *counters;
};

/* A frame to this address, of a type that nothing looks into. */
void raw_fill_frame(uint8_t *frame, const uint8_t *to, uint32_t length);
/* UDP over IPv4 from this address: what hashes spread. The checksums are 0. */
void raw_fill_udp(uint8_t *frame, uint32_t source);
/* Raw packet queue pairs of both ends, in RTS. */
struct pair raw_open_pair(void);
void raw_far_sends_to(struct pair *pair, const uint8_t *to);
/* The far end sends, and its completion is waited for. */
void raw_far_sends(struct pair *pair, const uint8_t *frame, uint32_t length, unsigned flags);
/* The queue pair is in RTS, with this number of receives posted. */
struct receiver *raw_make_receiver(const struct pair *pair, uint32_t create_flags, uint32_t receives);
void raw_destroy_receiver(struct receiver *receiver);
/* False: nothing is there. */
bool raw_poll_once(struct ibv_cq_ex *cq, struct got *got);
/* The next completion, which must arrive and be a success. */
struct got raw_receive_on(struct ibv_cq_ex *cq);
struct got raw_gets(struct receiver *receiver);
/* When this returns, each frame sent before has arrived or is lost, since links keep the order. The witness has a rule
 * for everything. */
void raw_flush_to(struct pair *pair, struct receiver *witness);
void raw_gets_nothing(struct receiver *receiver);
/* A rule for an address, or for everything, with actions; NULL and errno. */
struct ibv_flow *raw_try_flow(struct ibv_qp *qp, struct wanted wanted);
/* Fails the case when no frame arrives. */
struct ibv_flow *raw_must(struct ibv_flow *flow);

#define RAW_TRY_FLOW(qp, ...) raw_try_flow(qp, (struct wanted){__VA_ARGS__})
#define RAW_FLOW(receiver, ...) raw_must(RAW_TRY_FLOW((receiver)->qp, __VA_ARGS__))
