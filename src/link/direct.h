/* A READ or WRITE of RC that the requester does by itself in the memory of another process of the host, judged by what
 * the owner has published (link/published.h). docs/evidence/one-sided.md argues it.
 *
 * Between judging and the end of a WRITE's copy the requester is announced: a seat in the memory of its ring, which the
 * owner of the memory maps, too, has an odd number. The requester announces itself and then looks whether the key is
 * there; the owner takes the key away and then looks at the seats. This is a Dekker pair: each writes one word and then
 * reads the other's, all in one order, so the requester finds no key or the owner finds the seat taken. Then the owner
 * waits until the seat's number has changed: an access that begins later finds no key.
 *
 * An owner would wait without end for a requester that is stopped while it is announced. So the targets, which the
 * kernel reads when the call begins, are in the memory of the ring, too, written before the announcement. An owner that
 * has waited for long makes the first of them a place where no memory can be: a call that begins later fails there and
 * writes nothing. A call that was under way then is over when its thread has been seen outside it (ipc/peer_threads.h):
 * a stopped thread stops where a call has ended, and a signal handler runs in user mode.
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

/* Where a WRITE stores its bytes in the owner: a struct iovec of the kernel, whose address the owner may change. */
struct direct_target {
    _Atomic uint64_t address;
    uint64_t length;
};

/* A place where a process announces its accesses, for one thread at a time. */
struct direct_seat {
    _Alignas(64) atomic_uint taken;                /* odd: an access is under way; counts up at its begin and its end */
    atomic_uint shut;                              /* the owner looks at the seat no more, so nothing may be written */
    _Atomic uint64_t writes, reads, bytes;         /* accesses done from this seat, for the owner's counters */
    struct direct_target targets[1 + DIRECT_MORE]; /* of the WRITEs under way; the owner may change the first address */
};

/* The seats in the memory of a ring; written by the process that writes the ring. */
struct direct_seats {
    struct direct_seat at[DIRECT_SEATS];
};

/* An access: the request, and the local memory of its length. A WRITE may bring more WRITEs of the same queue pair,
 * which the same system call does after it in their order; their memory follows its own in `pieces`. */
struct direct_access {
    struct published_question question;
    const struct iovec *pieces; /* the last not empty */
    uint32_t count;             /* at most PAYLOAD_PIECES_MAX */
    const struct published_question *more;
    uint32_t more_count; /* at most DIRECT_MORE */
};

/* The places that keep apart the threads of a process that makes accesses in another, in its own memory. */
struct direct_desk {
    atomic_bool closed;                /* no access begins any more */
    atomic_bool engaged[DIRECT_SEATS]; /* by one of our threads */
};

enum direct_outcome {
    DIRECT_DONE,
    DIRECT_DECLINED, /* packets have to do this access; some of it may have been done */
    DIRECT_REFUSED,  /* as DECLINED, and for good: this process may not touch that one's memory */
};

/* Carries out the whole access in the process `pid`, whose publications these are. Thread-safe. */
enum direct_outcome direct_do(struct direct_desk *, struct direct_seats *, const struct published *, pid_t pid,
                              const struct direct_access *);

/* Lets no access begin any more. On return those under way have ended, except one that takes longer than half a
 * second, such as one that a signal handler has interrupted in this very thread. */
void direct_close(struct direct_desk *);

/* The owner of memory calls these after it took a permission away. direct_look writes the numbers of the seats,
 * whose accesses may have seen the permission; direct_is_under_way returns true while one of them lasts. */
void direct_look(const struct direct_seats *, uint32_t seen[DIRECT_SEATS]);
bool direct_is_under_way(const struct direct_seats *, const uint32_t seen[DIRECT_SEATS]);
/* Makes the accesses `seen` whose system call begins later write nothing. An access that is announced meanwhile may
 * be forbidden, too: its WRITEs are sent as packets then. */
void direct_forbid(struct direct_seats *, const uint32_t seen[DIRECT_SEATS]);

/* Shuts the seats before their owner ceases to look at them: an access that is announced later writes nothing, and
 * those under way are forbidden. */
void direct_shut(struct direct_seats *);

#endif
