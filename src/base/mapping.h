/* The memory that the library maps for itself: never at the addresses of a memory region.
 *
 * A program may unmap memory that it registered, and peers with the key still name its addresses. The kernel gives the
 * hole to the next map. If that were the library's, a peer would read and write its rings and tables with SUCCESS. So
 * all maps of the library are made here, where the regions are known; the test "shape" ensures it. Memory of malloc(3)
 * is not protected: docs/reference/choices.md.
 *
 * All functions are thread-safe, and may be called with any lock held but LOCK_ATTACHING. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* The addresses of a region; a member of the region. */
struct mapping_avoided {
    LIST_ENTRY(mapping_avoided) siblings;
    uintptr_t begin, end; /* begin 0: not in the list */
};

/* Until mapping_allow no map is made at these addresses. A region of no bytes, or of more than 16 TiB, is not avoided:
 * a region on demand of all addresses leaves no other place. Maps that exist already stay. */
void mapping_avoid(struct mapping_avoided *, const void *start, size_t length);
/* Ends mapping_avoid; nothing happens if the region is not avoided. */
void mapping_allow(struct mapping_avoided *);

/* mmap(2) without an address and without MAP_FIXED; the caller unmaps it by munmap(2). ENOMEM, too, where no place
 * beside the regions is found. A place that is tried can be neither read nor written. */
void *mapping_make(size_t length, int protection, int flags, int descriptor, off_t offset);

/* Allocates a large block: aligned_alloc(3) of a short one, a zeroed map where malloc would map, too. NULL: ENOMEM. */
void *mapping_allocate(size_t alignment, size_t size);
/* Frees a block of mapping_allocate, with its size; NULL: nothing happens. */
void mapping_free(void *, size_t size);
