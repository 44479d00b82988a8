/* Bytes that have arrived and are not yet in memory. The owner of a list has a lock around each call, and ensures that
 * the memory is still the program's (wire/guarded.h: it may be gone). */
#ifndef ADVERSE_LANDING_H
#define ADVERSE_LANDING_H

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

/* Keeps the payload's bytes from `offset` on, for one piece of memory, until `due`, or until what came before has
 * landed; with write-order also past that. False: nothing was kept, as the memory or the payload is gone or there is no
 * room. */
bool landings_keep(struct landings *, const struct payload *, uint32_t offset, const struct iovec *to, nanos due);

/* When the first lands; NANOS_NEVER: there is none. */
nanos landings_due(const struct landings *);

/* Those that are due until then land. */
void landings_land(struct landings *, struct adverse_source *, nanos until);

/* They are forgotten. */
void landings_drop(struct landings *);

/* The payload of a WRITE lands now, its final word maybe in two halves. False: memory of either side is gone. */
bool landing_tear(const struct payload *, uint32_t offset, const struct iovec *to, struct adverse_source *);

/* The payload lands now, in pieces and in any order, with pauses. False: memory of either side is gone. */
bool landing_scatter(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count,
                     struct adverse_source *);

#endif
