/* Queue pairs of EFA, which send scalable reliable datagrams (transport/srd/srd.h). They are of the type
 * a driver, and efadv_create_qp_ex alone makes them. */
#pragma once

#include "transport/owner.h"
#include "verbs/qp/kind.h"

struct qp;

extern const struct qp_kind srd_kind;

/* Sets what efadv_create_qp_ex(3) asks for, of a queue pair that the program does not have yet: WRITEs with immediate
 * take no receive; WRITEs may have inline data. */
void srd_set_options(struct ibv_qp *, bool unsolicited, bool inline_writes);

extern const struct owner_operations srd_owner_operations;
extern const struct endpoint_operations srd_endpoint_operations;

/* Makes the memory that the engine asks for first. 0 or ENOMEM. */
int srd_make_first_room(struct qp *);
/* Frees the memory of the engine: all of it, or all but the first, and then the engine must be reset. Under qp->lock,
 * or nobody else knows the queue pair. */
void srd_free_rooms(struct qp *, bool all);

/* The implementation of qp_kind.transmit. */
void srd_transmit(struct qp *, nanos now);

/* Sends an answer to the queue pair `number` at this address, from the device's first one, if there is room. Under
 * qp->lock. */
void srd_respond(struct qp *, const uint8_t gid[16], const struct packet *);
