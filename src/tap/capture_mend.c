#include "tap/capture_mend.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK_LEAST = 12,
    BLOCK_MOST = 1 << 18, /* also of several parts in a row */
    LENGTH = sizeof(uint32_t),
    WINDOW = 1 << 18, /* how far back it looks for the beginning of an incomplete block */
    WALK = 1 << 22,   /* how far back it looks for a part: earlier writers may have been killed while they mended it */
};

static bool read_at(int file, void *to, size_t length, off_t at)
{
    return pread(file, to, length, at) == (ssize_t)length;
}

static bool is_length(uint32_t length)
{
    return length >= BLOCK_LEAST && length <= BLOCK_MOST && length % LENGTH == 0;
}

static bool is_known(uint32_t type)
{
    return type == CAPTURE_PACKET || type == CAPTURE_INTERFACE || type == CAPTURE_SECTION || type == CAPTURE_LOST;
}

/* Returns where the block begins that ends at `at`, if its two lengths agree; else -1. */
static off_t find_block(int file, off_t at)
{
    uint32_t length, head[2];
    if (!read_at(file, &length, sizeof length, at - LENGTH) || !is_length(length) || (off_t)length > at)
        return -1;
    bool fits = read_at(file, head, sizeof head, at - (off_t)length) && head[1] == length && is_known(head[0]);
    return fits ? at - (off_t)length : -1;
}

/* Returns where the packet begins that ends incomplete at `at`, after a whole block; 0: not found. */
static off_t find_beginning(int file, off_t at)
{
    size_t size = at < WINDOW ? (size_t)at : WINDOW;
    uint8_t *window = malloc(size);
    off_t found = 0;
    if (window && read_at(file, window, size, at - (off_t)size))
        for (size_t back = BLOCK_LEAST; back <= size && !found; back += LENGTH) {
            uint32_t head[2];
            memcpy(head, window + size - back, sizeof head);
            if (head[0] == CAPTURE_PACKET && is_length(head[1]) && find_block(file, at - (off_t)back) >= 0)
                found = at - (off_t)back;
        }
    free(window);
    return found;
}

/* Writes the end first: a process that is killed in between leaves the old beginning. */
static bool write_lost(int file, off_t from, off_t to)
{
    uint32_t length = (uint32_t)(to - from), head[2] = {CAPTURE_LOST, length};
    int flags = fcntl(file, F_GETFL);
    if (flags < 0 || fcntl(file, F_SETFL, flags & ~O_APPEND))
        return false;
    bool written = pwrite(file, &length, sizeof length, to - LENGTH) == LENGTH &&
                   pwrite(file, head, sizeof head, from) == sizeof head;
    fcntl(file, F_SETFL, flags);
    return written;
}

bool capture_mend(int file, off_t since, off_t at)
{
    off_t first = at > WALK && since < at - WALK ? at - WALK : since;
    while (at > first) {
        off_t from = find_block(file, at);
        if (from < 0) {
            from = find_beginning(file, at);
            if (!from || !write_lost(file, from, at))
                return false;
        }
        at = from;
    }
    return true;
}
