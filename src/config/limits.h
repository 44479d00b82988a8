/* The limits of devices, which the configuration file and the environment set. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile; /* profile/profile.h */

struct limits {
#define LIMIT(name, ...) uint32_t name;
#include "config/limits.def"
    uint32_t max_mtu; /* fixed */
};

/* The limits where nothing is set. */
extern const struct limits limits_standard;

/* Sets the limit of this name. An unknown name or an impossible value adds a complaint (config/complaint.h) and changes
 * nothing. One thread. */
void limits_set(struct limits *, const char *name, const char *value);

/* Sets each limit that the profile names, capped at the most that softverbs serves; the other limits stay. */
void limits_imitate(struct limits *, const struct profile *);
