/* The regions of memory that the processor can't reach (wire/foreign/foreign.h), by address. While one exists, only
 * the helper moves data: drivers must not be called from each place where a program calls verbs, such as a host
 * callback of a stream. */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "wire/foreign/foreign.h"

struct process;

struct foreign_region {
    LIST_ENTRY(foreign_region) siblings;
    uintptr_t start;
    size_t length;
    const struct foreign *foreign; /* NULL: in no list, as it is ordinary memory */
};

/* Enters a region of these bytes; its memory and fields belong to the list until foreign_regions_remove. Under
 * process->control, before peers know of the region. */
void foreign_regions_enter(struct process *, struct foreign_region *, const void *start, size_t length);
/* Removes a region that no thread uses any more, under process->control. Does nothing for a region in no list. */
void foreign_regions_remove(struct process *, struct foreign_region *);
