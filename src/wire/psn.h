/* Packet sequence numbers: 24 bits, compared modulo 2^24 (IBA 9.7.1 "PSN model"). */
#ifndef WIRE_PSN_H
#define WIRE_PSN_H

#include <stdint.h>

#define PSN_MASK 0xffffffu

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

/* How far a lies ahead of b: negative when it lies behind. */
static inline int32_t psn_distance(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

#endif
