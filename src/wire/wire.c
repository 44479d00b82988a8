#include "wire/wire.h"

#include <string.h>

#include "base/likely.h"
#include "wire/bytes.h"
#include "wire/op.h"

enum { BITS_24 = 0xffffff };

/* BTH, IBA 9.2: opcode 8 | SE 1, M 1, pad 2, TVer 4 | P_Key 16 | FECN 1, BECN 1, reserved 6 | QP 24 |
 * A 1, reserved 7 | PSN 24. */
enum { BTH_LENGTH = 12 };

enum {
    EXTENSIONS = OP_XRCETH | OP_DETH | OP_FETH | OP_RETH | OP_ATOMICETH | OP_AETH | OP_ATOMICACKETH | OP_IMMDT |
                 OP_IETH | OP_CNP | OP_SRDETH,
};

/* Calls `call` with constant flags for the extension headers that nearly all packets have, so that the compiler leaves
 * only the loads and stores of these. */
#define FOR_USUAL_EXTENSIONS(flags, call, packet, bytes)                                                               \
    switch ((flags)&EXTENSIONS) {                                                                                      \
    case 0:                                                                                                            \
        break;                                                                                                         \
    case OP_RETH:                                                                                                      \
        call(packet, OP_RETH, bytes);                                                                                  \
        break;                                                                                                         \
    case OP_AETH:                                                                                                      \
        call(packet, OP_AETH, bytes);                                                                                  \
        break;                                                                                                         \
    default:                                                                                                           \
        if (((flags)&EXTENSIONS) == (OP_DETH | OP_SRDETH))                                                             \
            call(packet, OP_DETH | OP_SRDETH, bytes);                                                                  \
        else                                                                                                           \
            call(packet, flags, bytes);                                                                                \
    }

static inline void encode_bth(const struct packet *packet, uint8_t *to)
{
    uint32_t pad = -packet->payload.length & 3;
    bytes_put32(to, packet->bth[0] | pad << 20);
    bytes_put32(to + 4, packet->bth[1]);
    bytes_put32(to + 8, packet->bth[2]);
}

/* The extension headers of responses, requests to a responder and datagrams are disjoint but for XRCETH, ImmDt and
 * IETH, so the order of these blocks is the order on the wire (IBA 5.2). */
static inline uint8_t *encode_target(const struct packet *packet, uint32_t flags, uint8_t *to)
{
    if (flags & OP_XRCETH) {
        bytes_put32(to, packet->srq & BITS_24);
        to += 4;
    }
    if (flags & OP_DETH) {
        bytes_put32(to, packet->qkey);
        bytes_put32(to + 4, packet->source & BITS_24);
        to += 8;
    }
    if (flags & OP_SRDETH) {
        bytes_put32(to, packet->srd.epoch);
        bytes_put32(to + 4, packet->srd.cookie);
        bytes_put32(to + 8, packet->srd.number);
        bytes_put32(to + 12, packet->srd.floor);
        to += 16;
    }
    if (flags & OP_DCETH) {
        bytes_put64(to, packet->dc.key);
        bytes_put32(to + 8, packet->dc.psn);
        bytes_put16(to + 12, packet->dc.turn);
        bytes_put16(to + 14, packet->dc.segment);
        to += 16;
    }
    if (flags & OP_FETH) {
        bytes_put32(to, (packet->selectivity & 3u) << 4 | (packet->placement & 15));
        to += 4;
    }
    if (flags & (OP_RETH | OP_ATOMICETH)) {
        bytes_put64(to, packet->address);
        bytes_put32(to + 8, packet->rkey);
        to += 12;
    }
    if (flags & OP_RETH) {
        bytes_put32(to, packet->length);
        to += 4;
    }
    if (flags & OP_ATOMICETH) {
        bytes_put64(to, packet->swap_or_add);
        bytes_put64(to + 8, packet->compare);
        to += 16;
    }
    return to;
}

static inline uint8_t *encode_response(const struct packet *packet, uint32_t flags, uint8_t *to)
{
    if (flags & OP_AETH) {
        bytes_put32(to, (uint32_t)packet->syndrome << 24 | (packet->msn & BITS_24));
        to += 4;
    }
    if (flags & OP_ATOMICACKETH) {
        bytes_put64(to, packet->original);
        to += 8;
    }
    return to;
}

static inline void encode_end(const struct packet *packet, uint32_t flags, uint8_t *to)
{
    if (flags & OP_IMMDT)
        memcpy(to, &packet->immediate, 4);
    if (flags & OP_IETH)
        bytes_put32(to, packet->invalidate_key);
    if (flags & OP_CNP)
        memset(to, 0, 16);
}

static inline void encode_extensions(const struct packet *packet, uint32_t flags, uint8_t *to)
{
    to = encode_target(packet, flags, to);
    to = encode_response(packet, flags, to);
    encode_end(packet, flags, to);
}

unsigned wire_encode(const struct packet *packet, uint8_t *to)
{
    const struct op *op = &op_table[packet->bth[0] >> 24];
    encode_bth(packet, to);
    to += BTH_LENGTH;
    FOR_USUAL_EXTENSIONS(op->flags, encode_extensions, packet, to)
    return op->headers;
}

static inline void decode_bth(const uint8_t *from, struct packet *packet)
{
    packet->bth[0] = bytes_get32(from) & PACKET_BTH_0;
    packet->bth[1] = bytes_get32(from + 4) & PACKET_BTH_1;
    packet->bth[2] = bytes_get32(from + 8) & PACKET_BTH_2;
}

