/* A process that is killed while it appends to a capture may leave the beginning of a block (the kernel ends a write
 * between two pages), behind which others go on. The process that writes the next block turns that beginning into a
 * block of a type that readers skip, so that the file stays one that they read to its end.
 *
 * That needs no lock: appends to a file come one after the other, so what stands before a block is not being written
 * any more. Blocks begin and end at multiples of 16, so the beginning that is left has room for a block's head and
 * end. */
#ifndef TAP_CAPTURE_MEND_H
#define TAP_CAPTURE_MEND_H

#include <stdbool.h>
#include <sys/types.h>

enum {
    CAPTURE_SECTION = 0x0a0d0d0a,
    CAPTURE_INTERFACE = 1,
    CAPTURE_PACKET = 6,
    CAPTURE_ALIGNMENT = 16,
};

/* Of a block whose packet was not written whole: a type for local use, which other readers skip. */
#define CAPTURE_LOST 0x80737674u

/* A block was appended at `at`, and up to `since` all blocks are known to be whole. The part between is whole blocks,
 * or is turned into such; false: it can't be. Only the last 4 MiB are looked at. The file is open for reading and
 * appending, and no other thread uses this descriptor meanwhile. */
bool capture_mend(int file, off_t since, off_t at);

#endif
