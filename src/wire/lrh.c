#include "wire/lrh.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/crc/crc32.h"
#include "wire/grh.h"

enum {
    LOCAL = 2,  /* link next header: BTH */
    GLOBAL = 3, /* GRH */
    NEXT_BTH = 0x1b,
    BTH_LENGTH = 12,
    MASKED_MAX = LRH_LENGTH + GRH_LENGTH + BTH_LENGTH,
};

void lrh_write(uint8_t to[LRH_LENGTH], const struct lrh *lrh, uint32_t behind)
{
    uint32_t words = (LRH_LENGTH + behind) / 4;
    to[0] = 0;
    to[1] = (uint8_t)(lrh->sl << 4 | (lrh->global ? GLOBAL : LOCAL));
    bytes_put16(to + 2, lrh->destination);
    bytes_put16(to + 4, (uint16_t)(words < LRH_LENGTH_MAX ? words : LRH_LENGTH_MAX));
    bytes_put16(to + 6, lrh->source);
}

struct lrh lrh_read(const uint8_t from[LRH_LENGTH])
{
    return (struct lrh){.destination = bytes_get16(from + 2),
                        .source = bytes_get16(from + 6),
                        .sl = from[1] >> 4,
                        .global = (from[1] & 3) == GLOBAL};
}

uint32_t lrh_packet_length(const uint8_t from[LRH_LENGTH])
{
    uint32_t length = (bytes_get16(from + 4) & LRH_LENGTH_MAX) * 4u, next = from[1] & 3;
    uint32_t least = (next == GLOBAL ? LRH_GRH_LENGTH : LRH_LENGTH) + BTH_LENGTH + LRH_ICRC;
    return next >= LOCAL && length >= least ? length : 0;
}

void lrh_make_grh(uint8_t grh[GRH_LENGTH], uint32_t behind)
{
    bytes_put16(grh + 4, (uint16_t)behind);
    grh[6] = NEXT_BTH;
}

/* The LRH's virtual lane, the GRH's traffic class, flow label and hop limit, and the BTH's congestion bits count as
 * ones (IBA 7.8.1). */
uint32_t lrh_icrc(const uint8_t *packet, uint32_t length)
{
    bool global = lrh_read(packet).global;
    uint32_t headers = LRH_LENGTH + (global ? GRH_LENGTH : 0) + BTH_LENGTH;
    uint8_t masked[MASKED_MAX], *grh = masked + LRH_LENGTH;
    memcpy(masked, packet, headers);
    masked[0] |= 0xf0;
    if (global) {
        grh[0] |= 0x0f;
        grh[1] = grh[2] = grh[3] = grh[7] = 0xff;
    }
    masked[headers - BTH_LENGTH + 4] = 0xff;
    uint32_t crc = crc32_go_on(0, masked, headers);
    return length > headers ? crc32_go_on(crc, packet + headers, length - headers) : crc;
}

/* x^16 + x^12 + x^3 + x + 1, the lowest bit of each byte first (IBA 7.8.2). */
uint16_t lrh_vcrc(const uint8_t *packet, uint32_t length)
{
    enum { REFLECTED = 0xd008 };
    uint16_t crc = 0xffff;
    for (uint32_t i = 0; i < length; i++) {
        crc ^= packet[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc >> 1 ^ (crc & 1 ? REFLECTED : 0));
    }
    return (uint16_t)~crc;
}
