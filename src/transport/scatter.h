/* Storing a packet's payload into a posted receive. */
#pragma once

#include "transport/owner.h"

/* The longest message that fits the receive: its elements' bytes and those that it skips. */
uint64_t scatter_room(const struct recv_wqe *);

/* Stores the payload, whose first byte is byte `offset` of the message, except for the first receive->skip bytes of the
 * message. REASON_RECEIVE_TOO_SHORT: it does not fit; another REASON_RECEIVE_*: nothing can be stored in that memory;
 * REASON_PACKET_PULL: the bytes could not be fetched. If a reason is returned, nothing or an undefined part was
 * stored. */
enum reason scatter(struct engine_owner *, const struct recv_wqe *, uint32_t offset, const struct payload *);
