/* Big-endian values in bytes of any alignment. */
#pragma once

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_BIG(bits, value) __builtin_bswap##bits(value)
#else
#define BYTES_BIG(bits, value) (value)
#endif

static inline void bytes_put16(uint8_t *to, uint16_t value)
{
    value = BYTES_BIG(16, value);
    memcpy(to, &value, sizeof(value));
}

static inline void bytes_put32(uint8_t *to, uint32_t value)
{
    value = BYTES_BIG(32, value);
    memcpy(to, &value, sizeof(value));
}

static inline void bytes_put64(uint8_t *to, uint64_t value)
{
    value = BYTES_BIG(64, value);
    memcpy(to, &value, sizeof(value));
}

static inline uint16_t bytes_get16(const uint8_t *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof(value));
    return BYTES_BIG(16, value);
}

static inline uint32_t bytes_get32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return BYTES_BIG(32, value);
}

static inline uint64_t bytes_get64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return BYTES_BIG(64, value);
}
