/* The sizes of a message's packets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/op.h"

/* Returns true if a packet with these flags (enum op_flags) may carry this many bytes of a message (IBA 9.7.4.1.5,
 * C9-92): all packets except the last have the segment's size, and the last has no more. */
static inline bool segment_fits(uint32_t flags, uint32_t carried, uint32_t segment)
{
    return flags & OP_END ? carried <= segment : carried == segment;
}
