/* Unreliable connection: messages of several packets, no answers. Pure, as rc.h says. IBA 9.8.2.
 *
 * A message with a gap is lost as a whole and silently; the receive that it had taken is the next again. The
 * expected PSN is only the initial one: each message's first packet sets it anew. Its functions are uc_operations. */
#pragma once

#include "transport/unreliable/unreliable.h"

struct uc {
    struct unreliable common;
    /* requester */
    uint32_t next_psn;
    uint32_t packet; /* index within the work at queue.next */
    /* responder */
    uint32_t expected_psn;
    const struct recv_wqe *receive; /* taken for the open message */
    uint8_t open;                   /* enum operation of the open message's first packet, or MESSAGE_CLOSED */
    bool established;
    bool lost; /* bytes of the open message, after their packet was accepted (foreign_gather) */
    uint32_t received, write_rkey, write_length;
    uint64_t write_address;
};
