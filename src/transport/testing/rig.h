/* An engine on a bench, for tests. Its world is a few arrays, and time is a number. */
#pragma once

#include "transport/engine/engine.h"

enum {
    RIG_MEMORY = 1 << 16,
    RIG_QUEUE = 64,
    RIG_INLINE = 64,
    RIG_SEGMENT = 256,
    RIG_OURS = 100,    /* the first PSN that we send */
    RIG_THEIRS = 2000, /* the first PSN that we expect */
    RIG_QKEY = 0x1111,
    RIG_NUMBER = 0x11, /* our queue pair number */
    RIG_PEER = 0x22,   /* the peer's */
    RIG_TIMEOUT = 14,
    RIG_ACK_TIMER = 4096 << RIG_TIMEOUT, /* nanoseconds */
    RIG_NO_SRQ = 0x99,                   /* the number of an SRQ that does not exist */
    RIG_SHIFT = 4,
};

enum rig_key {
    KEY_ALL = 0x100,     /* the whole memory, for every access */
    KEY_NOTHING = 0x200, /* the whole memory, to be read locally only */
    KEY_SHIFTED = 0x300, /* for every access; its address 0 is byte RIG_SHIFT of the memory (ibv_reg_mr_iova) */
};

struct rig_receive {
    struct recv_wqe receive;
    struct ibv_sge sge[3];
};

struct rig_end {
    uint64_t id;
    uint8_t opcode;
    enum ibv_wc_status status;
    enum reason reason;
};

struct rig_arrival {
    uint64_t id;
    struct recv_cqe arrival;
};

struct rig {
    struct engine_owner owner; /* first: the host's operations get it */
    enum service service;      /* which engine is on the bench; SERVICE_RC: rc, with any settings */
    struct engine engine;
    struct responder_resource saved[16];
    _Alignas(8) uint8_t memory[RIG_MEMORY];
    _Alignas(8) uint8_t queue[RIG_QUEUE * (sizeof(struct send_wqe) + RIG_INLINE)];
    struct rig_receive receives[RIG_QUEUE];
    struct rig_end ends[2 * RIG_QUEUE];
    struct rig_arrival arrivals[2 * RIG_QUEUE];
    enum ibv_event_type events[32];
    enum reason dropped[1024];
    unsigned posted, taken;                   /* receives */
    unsigned ended, arrived, raised, drops;   /* entries of the logs */
    unsigned saw_end, saw_arrival, saw_event; /* entries that the script has dealt with */
    unsigned looked_up;                       /* how often a key was asked for */
    unsigned failures;                        /* owner->failed */
    unsigned timeouts;                        /* noted time-outs */
    uint32_t timeout_psn, retries_left;       /* of the last one */
    uint32_t invalidated;                     /* the key that was invalidated */
    uint32_t srq;                             /* XRC: the SRQ selected last */
    uint64_t next_id;
    enum ibv_wc_status local_status; /* the status of local operations */
    uint64_t local_operation;        /* id of the last one executed */
    nanos now;
    nanos told;        /* when the engine wants engine_expire: as it reported by itself, or on a query after a wait */
    bool deregistered; /* no key exists any more */
    uint32_t reached;  /* DC: the receiver to which the owner is connected */
    bool looks_inside; /* a receive is chosen by the first byte of the message */
    struct packet out; /* the last packet transmitted */
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    uint8_t carried[RIG_MEMORY]; /* its payload */
};

/* Makes an engine in RTS that talks to a peer of the same settings. `rig_make` stops before RTR, to change settings. */
void rig_make(struct rig *);
void rig_make_unreliable(struct rig *, enum service); /* UC or UD */
void rig_start(struct rig *);

/* Moves the send side of UC or UD from its error state (SQE) to RTS. */
void rig_resume(struct rig *);

/* A work request of the script: fields that are not set are 0, except that the id (1, 2, ...) and the lkey (KEY_ALL)
 * have defaults. */
struct rig_work {
    enum ibv_wr_opcode opcode;
    unsigned flags;
    uint32_t length;
    uint32_t at; /* its local data's place in the memory */
    uint32_t lkey, rkey;
    uint64_t remote;
    uint32_t immediate;
    uint64_t compare_or_add, swap;
    uint32_t srq;
    uint32_t sge_count; /* spread over this many elements; default 1 */
    uint32_t qkey;      /* UD; default RIG_QKEY */
    uint32_t receiver;  /* DC */
};

/* A packet from the peer: `bytes` of payload, each `fill`. `broken`: the payload can't be fetched. */
struct rig_packet {
    uint32_t bytes;
    uint8_t fill;
    bool broken;
    struct packet packet; /* all but opcode, PSN and payload */
};

uint64_t rig_post(struct rig *, struct rig_work);
uint64_t rig_post_receive(struct rig *, uint32_t at, uint32_t length, uint32_t lkey);
void rig_arrive(struct rig *, enum operation, uint32_t psn, struct rig_packet);
void rig_wait(struct rig *, nanos);

/* Transmits into rig->out and rig->carried. False: nothing. */
bool rig_transmit(struct rig *);
bool rig_has_output(const struct rig *);

/* The service of the rig's packets. */
enum service rig_service(const struct rig *);
