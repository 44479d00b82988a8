/* Bytes that have arrived and are not yet in memory. The owner of a list holds a lock around each call, and ensures
 * that the memory is still the program's (wire/guarded.h: it may be unmapped). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "adverse/adverse.h"
#include "base/nanos.h"
#include "wire/payload.h"

TAILQ_HEAD(landing_list, landing);

struct landings {
    struct landing_list list; /* in the order in which they land */
    size_t bytes;
};

void landings_begin(struct landings *);

/* Keeps the payload's bytes from `offset` on, for one piece of memory, until `due` and until all bytes that were kept
 * before have landed; under write-order only those that overlap. False: nothing was kept, as the memory or the payload
 * is unmapped or there is no room. */
bool landings_keep(struct landings *, const struct payload *, uint32_t offset, const struct iovec *to, nanos due);

/* When the first bytes land; NANOS_NEVER: nothing is kept. */
nanos landings_due(const struct landings *);

/* Writes all bytes that are due at `until` into their memory. */
void landings_land(struct landings *, struct adverse_source *, nanos until);

/* Drops all bytes that are kept. */
void landings_drop(struct landings *);

/* Writes a WRITE's payload now, its final 8 bytes maybe in two halves. False: memory of either side is unmapped. */
bool landing_tear(const struct payload *, uint32_t offset, const struct iovec *to, struct adverse_source *);

/* Writes the payload now, in pieces and in any order, with pauses. False: memory of either side is unmapped. */
bool landing_scatter(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count,
                     struct adverse_source *);
