/* A READ or WRITE of RC that the requester does by itself in the memory of another process of the host, judged by what
 * that has published (link/published.h). docs/evidence/one-sided.md argues it.
 *
 * Between judging and the end of a WRITE's copy the requester is announced: a seat in the memory of its ring, which the
 * owner of the memory maps, too, has an odd number. Announcing and then looking whether the key stands there, on this
 * side, and taking the key away and then looking at the seats, on that side, are a Dekker pair: each writes one word
 * and then reads the other's, all in one order, so the requester finds no key or the owner finds the seat taken. Then
 * it waits until the number there is another: an access that begins later finds no key.
 *
 * A requester that is stopped there would be waited for without end. So the targets, which the kernel reads when the
 * call begins, stand in the memory of the ring, too, written before the announcement. An owner that has waited for long
 * makes the first of them a place where no memory can be: a call that begins later fails there and writes nothing. A
 * call that is under way then is over when its thread has been seen elsewhere (ipc/elsewhere.h), as a stopped one is:
 * it stops where a call has ended; or in user mode (ipc/elsewhere.h), as one is that a signal handler keeps.
 *
 * A READ announces nothing, and no owner waits for it: it writes only the memory of its process. It judges once more
 * after the copy, and if the permission was taken away meanwhile it becomes a READ by packets, which the owner's
 * responder refuses. */
#ifndef LINK_DIRECT_H
#define LINK_DIRECT_H

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "link/published.h"

#if defined(__x86_64__) && defined(__LP64__)
/* A thread that sees a later store also sees the earlier ones, also for stores by the kernel. */
enum { DIRECT_IN_ORDER = 1 };
#else
enum { DIRECT_IN_ORDER = 0 };
#endif
enum { DIRECT_SEATS = 8, DIRECT_MORE = 15 };

/* Where in the owner's memory a WRITE goes: a struct iovec of the kernel, whose address the owner may change. */
struct direct_target {
    _Atomic uint64_t address;
    uint64_t length;
};

/* One of the places at which a process announces its accesses, for one thread at a time. */
struct direct_seat {
    _Alignas(64) atomic_uint taken;                /* odd: an access is under way; counts up at its begin and its end */
    atomic_uint shut;                              /* by the owner: it looks here no more, so nothing is written */
    _Atomic uint64_t writes, reads, bytes;         /* done so; for the owner's counters */
    struct direct_target targets[1 + DIRECT_MORE]; /* of the WRITEs under way; the first address by the owner, too */
};

/* In the memory of a ring; written by the process that writes the ring. */
struct direct_seats {
    struct direct_seat at[DIRECT_SEATS];
};

/* An access: the request, and the local memory, as many bytes. With a WRITE there may be more of the same queue pair,
 * done behind it in their order by the same system call, with their memory behind its. */
struct direct_access {
    struct published_question question;
    const struct iovec *pieces; /* the last not empty */
    uint32_t count;             /* at most PAYLOAD_PIECES_MAX */
    const struct published_question *more;
    uint32_t more_count; /* at most DIRECT_MORE */
};

/* Of the process that makes accesses in another: the places in its own memory that keep its threads apart. */
struct direct_desk {
    atomic_bool closed;                /* no access begins any more */
    atomic_bool engaged[DIRECT_SEATS]; /* by one of our threads */
};

enum direct_outcome {
    DIRECT_DONE,
    DIRECT_DECLINED, /* not now, not this: packets have to do it. Some of it may have been done */
    DIRECT_REFUSED,  /* this process may not touch the memory of that one: the same, and it will never */
};

/* Carries out the access, all of it, in the process `pid` that has published this. Thread-safe. */
enum direct_outcome direct_do(struct direct_desk *, struct direct_seats *, const struct published *, pid_t pid,
                              const struct direct_access *);

/* From now on none begins; those that are under way have ended after the return, unless one takes half a second, as one
 * does that a signal handler has interrupted in this very thread. */
void direct_close(struct direct_desk *);

/* For the owner of memory, after it took away what would permit an access: the accesses that may have seen it. Writes
 * the numbers of the seats; returns true while one of these is still under way. */
void direct_look(const struct direct_seats *, uint32_t seen[DIRECT_SEATS]);
bool direct_is_under_way(const struct direct_seats *, const uint32_t seen[DIRECT_SEATS]);
/* Those of them whose system call begins later write nothing. One that is announced meanwhile may be hit, too: its
 * WRITEs go as packets then. */
void direct_forbid(struct direct_seats *, const uint32_t seen[DIRECT_SEATS]);

/* For the owner, before it ceases to look at the seats: no access is announced any more that goes on to write, and
 * those that are under way are forbidden. */
void direct_shut(struct direct_seats *);

#endif
