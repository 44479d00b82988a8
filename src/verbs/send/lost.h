/* Datagrams that are lost before they leave, as no process of this host could take them. Each is counted, and the log
 * has a line for the first between two numbers. Both under qp->lock. */
#pragma once

#include "verbs/qp/qp_datapath.h"

/* Counts and logs a datagram for a number that may belong to no process. */
void lost_to_nobody(struct qp *, uint32_t number, uint32_t psn);

/* Counts and logs a datagram for a group that no process of this host has joined, on a device that is on no network. */
void lost_in_group(struct qp *, const union ibv_gid *, uint32_t psn);
