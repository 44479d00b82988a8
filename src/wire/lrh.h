/* The headers and checks of InfiniBand around the BTH and its payload: the local route header (IBA 7.7), perhaps a GRH,
 * and behind them the invariant CRC and the variant CRC (IBA 7.8). Pure, as wire.h says. */
#ifndef WIRE_LRH_H
#define WIRE_LRH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    LRH_LENGTH = 8,
    LRH_GRH_LENGTH = 48, /* with a GRH behind it */
    LRH_ICRC = 4,
    LRH_TRAILER = 6,        /* ICRC, VCRC */
    LRH_LENGTH_MAX = 0x7ff, /* of a packet, in units of 4 bytes without the VCRC */
};

struct lrh {
    uint16_t destination, source; /* LIDs */
    uint8_t sl;                   /* 4 bits */
    bool global;                  /* a GRH follows */
};

/* `behind`: bytes between the LRH and the VCRC, a multiple of 4. A length that has no room in the header is cut to the
 * greatest. Virtual lane 0. */
void lrh_write(uint8_t to[LRH_LENGTH], const struct lrh *, uint32_t behind);
struct lrh lrh_read(const uint8_t from[LRH_LENGTH]);
/* The bytes from the LRH to the ICRC, as it says; 0: no packet of a queue pair follows it. */
uint32_t lrh_packet_length(const uint8_t from[LRH_LENGTH]);

/* Makes 40 bytes that grh_write wrote for RoCE v2, an IPv6 header, a GRH of InfiniBand, for so many bytes behind it. */
void lrh_make_grh(uint8_t grh[40], uint32_t behind);

/* The ICRC over LRH, GRH if there is one, and everything from the BTH to the last pad byte; `headers` holds up to the
 * end of the BTH at least, `length` all of it. It follows in little-endian order. */
uint32_t lrh_icrc(const uint8_t *packet, uint32_t length);

/* The VCRC over all that stands before it, the ICRC too. It follows in little-endian order. */
uint16_t lrh_vcrc(const uint8_t *packet, uint32_t length);

#endif
