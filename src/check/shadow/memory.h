/* The bytes of work in flight. Under the shadow's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "check/shadow/wqe.h"

struct shadow;

/* Where the bytes of an element are in this process; NULL: the region of its key has no address here, or does not
 * exist. */
char *memory_at(const struct ibv_sge *);

/* Sets `lowest` and `end` of new work. */
void memory_bound(struct wqe *);

/* Writes a hash of its buffers' bytes: all, or a sample of long buffers. False: they can't be read, or are not known.
 */
bool memory_hash(const struct wqe *, uint64_t *hash);

/* Copies the bytes of an element. False: they can't be read, or are not known. */
bool memory_copy(const struct ibv_sge *, void *to);

/* Parts of an element from `begin` to `end`, each of `each` bytes; the last may be shorter. */
struct memory_parts {
    uint32_t begin, each, end;
};

/* Writes a hash of each part. False: the bytes can't be read, or are not known. */
bool memory_hash_parts(const struct ibv_sge *, const struct memory_parts *, uint64_t *hashes);

/* Returns true if the element's region lets peers write. */
bool memory_is_for_peers(const struct ibv_sge *);

/* Notes that the device has written the buffers of this work, whose completion the program polls now. */
void memory_note_written(const struct wqe *);

/* Returns true if other work of the program may have made the device write bytes of these buffers since the post, or if
 * that is no longer known. */
bool memory_may_be_written(const struct wqe *);

/* Finds signalled work or a receive in flight that uses some of these bytes, and its owner; or NULL. */
const struct wqe *memory_find_user(const char *begin, size_t length, struct shadow **owner);

/* Finds work in flight that writes bytes which this work, about to be posted to `owner`, reads or writes, or reads
 * bytes that it writes; or NULL. A fence separates later work from READs and atomics of the same queue pair. */
const struct wqe *memory_find_conflict(const struct shadow *owner, const struct wqe *);
