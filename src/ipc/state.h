/* The members of a node; for this directory's files only.
 *
 * Locks: the owner's progress lock (not ours) is held in
 * node_receive and node_service; `lock` is taken inside it, and a link's sending lock inside that. */
#ifndef IPC_STATE_H
#define IPC_STATE_H

#include "base/lock.h"
#include "base/nanos.h"
#include "ipc/node.h"
#include "ipc/table.h"
#include "link/direct.h"
#include "link/doorbell.h"
#include "link/shm.h"

enum { REPORTS_MAX = 8, ORPHANS_MAX = 1024 };
_Static_assert((int)TABLE_SLOTS == (int)NODE_SLOTS, "one number in two headers");

/* A peer as the node knows it. */
struct record {
    struct peer peer; /* first: a struct peer * is a struct record * */
    struct node *node;
    uint32_t generation;
    atomic_uint references;     /* one of them is the node's, for as long as it is in `records` */
    struct ring_reader *reader; /* NULL until there is a ring to read; then: */
    unsigned place;             /* in node->heard */
    uint64_t head;              /* of the reader, when it was last looked whether it moves; under progress */
    nanos moved_at, patience;   /* when a look saw that, and after how long without it is asked for marks; likewise */
    int writable;               /* a socket that becomes writable when the peer's queue has room; -1: none is needed */
    nanos asked_at;             /* whether it is stopped; under progress */
    bool stopped;               /* it was; likewise */
    atomic_bool watched;        /* node_watch was asked for it */
    int end;                    /* a pidfd of its process; -1: none */
    struct record *next;        /* in node->records */
};

struct node {
    struct table *table;
    char directory[NODE_DIRECTORY_MAX + 1];
    unsigned slot;
    uint32_t generation;
    int socket, epoll;
    atomic_int spare;         /* a descriptor whose place a ring may have (base/spare.h); -1 */
    bool cramped;             /* the last ring that came found no place; under progress */
    int ends;                 /* an epoll of pidfds; -1: no process is watched yet */
    int waker;                /* an eventfd, for wake-ups from within: they need no name in the directory */
    struct table_slot *entry; /* ours */
    struct doorbell bell;     /* our own */
    atomic_uint fenced;       /* the newest sleep whose fence is over; 0: none */
    struct shm_common host;
    bool is_open; /* to processes of other users: directory_is_open */
    struct published published;
    struct node_one_sided one_sided; /* by those that are gone; under lock */
    atomic_bool left;                /* node_leave_host */

    struct lock lock; /* records, by_slot; heard is written under it and by the progress owner only */
    struct record *records;
    struct record *by_slot[TABLE_SLOTS]; /* those that aren't gone */
    struct {
        struct record *at[TABLE_SLOTS + ORPHANS_MAX];
        unsigned count;
        unsigned polled; /* so many of them, from the first on, are looked at in each round, the others once marked */
        atomic_bool all; /* the next round looks at the others, too */
    } heard;
    atomic_uint departures;
    atomic_bool litter; /* some record is gone and waits to be removed; the marks are raised then */

    int retry;                 /* a timerfd: when to try again what could not be sent */
    _Atomic nanos retry_after; /* its last value */
    atomic_bool postponed;     /* something waits to be tried again */

    atomic_uint letters_seen;
    struct {
        int descriptors[REPORTS_MAX];
        unsigned count;
    } requests; /* of tools, for reports that are not yet given */
};

/* The peer that is this owner of something in the table (peer.c); NULL: it lives no more. Takes a reference. */
struct peer *node_find_owner(struct node *, uint32_t owner);

/* --- records (record.c) */

/* Under node->lock. The record of a peer that is in the table, made when there was none; NULL: no memory. */
struct record *record_get(struct node *, unsigned slot, uint32_t generation, pid_t pid);
/* Under node->lock. A record outside by_slot, already gone, that only delivers what was sent before the end. */
struct record *record_orphan(struct node *, unsigned slot, uint32_t generation, pid_t pid);
/* Under node->lock. The peer is gone: nothing is sent to it any more; its earlier frames are still delivered. */
void record_depart(struct record *);
/* Under progress and node->lock: record_may_hear returns true if there is a place for one more peer to listen to. Call
 * it before the peer's ring is attached, as a peer that gets the confirmation relies on being listened to. record_hear
 * begins to listen, in the same critical section. */
bool record_may_hear(const struct record *);
void record_hear(struct record *);
/* Under progress: removes the records of those who are gone and whose ring is empty. */
void records_collect(struct node *);
/* Under progress, after the marks were raised: takes them, and looks for what else there is to look for. */
void records_attend(struct node *);
/* Under progress: asks the peers that have been silent for marks. */
void records_ask_the_silent(struct node *, nanos now);
/* The next round looks at all rings. Thread-safe. */
void records_look_at_all(struct node *);
/* Under progress: looks which peers have died without a word. */
void records_check(struct node *);
/* Under node->lock: from now on frames may come through rings, as a peer of this host was found or has sent us a ring:
 * we fence for the senders when we sleep. A process that only talks to other hosts interrupts none. */
void records_fence(struct node *);
int record_open_loopback(struct node *);
/* No thread waits for the peer's queue to have room any more. */
void record_close_writable(struct record *);
void record_release(struct record *);

/* Under node->lock: where the record's process announces what it does in our memory; NULL: nowhere. And what it did. */
static inline const struct direct_seats *record_seats(const struct record *record)
{
    return record->reader ? shm_seats(record->peer.link) : NULL;
}

static inline void one_sided_add(struct node_one_sided *to, const struct record *record)
{
    const struct direct_seats *seats = record_seats(record);
    for (unsigned i = 0; seats && i < DIRECT_SEATS; i++) {
        const struct direct_seat *seat = &seats->at[i];
        to->writes += atomic_load_explicit(&seat->writes, memory_order_relaxed);
        to->reads += atomic_load_explicit(&seat->reads, memory_order_relaxed);
        to->bytes += atomic_load_explicit(&seat->bytes, memory_order_relaxed);
    }
}

/* --- ends of processes (watch.c) */

/* Under progress: those that have ended are marked as gone. */
void watch_service(struct node *);

/* --- control messages (control_in.c) */

/* Under progress: reads the socket. Reports are only collected. True: there were doorbells or requests among the
 * messages, which are for a thread that sleeps on node_fd. */
bool control_receive(struct node *);
/* Under progress: tries again what could not be handed over. */
void control_retry(struct node *);
/* struct shm_common's postponed. */
void control_postponed(struct shm_common *);

#endif
