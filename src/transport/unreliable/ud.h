/* Unreliable datagrams: one packet a message, no state except the queues. Pure, as rc.h says. IBA 9.8.3.
 *
 * The functions of this service are ud_operations. A receive gets the GRH (packet->grh, or zeros) before the
 * payload. */
#pragma once

#include "transport/unreliable/unreliable.h"

enum { UD_GRH_LENGTH = 40 };

struct ud {
    struct unreliable common;
    uint32_t next_psn;
};

/* Does what engine_next_datagram does (engine/engine.h). */
const struct send_wqe *ud_next(struct ud *);
