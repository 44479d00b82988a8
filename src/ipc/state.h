/* The members of a node; for this directory's files only.
 *
 * Locks: node_receive and node_service are called under the owner's progress lock; `lock` is taken inside it, and a
 * link's sending lock inside that. */
#pragma once

#include "base/descriptor.h"
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
    atomic_uint references;       /* one is the node's, as long as the record is in `records` */
    struct ring_reader *reader;   /* NULL: no ring to read yet; else: */
    unsigned place;               /* in node->heard */
    uint64_t head;                /* the reader's head at the last look; under progress */
    nanos moved_at, silence_most; /* when the head was seen to move; how long it may rest until marks are asked for */
    int writable;                 /* a socket that becomes writable when the peer's queue has room; -1: not needed */
    nanos asked_at;               /* when we looked whether the process is stopped; under progress */
    bool stopped;                 /* it was stopped then; under progress */
    atomic_bool watched;          /* node_watch was called for it */
    int end;                      /* a pidfd of its process, or -1 */
    struct record *next;          /* in node->records */
};

struct node {
    struct table *table;
    char directory[NODE_DIRECTORY_MAX + 1];
    unsigned slot;
    uint32_t generation;
    int listened; /* the socket again, which `epoll` has since a sleeper was opened (receive.c); or -1 */
    int socket, epoll;
    atomic_int spare;         /* a descriptor whose place a new ring may take (base/spare.h), or -1 */
    bool cramped;             /* the last ring that arrived found no place; under progress */
    int ends;                 /* an epoll of pidfds; -1: no process is watched yet */
    int waker;                /* an eventfd, for wake-ups from within: they need no name in the directory */
    struct table_slot *entry; /* this process's */
    struct doorbell bell;     /* this process's */
    atomic_uint fenced;       /* the newest sleep whose fence is over, or 0 */
    struct shm_common host;
    bool is_open; /* other users' processes may join: directory_is_open */
    struct published published;
    struct node_one_sided one_sided; /* the accesses of peers that are gone; under lock */
    atomic_bool left;                /* node_leave_host or node_withdraw was called */

    struct lock lock; /* for records and by_slot; heard is written under it, and only under progress, too */
    struct record *records;
    struct record *by_slot[TABLE_SLOTS]; /* the records of peers that aren't gone */
    struct {
        struct record *at[TABLE_SLOTS + ORPHANS_MAX];
        unsigned count;
        unsigned polled; /* each round looks at this many from the first on, and at others that are marked */
        atomic_bool all; /* the next round looks at the others, too */
    } heard;
    atomic_uint departures;
    atomic_bool litter; /* a record whose peer is gone waits to be removed; the marks are raised then */

    int retry;                 /* a timerfd: when to try again what could not be sent */
    _Atomic nanos retry_after; /* its last value */
    atomic_bool postponed;     /* something waits to be tried again */

    atomic_uint inbox_seen;
    struct {
        int descriptors[REPORTS_MAX];
        unsigned count;
    } requests; /* tools' requests for reports that are not yet written */
};

/* --- records (record.c) */

/* The record of a peer in the table, made if there was none; NULL: no memory. Under node->lock. */
struct record *record_get(struct node *, unsigned slot, uint32_t generation, pid_t pid);
/* Makes a record outside of by_slot of a peer that is gone, whose earlier frames are delivered. Under node->lock. */
struct record *record_orphan(struct node *, unsigned slot, uint32_t generation, pid_t pid);
/* Marks the peer as gone: nothing is sent to it any more; its earlier frames are still delivered. Under node->lock. */
void record_depart(struct record *);
/* record_may_hear returns true if there is a place for one more peer to listen to. Call it before the peer's ring is
 * attached, as a peer that gets the confirmation relies on being listened to. record_hear begins to listen, in the same
 * critical section. Both under progress and node->lock. */
bool record_may_hear(const struct record *);
void record_hear(struct record *);
/* Removes the records of peers that are gone and whose ring is empty. Under progress. */
void records_collect(struct node *);
/* Takes the raised marks, and looks for all that a mark may mean. Under progress. */
void records_attend(struct node *);
/* Asks the peers that have been silent for marks. Under progress. */
void records_ask_the_silent(struct node *, nanos now);
/* Makes the next round look at all rings. Thread-safe. */
void records_look_at_all(struct node *);
/* Finds peers that have died without a message. Under progress. */
void records_check(struct node *);
/* Call it when frames may arrive through rings, as a peer of this host was found or sent us a ring: from now on we
 * fence for senders when we sleep. A process that only talks to other hosts interrupts no other. Under node->lock. */
void records_fence(struct node *);
int record_open_loopback(struct node *);
/* Stops waiting for room in the peer's queue. */
void record_close_writable(struct record *);
void record_release(struct record *);

/* Where the record's process announces its accesses to our memory, or NULL; and its counts. Under node->lock. */
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

/* Marks peers whose processes have ended as gone. Under progress. */
void watch_service(struct node *);

/* --- control messages (control_in.c) */

/* Reads the socket, and collects requests for reports. True: there were doorbells or requests among the messages, which
 * are for a thread that sleeps on node_fd. Under progress. */
bool control_receive(struct node *);
/* Sends again what could not be sent. Under progress. */
void control_retry(struct node *);
/* The operation `postponed` of struct shm_common. */
void control_postponed(struct shm_common *);
