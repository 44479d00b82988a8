/* A ring with its writer, and its reader on a second mapping, as in another process. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "link/ring.h"
#include "link/ring_layout.h"

enum { SIZE = RING_SIZE_MIN };

struct both {
    struct ring_writer writer;
    struct ring_reader reader;
    int memory;
};

static inline void open_both(struct both *both)
{
    struct ring to, from;
    assert_int_equal(ring_create(&to, SIZE, &both->memory), 0);
    assert_int_equal(ring_map(&from, both->memory), 0);
    ring_write_start(&both->writer, &to);
    ring_read_start(&both->reader, &from);
}

static inline void close_both(struct both *both)
{
    ring_unmap(&both->writer.ring);
    ring_unmap(&both->reader.ring);
    close(both->memory);
}

static inline uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}
