/* The CRC-32 of Ethernet and InfiniBand, by the fastest instructions of this processor. Pure, as wire.h says. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues the CRC of earlier bytes, which is 0 at the beginning; `bytes` may be NULL if the length is 0. */
uint32_t crc32_go_on(uint32_t crc, const void *bytes, size_t length);
