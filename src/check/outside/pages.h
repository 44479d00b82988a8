/* Pages of buffers that the device may write, protected from the program until the completion. An access opens the
 * pages of its buffer: the library's, which has data for them, or the program's, which is noted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes faults of accesses open protected pages. Before the program runs. */
void pages_begin(void);

/* Protects the whole pages of this memory, for the work of this number, which is not 0. False: there are no whole
 * pages, some are protected already, they can't be protected, or too many are. Under the shadow's lock. */
bool pages_protect(const char *begin, size_t length, uint64_t work);

/* Opens all pages of the work that are still protected. Returns an instruction of the program that has accessed one
 * before, or NULL. Under the shadow's lock. */
const void *pages_release(uint64_t work);

/* Opens protected pages of memory that the program is about to unmap, or to protect otherwise; they are not protected
 * again for the same work. Under the shadow's lock. */
void pages_forget(const char *begin, size_t length);
