/* The CRC-32 of Ethernet and InfiniBand, of the fastest kind that this processor has. Pure, as wire.h says. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues the CRC of the bytes before, 0 at the beginning, like libdeflate_crc32; `bytes` may be NULL if the
 * length is 0. */
uint32_t crc32_go_on(uint32_t crc, const void *bytes, size_t length);