static inline const uint8_t *decode_target(const uint8_t *from, uint32_t flags, struct packet *packet)
{
    if (flags & OP_XRCETH) {
        packet->srq = bytes_get32(from) & BITS_24;
        from += 4;
    }
    if (flags & OP_DETH) {
        packet->qkey = bytes_get32(from);
        packet->source = bytes_get32(from + 4) & BITS_24;
        from += 8;
    }
    if (flags & OP_SRDETH) {
        packet->srd.epoch = bytes_get32(from);
        packet->srd.cookie = bytes_get32(from + 4);
        packet->srd.number = bytes_get32(from + 8);
        packet->srd.floor = bytes_get32(from + 12);
        from += 16;
    }
    if (flags & OP_DCETH) {
        packet->dc.key = bytes_get64(from);
        packet->dc.psn = bytes_get32(from + 8);
        packet->dc.turn = bytes_get16(from + 12);
        packet->dc.segment = bytes_get16(from + 14);
        from += 16;
    }
    if (flags & OP_FETH) {
        packet->placement = from[3] & 15;
        packet->selectivity = from[3] >> 4 & 3;
        from += 4;
    }
    if (flags & (OP_RETH | OP_ATOMICETH)) {
        packet->address = bytes_get64(from);
        packet->rkey = bytes_get32(from + 8);
        from += 12;
    }
    if (flags & OP_RETH) {
        packet->length = bytes_get32(from);
        from += 4;
    }
    if (flags & OP_ATOMICETH) {
        packet->swap_or_add = bytes_get64(from);
        packet->compare = bytes_get64(from + 8);
        from += 16;
    }
    return from;
}

static inline const uint8_t *decode_response(const uint8_t *from, uint32_t flags, struct packet *packet)
{
    if (flags & OP_AETH) {
        packet->syndrome = from[0];
        packet->msn = bytes_get32(from) & BITS_24;
        from += 4;
    }
    if (flags & OP_ATOMICACKETH) {
        packet->original = bytes_get64(from);
        from += 8;
    }
    return from;
}

static inline void decode_end(const uint8_t *from, uint32_t flags, struct packet *packet)
{
    if (flags & OP_IMMDT)
        memcpy(&packet->immediate, from, 4);
    if (flags & OP_IETH)
        packet->invalidate_key = bytes_get32(from);
}

static inline void decode_extensions(struct packet *packet, uint32_t flags, const uint8_t *from)
{
    from = decode_target(from, flags, packet);
    from = decode_response(from, flags, packet);
    decode_end(from, flags, packet);
}

/* Clears two parts, each by a few stores of registers: for a whole struct compilers use `rep stos`, which takes longer
 * than the rest of decoding. */
static inline void clear_extensions(struct packet *packet)
{
    enum { START = offsetof(struct packet, address), PART = 64 };
    _Static_assert(sizeof *packet - START > PART && sizeof *packet - START <= 2 * PART, "two parts, which may overlap");
    memset((uint8_t *)packet + START, 0, PART);
    memset((uint8_t *)packet + sizeof *packet - PART, 0, PART);
}

static inline void clear_bth(struct packet *packet)
{
    memset(packet->bth, 0, sizeof packet->bth);
}

/* Makes the checks that need no decoding. The version is first, since another version may have other opcodes; an opcode
 * that does not exist has no headers in the table. */
static inline enum wire_fault find_fault(const uint8_t *bytes, size_t length)
{
    const struct op *op = &op_table[bytes[0]];
    if (bytes[1] & 15)
        return WIRE_VERSION;
    if (!op->headers)
        return WIRE_OPCODE;
    if (length < op->headers)
        return WIRE_TRUNCATED;
    if ((bytes[1] & 0x30) && !(op->flags & OP_PAYLOAD))
        return WIRE_PAD;
    return WIRE_FINE;
}

enum wire_fault wire_decode(const uint8_t *bytes, size_t length, struct packet *packet, unsigned *headers,
                            unsigned *pad)
{
    *headers = *pad = 0;
    clear_extensions(packet);
    enum wire_fault fault = length < BTH_LENGTH ? WIRE_TRUNCATED : find_fault(bytes, length);
    if (unlikely(fault != WIRE_FINE)) {
        clear_bth(packet);
        return fault;
    }
    const struct op *op = &op_table[bytes[0]];
    decode_bth(bytes, packet);
    FOR_USUAL_EXTENSIONS(op->flags, decode_extensions, packet, bytes + BTH_LENGTH)
    *headers = op->headers;
    *pad = bytes[1] >> 4 & 3;
    return WIRE_FINE;
}

enum wire_fault wire_check_payload(const struct packet *packet, uint32_t length)
{
    uint32_t flags = op_table[packet->opcode].flags;
    if (flags & OP_ATOMIC_WRITE)
        return length == 8 ? WIRE_FINE : WIRE_UNEXPECTED;
    return length == 0 || (flags & OP_PAYLOAD) ? WIRE_FINE : WIRE_UNEXPECTED;
}

const char *wire_fault_text(enum wire_fault fault)
{
    switch (fault) {
    case WIRE_FINE:
        return "no fault";
    case WIRE_TRUNCATED:
        return "shorter than its headers";
    case WIRE_VERSION:
        return "unknown transport header version";
    case WIRE_OPCODE:
        return "unknown operation";
    case WIRE_PAD:
        return "pad count does not fit the payload";
    case WIRE_UNEXPECTED:
        return "payload that the operation does not have";
    case WIRE_ICRC:
        return "wrong invariant CRC";
    }
    return "unknown fault";
}
