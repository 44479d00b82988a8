/* Partition keys (IBA 10.9). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns true if these two may talk (IBA 10.9.3 "Partition Key Matching"): the low fifteen bits are the same, not the
 * invalid key 0 (10.9.1), and one of the two is a full member's. */
static inline bool pkey_matches(uint16_t a, uint16_t b)
{
    enum { FULL_MEMBER = 0x8000, KEY = 0x7fff };
    return (a & KEY) && (a & KEY) == (b & KEY) && (a | b) & FULL_MEMBER;
}
