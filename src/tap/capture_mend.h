/* A process that is killed while it appends to a capture may leave the beginning of a block (the kernel ends a write
 * between two pages), and others append after it. The process that writes the next block turns that beginning into a
 * block of a type that readers skip, so that they can still read the file to its end.
 *
 * That needs no lock: appends to a file are done one after the other, so the bytes before a block are not being
 * written any more. Blocks begin and end at multiples of 16, so the beginning that is left has room for a block's
 * head and end. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum {
    CAPTURE_SECTION = 0x0a0d0d0a,
    CAPTURE_INTERFACE = 1,
    CAPTURE_PACKET = 6,
    CAPTURE_ALIGNMENT = 16,
};

/* The type of a block whose packet was not written whole: a type for local use, which other readers skip. */
#define CAPTURE_LOST 0x80737674u

/* Makes the bytes between `since`, up to which all blocks are whole, and `at`, where a block was appended, whole
 * blocks; false: it can't. Only the last 4 MiB are looked at. The file is open for reading and appending, and no
 * other thread uses this descriptor meanwhile. */
bool capture_mend(int file, off_t since, off_t at);
