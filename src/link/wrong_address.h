/* Recognises an address outside a region that was made of one inside it by a mistake, where that is certain enough. */
#pragma once

#include <stdint.h>

enum wrong_address {
    WRONG_ADDRESS_UNKNOWN,
    WRONG_ADDRESS_CUT,    /* an address in the region has its lower half; in its upper half no bit is set, or all are */
    WRONG_ADDRESS_SWAPPED /* with its bytes in the other order the address is in the region */
};

/* The region has `size` bytes from `base`. The lower half says nothing if the region is large, or if the address is so
 * small that it may be an offset. */
static inline enum wrong_address wrong_address_find(uint64_t address, uint64_t base, uint64_t size)
{
    const uint64_t half = UINT64_C(1) << 32, large = UINT64_C(1) << 28;
    uint64_t upper = address >> 32, moved = (uint32_t)(address - base);
    if (address - base < size)
        return WRONG_ADDRESS_UNKNOWN;
    if (__builtin_bswap64(address) - base < size)
        return WRONG_ADDRESS_SWAPPED;
    if ((upper && upper != UINT32_MAX) || base < half || size > large || address < size)
        return WRONG_ADDRESS_UNKNOWN;
    return moved < size ? WRONG_ADDRESS_CUT : WRONG_ADDRESS_UNKNOWN;
}
