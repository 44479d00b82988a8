/* The layer of a profile's device (imitate.h), and functions that all its files use. */
#pragma once

#include <stdbool.h>

#include "calls/calls.h"
#include "profile/profile.h"

struct limits;

extern struct calls_layer imitate_layer;
extern const struct profile *imitated; /* not NULL while the layer is around */

/* Returns true if the bit `which` is in the key's mask, or the profile does not have the key. */
static inline bool imitate_has(enum profile_key key, unsigned which)
{
    return !imitated->set[key] || (which < 64 && imitated->values[key] >> which & 1);
}

/* The errno that is the key's value. */
static inline int imitate_errno(enum profile_key key)
{
    return (int)imitated->values[key];
}

/* The limits of the device: the profile's, or those that the user set beside it. */
const struct limits *imitate_limits(struct ibv_context *);

/* Add the layer's functions for calls of these kinds, as far as the device has them. */
void imitate_add_queries(struct calls *);
void imitate_add_queues(struct calls *);
void imitate_add_memory(struct calls *);
void imitate_add_work(struct calls *);

/* Replaces the calls that the device lacks. */
void imitate_take_away(struct calls *);
