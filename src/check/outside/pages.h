/* Protects pages of buffers that the device may write from the program until the completion. An access opens all pages
 * of the buffer: an access of the library, which has data for them, or one of the program, which is noted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the handler of faults open protected pages. Before the program runs. */
void pages_begin(void);

/* Protects the whole pages of this memory for the work of this number, which is not 0. False: it has no whole pages,
 * some are protected already, they can't be protected, or too many buffers are. Under the shadow's lock. */
bool pages_protect(const char *begin, size_t length, uint64_t work);

/* Opens all pages of the work that are still protected. Returns an instruction that has accessed one before, or NULL.
 * Under the shadow's lock. */
const void *pages_release(uint64_t work);

/* Opens protected pages of memory that the program is about to unmap, or to protect otherwise; they are not protected
 * again for the same work. Under the shadow's lock. */
void pages_forget(const char *begin, size_t length);
