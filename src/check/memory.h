/* The bytes of work in flight. Under the shadow's lock. */
#ifndef CHECK_MEMORY_H
#define CHECK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "check/wqe.h"

struct shadow;

/* Where the bytes of an element of a list are in this process; NULL: its key is of no region that has an address here.
 */
char *memory_at(const struct ibv_sge *);

/* Sets `lowest` and `behind` of new work. */
void memory_bound(struct wqe *);

/* A hash of the bytes of its buffers: all, or a sample of long ones. False: they can't be read, or are not known. */
bool memory_hash(const struct wqe *, uint64_t *hash);

/* The bytes of one element. False: likewise. */
bool memory_copy(const struct ibv_sge *, void *to);

/* Parts of one element, `each` so many bytes long, but for the last. */
struct memory_parts {
    uint32_t begin, each, end;
};

/* A hash of each of them. */
bool memory_hash_parts(const struct ibv_sge *, const struct memory_parts *, uint64_t *hashes);

/* Returns true if it is of a region that peers may write in. */
bool memory_is_for_peers(const struct ibv_sge *);

/* The device has written the buffers of this work, whose completion the program polls now. */
void memory_note_written(const struct wqe *);

/* Returns true if the device may have written bytes of these buffers since the work was posted, by other work of the
 * program. True also where that is not known any more. */
bool memory_may_be_written(const struct wqe *);

/* Signalled work, or a receive, that is in flight and uses some of these bytes, and whose it is; NULL: none. */
const struct wqe *memory_find_user(const char *begin, size_t length, struct shadow **owner);

/* Work in flight that writes bytes which this work, which is about to be posted to `owner`, reads or writes, or reads
 * such as it writes; NULL: none. A fence keeps READs and atomics of the same queue pair apart from work behind it. */
const struct wqe *memory_find_conflict(const struct shadow *owner, const struct wqe *);

#endif
