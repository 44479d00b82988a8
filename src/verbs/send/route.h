/* The way to the peer of an address vector, as kernels find it for RoCE before they answer ibv_modify_qp(3) and
 * ibv_create_ah(3). */
#pragma once

#include "diag/diag.h"
#include "link/udp/reach.h"
#include "verbs/object/object.h"

struct way {
    enum reason reason; /* why no way was found */
    struct reach reach;
};

/* Finds the way to an address that was checked (ah_check). 0, or the errno with which the call is refused: ENETUNREACH,
 * EHOSTUNREACH, EACCES, ETIMEDOUT. A group needs no way; the subnet manager judges InfiniBand's LIDs. Blocks for up to
 * a second while the kernel asks for a neighbour: call it under no lock. */
int route_find(const struct context *, const struct ibv_ah_attr *, struct way *);

/* Writes the line of a call that is refused without a way (events/refusal.h); it begins with `call`. Returns
 * `error`. */
int route_refuse(const struct context *, const struct ibv_ah_attr *, const struct way *, const char *call, int error);
