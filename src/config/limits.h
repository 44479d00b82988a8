/* The limits of devices, as configuration file and environment set them. */
#ifndef CONFIG_LIMITS_H
#define CONFIG_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct profile; /* profile/profile.h */

struct limits {
#define LIMIT(name, ...) uint32_t name;
#include "config/limits.def"
    uint32_t max_mtu; /* fixed */
};

/* Those that hold where nothing is set. */
extern const struct limits limits_standard;

/* Sets the limit of this name; a name that is no limit, or an impossible value, adds a complaint (config/complaint.h)
 * and changes nothing. One thread. */
void limits_set(struct limits *, const char *name, const char *value);

/* The limits of a device of this profile: those that it names, as far as softverbs has so much, and those of softverbs
 * for the others. */
void limits_imitate(struct limits *, const struct profile *);

/* Returns true if limits_set would accept each limit. */
bool limits_are_possible(const struct limits *);

#endif
