/* The execution of a request in memory, once it has been checked. */
#pragma once

#include "transport/rc/rc.h"

/* flags: enum op_flags of the packet's operation. `checked`: the memory of the whole WRITE, for its first packet, if
 * it has any length. REASON_PACKET_PULL: the payload could not be fetched. */
enum reason execute_send(struct rc *, uint32_t flags, const struct packet *);
enum reason execute_write(struct rc *, uint32_t flags, const struct packet *, const struct iovec *checked);

/* Execute requests that have an answer: move expected_psn past the answer, and keep what is needed to send it, also
 * repeatedly. */
enum reason execute_read(struct rc *, const struct packet *);
enum reason execute_flush(struct rc *, const struct packet *);
enum reason execute_atomic(struct rc *, const struct packet *);
enum reason execute_atomic_write(struct rc *, const struct packet *);
