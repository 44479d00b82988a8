/* Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3). Thread-safe. */
#ifndef VERBS_AH_H
#define VERBS_AH_H

#include "verbs/object.h"

struct ibv_ah *ah_create(struct ibv_pd *, const struct ibv_ah_attr *); /* NULL and errno */
int ah_destroy(struct ibv_ah *);

/* 0, or EINVAL: on RoCE an address needs a GRH, a port that exists, and a GID index that holds a GID. */
int ah_check(const struct context *, const struct ibv_ah_attr *);

/* The attributes that lead back to the sender of a datagram. 0 or -1 and errno. */
int ah_from_wc(struct ibv_context *, uint8_t port, const struct ibv_wc *, const struct ibv_grh *, struct ibv_ah_attr *);

#endif
