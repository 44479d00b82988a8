/* Bytes <-> struct packet. Pure: no allocation, no state, thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

enum { WIRE_HEADERS_MAX = 64 }; /* BTH 12 + DETH 8 + SRD's 16 + RETH 16 + ImmDt 4 is the longest; rounded up */

enum wire_fault {
    WIRE_FINE = 0,
    WIRE_TRUNCATED,  /* shorter than its headers */
    WIRE_VERSION,    /* BTH TVer is not 0 */
    WIRE_OPCODE,     /* reserved or not offered */
    WIRE_PAD,        /* payload and pad are no multiple of 4 bytes, or the pad is too long */
    WIRE_UNEXPECTED, /* payload of an operation that can't carry it */
    WIRE_ICRC,       /* the invariant CRC does not match (datagrams only) */
};

/* Writes BTH and extension headers of the packet to `to`, which has room for WIRE_HEADERS_MAX bytes, and returns the
 * number of bytes. The BTH's pad count is (-payload.length) & 3. The packet's opcode must exist (op_find). */
unsigned wire_encode(const struct packet *, uint8_t *to);

/* Reads BTH and extension headers from the first `length` bytes. Total: any input gives a fault or a valid packet, and
 * every field that the operation doesn't have is 0. *headers is the number of bytes read, *pad the BTH's pad count.
 * packet->payload, packet->lrh and packet->grh are left empty: the caller knows where those are. */
enum wire_fault wire_decode(const uint8_t *bytes, size_t length, struct packet *, unsigned *headers, unsigned *pad);

/* Checks whether this payload length is possible for the packet's operation: WIRE_FINE or WIRE_UNEXPECTED. */
enum wire_fault wire_check_payload(const struct packet *, uint32_t length);

/* Writes one line for people: "RC SEND_ONLY qp 0x11 psn 42 ack 8 bytes". Always ends in a NUL; returns `to`. */
char *wire_describe(const struct packet *, char *to, size_t size);

/* An English phrase for a fault. Never NULL. */
const char *wire_fault_text(enum wire_fault);
