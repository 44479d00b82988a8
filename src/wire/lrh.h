/* The headers and checks of InfiniBand around the BTH and its payload: the local route header (IBA 7.7), perhaps a
 * GRH, and at the end the invariant CRC and the variant CRC (IBA 7.8). Pure, as wire.h says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    LRH_LENGTH = 8,
    LRH_GRH_LENGTH = 48, /* of an LRH and a GRH after it */
    LRH_ICRC = 4,
    LRH_TRAILER = 6,        /* ICRC, VCRC */
    LRH_LENGTH_MAX = 0x7ff, /* of a packet without the VCRC, in units of 4 bytes */
};

struct lrh {
    uint16_t destination, source; /* LIDs */
    uint8_t sl;                   /* 4 bits */
    bool global;                  /* a GRH follows */
};

/* Writes an LRH with virtual lane 0. The last argument is the number of bytes between it and the VCRC, a multiple of 4.
 * A length that is too large for the header becomes the largest one. */
void lrh_write(uint8_t to[LRH_LENGTH], const struct lrh *, uint32_t behind);
struct lrh lrh_read(const uint8_t from[LRH_LENGTH]);
/* The number of bytes from the LRH to the ICRC, as the LRH has it; 0: the packet is not a queue pair's. */
uint32_t lrh_packet_length(const uint8_t from[LRH_LENGTH]);

/* Makes the IPv6 header that grh_write wrote for RoCE v2 a GRH of InfiniBand, for this many bytes after it. */
void lrh_make_grh(uint8_t grh[40], uint32_t behind);

/* The ICRC over the `length` bytes: LRH, GRH if the LRH announces one, and everything from the BTH to the last pad
 * byte. On the wire the ICRC follows them in little-endian order. */
uint32_t lrh_icrc(const uint8_t *packet, uint32_t length);

/* The VCRC over the `length` bytes before it, including the ICRC. On the wire it follows them in little-endian
 * order. */
uint16_t lrh_vcrc(const uint8_t *packet, uint32_t length);
