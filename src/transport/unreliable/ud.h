/* Unreliable datagrams: one packet a message, no state except the queues. Pure, as rc.h says. IBA 9.8.3.
 *
 * Its functions are ud_operations. The receive has the GRH (packet->grh, or zeros) before the payload. */
#pragma once

#include "transport/unreliable/unreliable.h"

enum { UD_GRH_LENGTH = 40 };

struct ud {
    struct unreliable common;
    uint32_t next_psn;
};

/* The work that would be transmitted next, to its `address`; or NULL. Ends work that was transmitted before, so call
 * it until it returns NULL. A work request whose address no queue pair has ends with success once it is transmitted,
 * and is lost, as on a real network. */
const struct send_wqe *ud_next(struct ud *);
