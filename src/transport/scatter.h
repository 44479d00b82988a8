/* Storing a packet's payload into a posted receive. */
#pragma once

#include "transport/owner.h"

/* The longest message that fits the receive: its elements' bytes and those that it skips. */
uint64_t scatter_room(const struct recv_wqe *);

/* Stores the payload, whose first byte is byte `offset` of the message, without the first `skip` bytes of the
 * message. REASON_RECEIVE_TOO_SHORT: it does not fit; REASON_RECEIVE_*: the memory can't be stored into;
 * REASON_RECEIVE_GONE among them; REASON_PACKET_PULL: the bytes could not be fetched. If a reason is returned,
 * nothing or an undefined part was stored. */
enum reason scatter(struct engine_owner *, const struct recv_wqe *, uint32_t offset, const struct payload *);
