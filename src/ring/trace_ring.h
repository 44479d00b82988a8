/* Lines of a trace, from many threads of many processes to one reader, through memory that the reader made:
 * `softverbs trace`. A writer never waits: if the ring is full, or its reader is gone, a line counts as lost. The
 * reader trusts nothing that it reads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRACE_VERSION = 0x72630003, /* changes with each change of a struct below */
    TRACE_SLOTS = 1 << 14,      /* a power of two */
    TRACE_SLOT_BYTES = 1024,
    TRACE_TEXT = TRACE_SLOT_BYTES - 48,
};

/* The separators of a text: after the name of the call and before each argument ("name=value"); and, once, before
 * the result. */
#define TRACE_NEXT '\x1f'
#define TRACE_RESULT '\x1e'

struct trace_slot {
    /* The number of the line that may be written here; once the line is here, its number + 1. */
    _Atomic uint64_t turn;
    int64_t when;     /* nanoseconds since 1970: when the call began */
    uint32_t took;    /* microseconds, rounded up; UINT32_MAX: the call is about to wait */
    uint32_t further; /* further equal calls in this line; 0: one call */
    int32_t process, thread;
    uint32_t length;     /* of `text` */
    uint32_t empty;      /* calls before it with the same arguments and the result 0; the reader makes a line of them */
    int64_t empty_since; /* when the first of these calls began; the last one ended before `when` */
    char text[TRACE_TEXT];
};

struct trace_ring {
    uint32_t version, slots;
    _Atomic uint64_t next; /* number of the next line */
    _Atomic uint64_t lost;
    _Atomic int64_t looked; /* CLOCK_MONOTONIC, nanoseconds: when the reader looked last; 0: it has ended */
    char padding[32];
    struct trace_slot slot[TRACE_SLOTS];
};

_Static_assert(sizeof(struct trace_slot) == TRACE_SLOT_BYTES, "a slot is a number of cache lines");

/* --- the writers' side. Thread-safe; errno is kept */

/* A line that is not written yet. Only its writer uses `limit`, the bytes of `text` that may be used now, and
 * `shallow`: pointers must not be followed. */
struct trace_line {
    int64_t when;
    int64_t empty_since;
    uint32_t took, further, empty;
    uint32_t trace;         /* trace_ring_now when the call began: a later trace does not get the line */
    uint32_t length, limit; /* of `text` */
    bool shallow;
    char text[TRACE_TEXT];
};

/* Writes the line, or counts it as lost. Does nothing if its trace has ended. */
void trace_ring_write(const struct trace_line *);

/* False: a line would find no room now, and counts as lost, so its text need not be made. True: there is room, and the
 * memory of the line, which the reader used last, is being fetched. */
bool trace_ring_has_room(void);

/* Writes lines to the ring in this file, which trace_ring_create has made. Returns NULL, or why not, in static
 * storage. One thread at a time. */
const char *trace_ring_open(const char *path);

/* Writes no more lines. Waits for threads that are writing a line, which takes microseconds. If a thread does not end
 * that, as a signal's handler has left it by siglongjmp or a debugger holds it, the memory stays mapped. Does nothing
 * if no ring is open. One thread at a time. */
void trace_ring_close(void);

/* The number of the trace that this process writes now; 0: no trace, or its reader has gone. Costs a load. */
uint32_t trace_ring_now(void);

/* --- the reader's side */

struct trace_reader {
    struct trace_ring *ring;
    int fd;
    char path[64]; /* for trace_ring_open, in any process of this user that can see the reader */
    uint64_t next; /* number of the next line */
};

/* Makes a ring. 0 or an errno. */
int trace_ring_create(struct trace_reader *);

/* Copies the next line; its text is printable except for TRACE_NEXT and TRACE_RESULT. False: the ring is empty now.
 * A line whose writer was stopped or killed while it wrote is given up after a while, and counts as lost. */
bool trace_ring_read(struct trace_reader *, struct trace_slot *line);

/* The number of characters before the first one below ' ', which is a separator in a line that was read. */
size_t trace_ring_printable(const char *text, size_t length);

/* The number of lines lost until now. */
uint64_t trace_ring_lost(const struct trace_reader *);

/* Destroys the ring; writers see that the reader is gone. */
void trace_ring_destroy(struct trace_reader *);
