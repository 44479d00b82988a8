/* The position of a responder in the sequence of packets: the state that engines of an XRC connection hand over to
 * each other, between two messages, when every request is answered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct engine_position {
    uint32_t expected_psn, msn;
    bool nak_sent; /* a sequence or RNR NAK was sent */
};
