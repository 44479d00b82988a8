/* One packet of the InfiniBand transport as plain values in host order. After decoding, nobody looks at bytes again;
 * a shared-memory frame, a UDP datagram and a line of a test script all become this. */
#ifndef WIRE_PACKET_H
#define WIRE_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/payload.h"

struct packet {
    uint8_t opcode; /* BTH: 3 bits of service, 5 of operation; see wire/op.h */
    bool migrated;  /* BTH MigReq: sent as 1, both accepted */
    bool ack_requested;
    uint16_t pkey;
    uint32_t destination; /* 24 bits: QP number */
    uint32_t psn;         /* 24 bits */

    uint64_t address;     /* RETH, AtomicETH; from here on to the end is what wire_decode clears at once */
    uint64_t swap_or_add; /* AtomicETH */
    uint64_t compare;     /* AtomicETH */
    uint64_t original;    /* AtomicAckETH */
    uint32_t rkey;        /* RETH, AtomicETH */
    uint32_t length;      /* RETH: bytes of the whole message */

    uint32_t msn;        /* AETH, 24 bits */
    uint8_t syndrome;    /* AETH */
    uint8_t placement;   /* FETH, 4 bits: where to, 1 global visibility, 2 persistence */
    uint8_t selectivity; /* FETH, 2 bits: of what, 0 the range, 1 the whole memory region */

    uint32_t immediate;      /* ImmDt: as verbs hand it over, in network order */
    uint32_t invalidate_key; /* IETH */

    uint32_t qkey;   /* DETH */
    uint32_t source; /* DETH, 24 bits: the sender's QP number */
    uint32_t srq;    /* XRCETH, 24 bits */

    bool solicited;           /* BTH; here are its bits that few packets have */
    bool forward_congestion;  /* BTH FECN */
    bool backward_congestion; /* BTH BECN */

    const uint8_t *lrh; /* the 8 bytes before it on InfiniBand; NULL: it is of RoCE, or of a connection */
    const uint8_t *grh; /* the 40 bytes that a UD receive shows (IPv4: the last 20 are its header); NULL: none known */
    struct payload payload;
};

#endif
