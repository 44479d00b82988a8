/* A seeded generator (xorshift) for tests and fuzzers, so that a failure repeats, and random legal packets. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/op.h"
#include "wire/packet.h"
#include "wire/psn.h"

static uint64_t random_seed = 88172645463325252ull;

static inline uint64_t draw(void)
{
    random_seed ^= random_seed << 13;
    random_seed ^= random_seed >> 7;
    return random_seed ^= random_seed << 17;
}

static inline void draw_bytes(uint8_t *to, size_t length)
{
    for (size_t i = 0; i < length; i++)
        to[i] = (uint8_t)(draw() >> 24);
}

static inline uint8_t draw_opcode(void)
{
    uint8_t opcode;
    do
        opcode = (uint8_t)(draw() >> 24);
    while (!op_find(opcode));
    return opcode;
}

/* Fields that the operation does not have are 0. */
static inline struct packet draw_packet(void)
{
    uint64_t bits = draw();
    struct packet packet = {.opcode = draw_opcode(),
                            .solicited = bits & 1,
                            .migrated = bits & 2,
                            .ack_requested = bits & 4,
                            .forward_congestion = bits & 8,
                            .backward_congestion = bits & 16,
                            .pkey = (uint16_t)draw(),
                            .destination = draw() & 0xffffff,
                            .psn = draw() & PSN_MASK};
    uint32_t flags = op_find(packet.opcode)->flags;
    packet.address = flags & (OP_RETH | OP_ATOMICETH) ? draw() : 0;
    packet.rkey = flags & (OP_RETH | OP_ATOMICETH) ? (uint32_t)draw() : 0;
    packet.length = flags & OP_RETH ? (uint32_t)draw() : 0;
    packet.swap_or_add = flags & OP_ATOMICETH ? draw() : 0;
    packet.compare = flags & OP_ATOMICETH ? draw() : 0;
    if (flags & OP_SRDETH)
        packet.srd = (struct srd_header){(uint32_t)draw(), (uint32_t)draw(), (uint32_t)draw(), (uint32_t)draw()};
    packet.original = flags & OP_ATOMICACKETH ? draw() : 0;
    packet.syndrome = flags & OP_AETH ? (uint8_t)draw() : 0;
    packet.placement = flags & OP_FETH ? draw() & 15 : 0;
    packet.selectivity = flags & OP_FETH ? draw() & 3 : 0;
    packet.msn = flags & OP_AETH ? draw() & 0xffffff : 0;
    packet.immediate = flags & OP_IMMDT ? (uint32_t)draw() : 0;
    packet.invalidate_key = flags & OP_IETH ? (uint32_t)draw() : 0;
    packet.qkey = flags & OP_DETH ? (uint32_t)draw() : 0;
    packet.source = flags & OP_DETH ? draw() & 0xffffff : 0;
    packet.srq = flags & OP_XRCETH ? draw() & 0xffffff : 0;
    return packet;
}

/* Returns true if the headers are the same. Payload and GRH are not looked at. The fields of an AtomicETH have the
 * place of SRD's header. */
static inline bool same_headers(const struct packet *a, const struct packet *b)
{
    return a->opcode == b->opcode && a->solicited == b->solicited && a->migrated == b->migrated &&
           a->ack_requested == b->ack_requested && a->forward_congestion == b->forward_congestion &&
           a->backward_congestion == b->backward_congestion && a->pkey == b->pkey && a->destination == b->destination &&
           a->psn == b->psn && a->address == b->address && a->rkey == b->rkey && a->length == b->length &&
           a->swap_or_add == b->swap_or_add && a->compare == b->compare && a->original == b->original &&
           a->syndrome == b->syndrome && a->placement == b->placement && a->selectivity == b->selectivity &&
           a->msn == b->msn && a->immediate == b->immediate && a->invalidate_key == b->invalidate_key &&
           a->qkey == b->qkey && a->source == b->source && a->srq == b->srq;
}
