/* RNR NAK timer codes (IBA 9.7.5.2.8, table 45). */
#ifndef TRANSPORT_RC_RNR_H
#define TRANSPORT_RC_RNR_H

#include "base/nanos.h"

/* How long a requester waits after an RNR NAK with this timer code; only the low five bits count. */
static inline nanos rnr_wait(uint8_t code)
{
    static const uint32_t tens_of_microseconds[32] = {
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
        256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return tens_of_microseconds[code & 31] * 10 * NANOS_MICROSECOND;
}

#endif
