/* Unreliable datagrams: one packet a message, no state except the queues. Pure, as rc.h says. IBA 9.8.3.
 *
 * Its functions are ud_operations. The GRH (packet->grh, or zeros) lies in the receive before the payload. */
#ifndef TRANSPORT_UNRELIABLE_UD_H
#define TRANSPORT_UNRELIABLE_UD_H

#include "transport/unreliable/unreliable.h"

enum { UD_GRH_LENGTH = 40 };

struct ud {
    struct unreliable common;
    uint32_t next_psn;
};

/* The work that would be transmitted next, or NULL: its `address` says where to. Ends what was transmitted before, so
 * call it until it answers NULL. A work request with nowhere to go (no queue pair is at the address) is completed with
 * success once it is transmitted and lost, as on a real network. */
const struct send_wqe *ud_next(struct ud *);

#endif
