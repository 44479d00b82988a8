/* Pages of buffers that the device may write, without access for the program until the completion. An access opens the
 * pages of that buffer: of the library, which has data for them, or of the program, which is noted. */
#ifndef CHECK_OUTSIDE_PAGES_H
#define CHECK_OUTSIDE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before the program runs. */
void pages_begin(void);

/* The whole pages of this memory, for the work of this number, which is not 0; of those that are protected already, are
 * in no memory that can be protected, or are too many at once, none. False: there are none. Under the shadow's lock. */
bool pages_protect(const char *begin, size_t length, uint64_t work);

/* Opens all of the work's that is still closed. Answers the instruction of the program that has accessed one before;
 * NULL: none. Likewise.
 */
const void *pages_release(uint64_t work);

/* The program is about to unmap this memory, or to give it another protection: what is closed of it is opened, and is
 * not closed again for the work that it was closed for. Under the shadow's lock. */
void pages_forget(const char *begin, size_t length);

#endif
