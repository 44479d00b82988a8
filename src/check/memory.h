/* The bytes of work in flight. Under the shadow's lock. */
#ifndef CHECK_MEMORY_H
#define CHECK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "check/wqe.h"

/* Where the bytes of an element of a list are in this process; NULL: its key is of no region that has an address here.
 */
char *memory_at(const struct ibv_sge *);

/* A hash of the bytes of its buffers: all, or a sample of long ones. False: they can't be read, or are not known. */
bool memory_hash(const struct wqe *, uint64_t *hash);

/* Do both have a byte in common? */
bool memory_overlaps(const struct wqe *, const struct wqe *);

#endif
