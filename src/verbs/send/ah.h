/* Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3). Thread-safe. */
#pragma once

#include <stdatomic.h>

#include "verbs/object/address_numbers.h"
#include "verbs/object/object.h"

struct context;
struct process;

struct ah {
    struct ibv_ah ibv;
    struct object object;
    struct ibv_ah_attr attr;
    uint8_t grh[40]; /* as receivers see it, without the length, which each datagram fills in */
    bool infiniband; /* datagrams have an LRH, and a GRH only if attr.is_global is set */
    bool multicast;
    bool local;          /* leads to this host */
    struct link *remote; /* leads to other hosts; or NULL */
    uint16_t number;     /* of an EFA: the number and the route of the GID (verbs/object/address_numbers.h) */
    uint64_t route;      /* 0: the device is no EFA */
    void *_Atomic form;  /* the address in the form of a vendor (mlx5/objects.c), freed with the handle; or NULL */
};

/* The route of a handle; or 0. */
static inline uint64_t ah_route(const struct ibv_ah *ibv)
{
    return ibv ? ((const struct ah *)ibv)->route : 0;
}

struct ibv_ah *ah_create(struct ibv_pd *, struct ibv_ah_attr *); /* NULL and errno */
int ah_destroy(struct ibv_ah *);

/* ah_make makes a handle that no program knows, for attributes that were checked; NULL: no memory. ah_unmake frees it,
 * when no work names it any more. */
struct ah *ah_make(struct context *, const struct ibv_ah_attr *);
void ah_unmake(struct ah *, struct process *);

/* Checks the attributes: REASON_NONE, or why a call returns EINVAL (the port does not exist, or link_layer_check). */
enum reason ah_check(const struct context *, const struct ibv_ah_attr *);

/* Writes the line of a call that is refused for a reason of ah_check (events/refusal.h); it begins with `call`. Returns
 * EINVAL. */
int ah_refuse(const struct context *, const struct ibv_ah_attr *, enum reason, const char *call);

/* Fills in the attributes that lead back to the sender of a datagram. 0 or -1 and errno. */
int ah_from_wc(struct ibv_context *, uint8_t port, struct ibv_wc *, struct ibv_grh *, struct ibv_ah_attr *);
