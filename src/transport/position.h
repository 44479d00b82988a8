/* Where a responder stands in the sequence of packets: the state that goes from engine to engine of an XRC connection,
 * between two messages, with nothing to answer any more. */
#ifndef TRANSPORT_POSITION_H
#define TRANSPORT_POSITION_H

#include <stdbool.h>
#include <stdint.h>

struct engine_position {
    uint32_t expected_psn, msn;
    bool nak_sent; /* a sequence or RNR NAK is out */
};

#endif
