/* The layer of a profile's device (imitate.h), and functions that all its files use. */
#pragma once

#include <stdbool.h>

#include "calls/calls.h"
#include "profile/profile.h"

struct limits;

extern struct calls_layer imitate_layer;
extern const struct profile *imitated; /* not NULL while the layer is around */

/* Returns true if the mask of the key has the bit `which`, or the profile does not have the key. */
static inline bool imitate_has(enum profile_key key, unsigned which)
{
    return !imitated->set[key] || (which < 64 && imitated->values[key] >> which & 1);
}

/* The value of the key, which is an errno. */
static inline int imitate_errno(enum profile_key key)
{
    return (int)imitated->values[key];
}

/* The limits of the device: the profile has them, or the user has set others. */
const struct limits *imitate_limits(struct ibv_context *);

/* Add the functions of the layer for calls of these kinds. */
void imitate_add_queries(struct calls *);
void imitate_add_queues(struct calls *);
void imitate_add_memory(struct calls *);
void imitate_add_work(struct calls *);

/* Replaces the calls that the device lacks. */
void imitate_take_away(struct calls *);
