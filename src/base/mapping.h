/* The memory that the library maps for itself: never where a memory region is.
 *
 * A program may unmap memory that it registered, and peers with the key still name its addresses. The kernel gives the
 * next one who maps the hole, and were that the library, a peer would read and write its rings and tables with SUCCESS.
 * So all maps of the library come from here, and the regions are known here. The test "shape" ensures the first. Memory
 * of malloc(3) is like all that malloc gives: docs/reference/choices.md.
 *
 * All are thread-safe, and may be called with any lock held but LOCK_ATTACHING. */
#ifndef BASE_MAPPING_H
#define BASE_MAPPING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* The addresses of a region; a member of the region. */
struct mapping_avoided {
    LIST_ENTRY(mapping_avoided) siblings;
    uintptr_t begin, end; /* begin 0: it is not in the list */
};

/* From now on until mapping_allow no map is made there. Nothing happens where there are no bytes, or more than 16 TiB:
 * a region on demand of all addresses leaves no other place. Maps that are there already stay. */
void mapping_avoid(struct mapping_avoided *, const void *start, size_t length);
/* Also of one that is not avoided. */
void mapping_allow(struct mapping_avoided *);

/* As mmap(2) without an address and without MAP_FIXED; the caller unmaps it by munmap(2). Where regions leave no place
 * that is found, ENOMEM. While a place is sought nothing can be read or written there. */
void *mapping_make(size_t length, int protection, int flags, int descriptor, off_t offset);

/* For large blocks of memory: aligned_alloc(3) of short ones, zeroed maps where malloc would map, too. NULL: ENOMEM. */
void *mapping_allocate(size_t alignment, size_t size);
/* Of the same size; NULL: nothing happens. */
void mapping_free(void *, size_t size);

#endif
