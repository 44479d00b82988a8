/* The bytes of work in flight. Under the shadow's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "check/shadow/wqe.h"
#include "link/vma.h"

struct shadow;

/* Where the bytes of an element are in this process; NULL: the region of its key has no address here, does not have all
 * the bytes, or does not exist. */
char *memory_at(const struct ibv_sge *);

/* Sets `lowest` and `end` of new work. */
void memory_bound(struct wqe *);

/* Writes a hash of the buffers' bytes: of all, or of a sample where they are long. False: they can't be read, or are
 * not known. */
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

/* The effect of a call on memory of the program: nothing is there any more; other memory is mapped there; it gets new
 * pages once it is written or read; the allocator has it. */
enum memory_loss_kind { MEMORY_UNMAPPED, MEMORY_REPLACED, MEMORY_EMPTIED, MEMORY_FREED };

struct memory_loss {
    enum memory_loss_kind kind;
    const char *call;
    const void *caller; /* the call's return address */
    uint64_t before;    /* the moment when the call began; 0: it is not looked at */
    const char *begin;
    size_t length;
    struct vma file; /* the file whose bytes from `offset` to `file_end` are lost; inode 0: the bytes at `begin` are */
    uint64_t file_end;
};

/* Finds signalled work or a receive in flight of this process that uses some of the bytes and was posted before the
 * call, and its owner; or NULL. */
const struct wqe *memory_find_user(const struct memory_loss *, struct shadow **owner);

/* Finds the first region of this process that has some of the bytes (MEMORY_FREED: and no others), was registered
 * before the call, and has a serial above `after`; or NULL. Regions without an address here, and on-demand ones, which
 * follow the program's memory, are left out. */
struct shadow *memory_find_region(const struct memory_loss *, uint64_t after);

/* Returns true if a region with some of the lost bytes was registered in a shared mapping. */
bool memory_is_shared(const struct memory_loss *);

/* Returns true if such a region was registered in a shared mapping of the file with this inode, which has the byte at
 * this offset at `begin`. */
bool memory_is_of_file(const struct memory_loss *, uint64_t inode, uint64_t offset);

/* The length of the shared mapping that begins at this address, in which a region was registered; 0: no region was
 * registered there. */
size_t memory_attached(const char *begin);

/* Finds work in flight that writes bytes which this work, about to be posted to `owner`, reads or writes, or reads
 * bytes that it writes; or NULL. A fence separates later work from READs and atomics of the same queue pair. */
const struct wqe *memory_find_conflict(const struct shadow *owner, const struct wqe *);
