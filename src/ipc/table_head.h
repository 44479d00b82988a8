/* The beginning of the table's file, which is the same in all releases. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define TABLE_MAGIC 0x656c626174767473ull /* "stvtable" */
enum { TABLE_LAYOUT = 11 };

struct table_head {
    uint64_t magic;
    uint32_t layout, size;
    atomic_uint opened; /* processes that have opened a device since the file was made; before layout 11 always 0 */
};

/* Reads the head from the file. False: the file is not a table of any release. Async-signal-safe. */
static inline bool table_head_read(int descriptor, struct table_head *head)
{
    return pread(descriptor, head, sizeof *head, 0) == sizeof *head && head->magic == TABLE_MAGIC;
}
