/* The unit that a link carries: a few header bytes and a payload. A link does not interpret them. */
#pragma once

#include <stdint.h>

#include "wire/payload.h"

enum { FRAME_HEADERS_MAX = 112 }; /* LRH 8 + GRH 40 + WIRE_HEADERS_MAX 64 */

enum frame_kind {
    FRAME_ROCE = 1,     /* headers: BTH and extension headers */
    FRAME_GRH = 2,      /* headers: the 40 bytes of a GRH as a UD receive shows them, then BTH and extension headers */
    FRAME_ETHERNET = 3, /* headers: 4 bytes, the number of the queue pair that sends; payload: an Ethernet frame */
    FRAME_FORWARDED =
        4, /* headers: 8 bytes, the UDP source port in the first two and the index of the interface in the last four;
              then as FRAME_GRH. From the network by way of another process of the host, which got it from the kernel */
    FRAME_LRH = 5,      /* headers of an InfiniBand packet without a GRH: LRH (8 bytes), BTH and so on */
    FRAME_LRH_GRH = 6,  /* as FRAME_LRH with a GRH: LRH, GRH (40 bytes), BTH and so on */
    FRAME_XRC = 7,      /* headers: a control message between two processes that share an XRC domain
                           (verbs/kinds/xrc/xrc_control.h) */
    FRAME_CAPTURED = 8, /* sent in place of FRAME_ROCE by a process that captures. Headers: 4 bytes, what it has
                           captured (enum frame_way), then BTH and extension headers */
    FRAME_KINDS
};

/* Where in the first 4 bytes of FRAME_CAPTURED, a number in network order, the fields of a network's headers are, which
 * the packet does not have: the receiver captures them, too. The number is 0 where they are not known. */
enum frame_way {
    FRAME_WAY_CLASS = 0,  /* where the traffic class begins, 8 bits */
    FRAME_WAY_HOPS = 8,   /* the hop limit, 8 bits */
    FRAME_WAY_LEVEL = 16, /* the service level, 4 bits */
    FRAME_WAY_KNOWN = 1 << 20,
    FRAME_WAY_LENGTH = 4,
};

/* How many bytes are before the BTH of a frame that a queue pair sends. */
static inline unsigned frame_outer_length(uint8_t kind)
{
    static const uint8_t lengths[FRAME_KINDS] = {
        [FRAME_GRH] = 40, [FRAME_LRH] = 8, [FRAME_LRH_GRH] = 48, [FRAME_CAPTURED] = FRAME_WAY_LENGTH};
    return lengths[kind];
}

/* The result of sending a frame. */
enum frame_sent {
    FRAME_NO_ROOM, /* nothing happened */
    FRAME_SENT,
    FRAME_UNREADABLE, /* the memory of its payload is gone (wire/guarded.h); nothing was sent */
    FRAME_TOO_LONG,   /* longer than the link carries; nothing was sent */
};

struct frame {
    uint8_t kind; /* enum frame_kind */
    uint16_t headers_length;
    const uint8_t *headers;
    struct payload payload;
    uint32_t along; /* a number for the receiver, which a ring carries with a payload of bytes as it is; 0 arrives with
                       other frames */
    uint32_t corrupt; /* datagrams: this bit, counted from 1 and modulo the length, is flipped on the way; 0: no bit */
};
