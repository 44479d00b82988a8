/* The choices of a queue pair's owner for its engine, from ibv_modify_qp and the link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag.h"
#include "wire/op.h"

/* What programs of EFA ask for when they make a queue pair (efadv_create_qp_ex(3)). */
enum srd_option {
    SRD_UNSOLICITED = 1 << 0,  /* WRITEs with immediate take no receive */
    SRD_INLINE_WRITE = 1 << 1, /* only the owner's: WRITEs may have inline data */
};

/* Most settings are for RC and XRC. UC has pkey, destination, segment, exact, access and max_message; UD pkey,
 * number, qkey and max_message, which is the port's MTU; SRD these, segment, rnr_retry, max_rdma and seed; raw packets
 * have options. */
struct engine_settings {
    enum service service;
    uint16_t pkey;
    uint32_t destination;       /* the peer's QP number */
    uint32_t segment;           /* payload bytes of a packet (both directions agree: path MTU, or the link's) */
    uint32_t reference_segment; /* `segment` of SENDs and WRITEs by reference; 0: the link can't */
    uint32_t reference_from;    /* messages of at least this many bytes are sent by reference */
    bool in_pieces;             /* new messages are sent in packets, not by reference */
    /* the peer can't fetch payloads by reference any more: payloads that it refuses are sent in packets */
    bool references_lost;
    bool exact;                 /* both ends cut messages by `segment`, so that requests of other sizes are refused */
    uint32_t window;            /* most unacknowledged packets in flight; at least 1 */
    uint32_t first_window;      /* the window at first, if the network may lose packets; 0: it never does */
    uint8_t timeout;            /* 4.096 us * 2^timeout; 0: for ever */
    uint8_t retry_count;        /* 0..7 */
    uint8_t rnr_retry;          /* 0..7; 7 is for ever */
    uint8_t min_rnr_timer;      /* 0..31, the code that our RNR NAKs carry (IBA table 45) */
    uint8_t max_rd_atomic;      /* most READs and atomics of ours that are outstanding */
    uint8_t max_dest_rd_atomic; /* most of the peer's that we keep results for; raising it after RTR has no effect */
    uint32_t ack_mask;          /* an unsignalled message asks for an ACK only if all these bits of its PSN are 0 */
    bool acks_along;            /* the owner sends ACKs along with requests (engine_take_along) */
    unsigned access;            /* qp_access_flags: IBV_ACCESS_REMOTE_* that peers may use on this QP */
    bool owner_changes;         /* the owner executes atomics (owner_operations.change) */
    bool direct;                /* the owner may do READs and WRITEs by itself (engine_transmit_directly) */
    uint32_t direct_above;      /* READs and WRITEs that are not longer than this are sent as packets */
    enum reason silence;        /* why the peer does not answer, if the owner knows; or REASON_NONE */
    uint32_t max_message;       /* bytes; a longer SEND or WRITE ends in LOC_LEN_ERR, a longer request is refused */
    uint32_t max_rdma;          /* SRD: max_message of READs and WRITEs */
    uint64_t seed;              /* SRD: a random number, another one after each reset */
    uint32_t number;            /* our QP number, for DETH */
    uint32_t qkey;
    unsigned options; /* enum raw_option; SRD: enum srd_option */
};
