/* Lines of a trace, from many threads of many processes to one reader, by memory that the reader made: `softverbs
 * trace`. A writer never waits: where there is no room, or its reader is gone, a line is counted as lost. The reader
 * believes nothing that it reads. */
#ifndef RING_TRACE_RING_H
#define RING_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRACE_VERSION = 0x72630003, /* another one for each change of a struct below */
    TRACE_SLOTS = 1 << 14,      /* a power of two */
    TRACE_SLOT_BYTES = 1024,
    TRACE_TEXT = TRACE_SLOT_BYTES - 48,
};

/* Where a line of the text is cut: behind the name of the call, each argument ("name=value") and, once, before the
 * result. */
#define TRACE_NEXT '\x1f'
#define TRACE_RESULT '\x1e'

struct trace_slot {
    /* Whose turn it is: the number of the line that may be written here, or one more: of the line that stands here. */
    _Atomic uint64_t turn;
    int64_t when;     /* nanoseconds since 1970: when the call began */
    uint32_t took;    /* microseconds, rounded up; UINT32_MAX: it is about to wait */
    uint32_t further; /* calls after the one before that were like it, and are this line; 0: one call */
    int32_t process, thread;
    uint32_t length;     /* of text */
    uint32_t empty;      /* calls before it with the same arguments and the result 0, which are a line of their own */
    int64_t empty_since; /* when the first of these began; the last ended before `when` */
    char text[TRACE_TEXT];
};

struct trace_ring {
    uint32_t version, slots;
    _Atomic uint64_t next; /* number of the next line */
    _Atomic uint64_t lost;
    _Atomic int64_t looked; /* CLOCK_MONOTONIC, nanoseconds: when the reader was last there; 0: it has ended */
    char padding[32];
    struct trace_slot slot[TRACE_SLOTS];
};

_Static_assert(sizeof(struct trace_slot) == TRACE_SLOT_BYTES, "a slot is a number of cache lines");

/* --- the writers' side. Thread-safe; errno stays */

/* A line that is not written yet. Its writer's own: `limit`, how much of `text` may be used now, and `shallow`, where
 * pointers lead to nothing that may be read. */
struct trace_line {
    int64_t when;
    int64_t empty_since;
    uint32_t took, further, empty;
    uint32_t trace;         /* trace_ring_now when the call began: it is not of a trace that came later */
    uint32_t length, limit; /* of text */
    bool shallow;
    char text[TRACE_TEXT];
};

/* Writes it, or counts it as lost. Nothing where its trace has ended. */
void trace_ring_write(const struct trace_line *);

/* False: a line would find no room now, and is counted as lost; its text need not be made. Otherwise the memory for it
 * is fetched meanwhile, as the reader had it last. */
bool trace_ring_has_room(void);

/* From now on lines go to the ring in this file, which trace_ring_create has made. NULL, or why not, in static storage.
 * One thread at a time. */
const char *trace_ring_open(const char *path);

/* No more lines are written. Waits for threads that are writing one, which takes microseconds. Where one does not go
 * on, as a signal's handler has left it by siglongjmp or a debugger holds it, the memory stays mapped after a moment.
 * Nothing where none is open. One thread at a time. */
void trace_ring_close(void);

/* Which trace is written now, of those of this process; 0: none, or its reader was seen to be gone. Costs a load. */
uint32_t trace_ring_now(void);

/* --- the reader's side */

struct trace_reader {
    struct trace_ring *ring;
    int fd;
    char path[64]; /* for trace_ring_open, in any process of this user that sees this one's */
    uint64_t next; /* number of the line that comes */
};

/* 0 or an errno. */
int trace_ring_create(struct trace_reader *);

/* Copies the next line; its text is printable but for TRACE_NEXT and TRACE_RESULT. False: none is there now. A line
 * whose writer was stopped or killed in the midst of it is given up after a while, and counted as lost. */
bool trace_ring_read(struct trace_reader *, struct trace_slot *line);

/* How many characters stand in front of the first one below ' ', which in a line that was read is a separator. */
size_t trace_ring_printable(const char *text, size_t length);

/* Lines that were lost until now. */
uint64_t trace_ring_lost(const struct trace_reader *);

/* Writers see that it is gone. */
void trace_ring_destroy(struct trace_reader *);

#endif
