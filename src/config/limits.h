/* The limits of devices, which the configuration file and the environment set. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

struct limits {
#define LIMIT(name, ...) uint32_t name;
#include "config/limits.def"
    uint32_t max_mtu;  /* fixed */
    uint32_t qpn_bits; /* of queue pair numbers; the profile's */
    uint32_t max_rdma; /* READs and WRITEs of EFA; a profile's max_rdma_size */
};

/* The limits where nothing is set. */
extern const struct limits limits_standard;

/* Sets the limit of this name. An unknown name or an impossible value adds a complaint (config/complaint.h) and changes
 * nothing. One thread. */
void limits_set(struct limits *, const char *name, const char *value);

/* Sets each limit that the profile names, capped at the most that softverbs serves; the other limits stay.
 * Of a limit for each queue of a queue pair the larger one counts here; limits_most has each. */
void limits_imitate(struct limits *, const struct profile *);

/* The most of one queue of a queue pair under this profile, by the key `queue` or else by `both`, the key of the limit
 * for both queues (PROFILE_max_qp_wr, PROFILE_max_sge). A lower limit of the user's holds, too; a higher one holds in
 * its place. */
uint32_t limits_most(const struct limits *, const struct profile *, enum profile_key queue, enum profile_key both);
