/* Big-endian values in bytes of any alignment. */
#pragma once

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_BIG(bits, value) __builtin_bswap##bits(value)
#else
#define BYTES_BIG(bits, value) (value)
#endif

/* Defines bytes_put16 and bytes_get16, and so on. */
#define BYTES(bits)                                                                                                    \
    static inline void bytes_put##bits(uint8_t *to, uint##bits##_t value)                                              \
    {                                                                                                                  \
        value = BYTES_BIG(bits, value);                                                                                \
        memcpy(to, &value, sizeof(value));                                                                             \
    }                                                                                                                  \
    static inline uint##bits##_t bytes_get##bits(const uint8_t *from)                                                  \
    {                                                                                                                  \
        uint##bits##_t value;                                                                                          \
        memcpy(&value, from, sizeof(value));                                                                           \
        return BYTES_BIG(bits, value);                                                                                 \
    }
BYTES(16)
BYTES(32)
BYTES(64)
#undef BYTES
