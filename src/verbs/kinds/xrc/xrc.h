/* Receiving over XRC (IBA annex A14): packets name the SRQ, whose PD, receives and CQ are used.
 *
 * SRQ and queue pair must be of one XRC domain; if the SRQ is another process's, that process executes the packet
 * (verbs/kinds/xrc/xrc_front.h). */
#pragma once

#include "transport/owner.h"

/* The functions that the engine of a queue pair of type XRC_RECV calls. */
extern const struct owner_operations xrc_owner_operations;
const struct recv_wqe *xrc_take_receive(struct engine_owner *, const struct packet *, uint64_t least);
enum reason xrc_select_srq(struct engine_owner *, uint32_t number);
void xrc_received(struct engine_owner *, const struct recv_wqe *, const struct recv_cqe *);
