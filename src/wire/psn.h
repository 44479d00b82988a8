/* Packet sequence numbers: 24 bits, compared modulo 2^24 (IBA 9.7.1 "PSN model"); and the timer codes of RNR NAKs. */
#pragma once

#include <stdint.h>

#define PSN_MASK 0xffffffu

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

/* The distance from b to a, negative when a is older. */
static inline int32_t psn_distance(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

/* The number of nanoseconds that a requester waits after an RNR NAK with this timer code, of which only the low five
 * bits count (IBA 9.7.5.2.8, table 45). */
static inline uint64_t rnr_wait(uint8_t code)
{
    static const uint32_t tens_of_microseconds[32] = {
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
        256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return tens_of_microseconds[code & 31] * (uint64_t)10000;
}
