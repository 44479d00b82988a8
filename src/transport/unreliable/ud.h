/* Unreliable datagrams: one packet a message, no state but the queues. Pure, as rc.h says. IBA 9.8.3. */
#ifndef TRANSPORT_UNRELIABLE_UD_H
#define TRANSPORT_UNRELIABLE_UD_H

#include "transport/unreliable/unreliable.h"

enum { UD_GRH_LENGTH = 40 };

struct ud {
    struct unreliable common;
    uint32_t next_psn;
};

/* Makes an idle engine. `queue` describes memory of the owner, which outlives the engine. */
void ud_initialize(struct ud *, struct engine_owner *, const struct send_queue *queue);
void ud_start_receiving(struct ud *);
void ud_start_transmitting(struct ud *, uint32_t first_psn);

/* Stores the GRH (packet->grh, or zeros) and the payload behind it in the next receive. */
void ud_receive(struct ud *, const struct packet *);

/* The work that ud_transmit would send next, or NULL: its `address` says where to. Ends what was transmitted before,
 * so call it until it answers NULL. A work request with nowhere to go (the address leads to nobody) is completed with
 * success by transmitting it into the void, as on a real network. */
const struct send_wqe *ud_next(struct ud *);

/* Transmits that work; false: it could not be sent, and the send queue is in error. It ends with the next call of any
 * function here, since the caller is done with the packet before. */
bool ud_transmit(struct ud *, struct packet *out, struct iovec *pieces);

/* To the state after ud_initialize, but with its settings: nothing is completed, everything is forgotten. */
void ud_reset(struct ud *);

#endif
