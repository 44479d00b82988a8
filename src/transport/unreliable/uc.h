/* Unreliable connection: messages of several packets, no answers. Pure, as rc.h says. IBA 9.8.2.
 *
 * A message with a gap is lost as a whole and silently; the receive that it had taken is the next one again. Each
 * message's first packet sets the expected PSN anew. The functions of this service are uc_operations. */
#pragma once

#include "transport/unreliable/unreliable.h"

struct uc {
    struct unreliable common;
    /* requester */
    uint32_t next_psn;
    uint32_t packet; /* index of the packet to transmit next, within the work at queue.next */
    /* responder */
    uint32_t expected_psn;
    const struct recv_wqe *receive; /* taken for the open message */
    uint8_t open;                   /* enum operation of the open message's first packet, or MESSAGE_CLOSED */
    bool established;
    bool lost; /* bytes of the open message were lost after they were accepted (foreign_gather) */
    uint32_t received, write_rkey, write_length;
    uint64_t write_address;
};
