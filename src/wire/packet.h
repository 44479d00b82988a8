/* A packet of the InfiniBand transport as plain values in host order. After decoding, no code looks at bytes again;
 * a shared-memory frame, a UDP datagram and a line of a test script all become a struct packet. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/payload.h"

/* The AETH's syndrome (IBA 9.7.5.2, tables 43 and 44). */
enum {
    SYNDROME_ACK = 0x1f, /* with the credit count for "no end-to-end flow control" */
    SYNDROME_RNR = 0x20, /* plus the timer code in the low five bits */
    SYNDROME_NAK_SEQUENCE = 0x60,
    SYNDROME_NAK_INVALID_REQUEST = 0x61,
    SYNDROME_NAK_REMOTE_ACCESS = 0x62,
    SYNDROME_NAK_REMOTE_OPERATION = 0x63,
};

enum syndrome_class {
    SYNDROME_CLASS_ACK = 0,
    SYNDROME_CLASS_RNR = 1,
    SYNDROME_CLASS_RESERVED = 2,
    SYNDROME_CLASS_NAK = 3,
};

static inline enum syndrome_class syndrome_class(uint8_t syndrome)
{
    return syndrome >> 5 & 3;
}

/* The fields of a word, from the highest bit to the lowest. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PACKET_WORD(a, b, c, d, e)                                                                                     \
    e;                                                                                                                 \
    d;                                                                                                                 \
    c;                                                                                                                 \
    b;                                                                                                                 \
    a
#else
#define PACKET_WORD(a, b, c, d, e)                                                                                     \
    a;                                                                                                                 \
    b;                                                                                                                 \
    c;                                                                                                                 \
    d;                                                                                                                 \
    e
#endif

/* The BTH (IBA 9.2) is three words of host order, whose bits have the places that they have on the wire: so a packet is
 * read and written word by word. The opcode has 3 bits of service and 5 of operation (wire/op.h); `migrated` is MigReq,
 * which is sent as 1 and accepted as either; forward_congestion is FECN, backward_congestion BECN; the destination is a
 * queue pair's number. Bits without a name are 0 here. */
enum {
    PACKET_BTH_0 = 0xffc0ffff, /* the bits of each word that have names */
    PACKET_BTH_1 = 0xc0ffffff,
    PACKET_BTH_2 = 0x80ffffff,
    PACKET_MIGRATED = 1 << 22,
};
#define PACKET_SOLICITED (1u << 23)     /* in the first word */
#define PACKET_ACK_REQUESTED (1u << 31) /* in the third word */

/* The header of SRD's packets after the DETH. A flow is all that a queue pair sends to another one; its packets have
 * numbers, and each is answered by itself (transport/srd/srd.h). */
struct srd_header {
    uint32_t epoch;  /* the flow's, chosen by its sender */
    uint32_t cookie; /* the flow's, chosen by its receiver, which sends it in WELCOME; 0 in HELLO */
    uint32_t number; /* of the packet; of an answer: the number that it answers, or the first one of its payload */
    uint32_t floor;  /* all numbers before it have ended at the sender; of an answer without payload: the status */
};

/* DC: the initiator asks the target for a responder, which then takes its requests. */
struct dc_header {
    uint64_t key;     /* the target's access key */
    uint32_t psn;     /* of the first request */
    uint16_t turn;    /* how often the initiator has asked; the answer repeats it */
    uint16_t segment; /* payload bytes of each packet but the last; of the answer: enum dc_status */
};

enum dc_status {
    DC_WELCOME,
    DC_WRONG_KEY,
    DC_ENDED, /* a responder that was welcome has ended; `psn`: of the first request that it did not take */
};

struct packet {
    union {
        uint32_t bth[3];
        struct {
            PACKET_WORD(uint8_t opcode, bool solicited : 1, bool migrated : 1, uint8_t : 6, uint16_t pkey);
            PACKET_WORD(bool forward_congestion : 1, bool backward_congestion : 1, uint8_t : 6, ,
                        uint32_t destination : 24);
            PACKET_WORD(bool ack_requested : 1, uint8_t : 7, , , uint32_t psn : 24);
        };
    };

    uint64_t address; /* RETH, AtomicETH; from here on wire_decode clears everything at once */
    union {
        struct {
            uint64_t swap_or_add; /* AtomicETH */
            uint64_t compare;     /* AtomicETH */
        };
        struct srd_header srd; /* SRDETH */
        struct dc_header dc;   /* DCETH; the answer's `srq` of XRCETH is in `qkey`: the number of the responder */
    };
    uint64_t original; /* AtomicAckETH */
    uint32_t rkey;     /* RETH, AtomicETH */
    uint32_t length;   /* RETH: bytes of the whole message */

    uint32_t msn;        /* AETH, 24 bits */
    uint8_t syndrome;    /* AETH */
    uint8_t placement;   /* FETH, 4 bits: 1 global visibility, 2 persistence */
    uint8_t selectivity; /* FETH, 2 bits: 0 the range, 1 the whole memory region */

    uint32_t immediate;      /* ImmDt: in network order, as in verbs */
    uint32_t invalidate_key; /* IETH */

    uint32_t qkey;   /* DETH */
    uint32_t source; /* DETH, 24 bits: the sender's QP number */
    uint32_t srq;    /* XRCETH, 24 bits */

    uint32_t way; /* inside the host: the sender's fields for a capture (enum frame_way, link/frame.h); 0: not known */

    const uint8_t *lrh; /* the 8 bytes of the LRH on InfiniBand; NULL: RoCE, or a connection's packet */
    const uint8_t *grh; /* the 40 bytes that a UD receive shows (IPv4: the last 20 are its header); NULL: not known */
    struct payload payload;
};
_Static_assert(offsetof(struct packet, address) <= 16, "the BTH takes three words");
