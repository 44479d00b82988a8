/* The node of a process on its host: which process owns which queue pair number, links to the processes, wake-ups, and
 * which processes have died.
 *
 * Processes meet in a directory: the processes of one user, network namespace and user namespace (0700), or of the
 * users that a named directory lets in (docs/how-to/containers.md). It has one table file of fixed size (reserved with
 * posix_fallocate when made, so a full disk is an error and not a SIGBUS) with a slot for each process and the owner of
 * each block of 256 queue pair numbers; and a datagram socket for each process, which carries doorbells, the memfd of a
 * new ring (SCM_RIGHTS, sealed against shrinking), and requests for a report. Nothing that is read from the table is
 * trusted. A process lives as long as it holds a POSIX record lock on its slot's byte of the table: the lock ends with
 * the process, is not inherited by fork, and is immune to reused process ids.
 *
 * A process has one node, for any number of devices. Each function states its thread safety. */
#ifndef IPC_NODE_H
#define IPC_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/nanos.h"
#include "diag/diag.h"
#include "link/link.h"

enum {
    NODE_BLOCK = 256,        /* queue pair numbers in a block, which has one owner */
    NODE_NUMBERS = 1 << 24,  /* all numbers are below */
    NODE_SLOTS = 1024,       /* the most processes: a peer's slot is below */
    NODE_DIRECTORY_MAX = 90, /* the most bytes of a directory's name, which sockaddr_un limits */
};

struct node;

/* Another process, or this one, that we send to or receive from. */
struct peer {
    struct link *link; /* both directions; this process's own is the self link */
    unsigned slot;     /* its slot in the table */
    pid_t pid;
    atomic_bool gone;   /* it has ended, or left; sends to it are dropped */
    atomic_bool behind; /* the caller's, for its own bookkeeping; false at first */
};

/* Writes the default directory to `to` (NODE_DIRECTORY_MAX + 1 bytes): $SOFTVERBS_DIR, else softverbs-UID-NETNS-USERNS
 * in the first of /dev/shm, $XDG_RUNTIME_DIR and /tmp that has room for a table. If another user has taken the name,
 * the directory has an unpredictable suffix, and is made here. All processes of a user find the same one, also when the
 * places change meanwhile. False: the name does not fit. */
bool node_directory(char *to);

/* Joins the directory (NULL: node_directory), makes it if it is missing, and removes what dead processes left. Returns
 * 0 or a positive errno, and then *why is one English sentence to show: unwritable directory, other owner or mode, a
 * table of another version that is in use (an unused one is replaced), a full disk, all slots taken. */
int node_open(struct node **, const char *directory, char *why, size_t why_size);

/* Leaves: peers notice at once. Frees all links and peers. No other node_ call may be under way. */
void node_close(struct node *);

/* Call it when the process is about to end: peers notice that it leaves, its socket is removed, nothing is freed. Any
 * thread; the owner ensures that no thread receives or services any more. */
void node_leave_host(struct node *);

/* Leaves at the end of a process whose helper may never end: takes no lock, so peers notice only when the process has
 * ended. The socket is removed now, and the slot is free when the process has ended. Any thread. */
void node_withdraw(struct node *);

/* Returns true if this process has lost the host, because the table was truncated. node_service has then left: its
 * peers are gone, nothing is found or claimed any more, and only closing the node and opening another helps.
 * Thread-safe. */
bool node_is_lost(const struct node *);

/* Closes descriptors and unmaps in the child of a fork, without a message, and does not disturb the parent's node.
 * Links and peers that are still referenced stay as memory; sends to them are dropped. */
void node_abandon(struct node *);

/* Writes the name of the peer's program to `to`; `size` is above 0. Thread-safe; any lock. */
void node_program(const struct node *, const struct peer *, char *to, size_t size);

/* Counts this process among those that opened a device in the directory (table_head.h). Thread-safe. */
void node_count_opening(struct node *);

const char *node_path(const struct node *);
unsigned node_slot(const struct node *);

/* Claims a block of NODE_BLOCK queue pair numbers for this process, and writes the first: below `below`, but never
 * below 256 (0 and 1 are special) nor in the last block (0xffffff is special). The order begins at random in each
 * directory, so that a number alone leads to no process of another directory, nor to itself. ENOSPC: all blocks are
 * taken. Recently returned blocks are given out last. Thread-safe. */
int node_claim_numbers(struct node *, uint32_t below, uint32_t *first);
void node_return_numbers(struct node *, uint32_t first);

/* The peer that owns this queue pair number, connected if it was not; NULL if the number has no owner. Takes a
 * reference, which node_put gives back. Never blocks on the peer. Thread-safe. */
struct peer *node_find(struct node *, uint32_t number);
/* Returns true if a process that this one knew as a peer has ended. Asks the kernel for each peer. Thread-safe. */
bool node_has_lost_peers(struct node *);
/* Returns true if the number belongs to a process, or to a dead one that was not swept yet. Costs a load. Thread-safe.
 */
bool node_is_claimed(const struct node *, uint32_t number);
/* The owner of a number, and 0 for none: one word for all numbers of a process, which no other process has. Costs a
 * load. node_find_owner finds the peer of an owner as node_find does; NULL: its process has ended. Thread-safe. */
uint32_t node_owner(const struct node *, uint32_t number);
struct peer *node_find_owner(struct node *, uint32_t owner);
void node_put(struct node *, struct peer *);
/* Takes another reference to the peer. */
void node_hold(struct peer *);

/* Returns true if the peer's process is alive. Asks the kernel (about a microsecond); marks a dead peer as gone.
 * Thread-safe. */
bool node_alive(struct node *, struct peer *);

/* A thread that waits until a peer empties its ring calls this repeatedly: it makes the peer look, even if a wake-up or
 * the ring itself was lost on the way. `now` is CLOCK_MONOTONIC's. Under progress, like receiving. A peer that is
 * stopped (SIGSTOP, a debugger) is slow for as long as that lasts. A peer that is not stopped and takes nothing for
 * NODE_STALLED_AFTER is stalled until it takes something: meanwhile its link never reports a lack of room. */
enum node_presence { NODE_SLOW, NODE_STALLED, NODE_GONE };
enum node_presence node_insist(struct node *, struct peer *, nanos now);
#define NODE_STALLED_AFTER (30 * NANOS_SECOND)

/* Makes node_fd readable when the peer's process ends, however it does, and node_service then mark it as gone. 0, or
 * errno if the kernel can't report it (before Linux 5.3), or does not show us the process. Thread-safe. */
int node_watch(struct node *, struct peer *);

/* How many peers have been found gone until now: if it has changed, look at your peers' `gone`. Thread-safe. */
unsigned node_departures(const struct node *);

/* Multicast groups on this host. Joins are counted; EINVAL: the group was not joined; ENOSPC: the table is full. */
int node_join(struct node *, const uint8_t group[16]);
int node_leave(struct node *, const uint8_t group[16]);
/* Calls `visit` for every process that has joined, also this one. Thread-safe; `visit` may send. */
void node_members(struct node *, const uint8_t group[16], void (*visit)(struct peer *, void *context), void *context);

/* --- one-sided accesses of peers to this process's memory (docs/evidence/one-sided.md) */

/* The place of their permissions (link/published.h). */
struct published;
struct published *node_published(struct node *);

/* node_vouch makes peers' accesses end with the calling thread, as with the process; node_retract takes that back. */
void node_vouch(struct node *);
void node_retract(struct node *);

/* Call it after a publication was withdrawn: waits until every access that may have begun before is over, or can write
 * nothing any more, as /proc soon shows of one whose process is stopped. Thread-safe; not under the node's locks. */
void node_quiesce(struct node *);

/* Counts all accesses of peers. Thread-safe. */
struct node_one_sided {
    uint64_t writes, reads, bytes;
};
void node_count_one_sided(struct node *, struct node_one_sided *);
/* Counts for callers that hold a lock which is taken after the node's. False: the node's lock is not free now. */
bool node_try_count_one_sided(struct node *, struct node_one_sided *);

/* --- receiving: one caller at a time (the owner's progress lock), except where a function says otherwise */

/* Returns true if node_receive would find nothing to do. */
bool node_is_quiet(const struct node *);

/* Gives every waiting frame of every peer to `take`, at most `budget` of each peer; returns how many. Each frame is
 * valid during the call only. `take` may send on any link. Cheap if nothing waits: one load for each peer that sent
 * lately (link/marks.h). */
typedef void node_take(void *context, struct peer *, const struct frame *);
unsigned node_receive(struct node *, node_take *, void *context, unsigned budget);

/* Reads the socket: doorbells, new rings, requests. Call it when node_fd is readable. Calls `report` for each request
 * of a tool; it writes the answer to `fd` and must not close that. */
typedef void node_report(void *context, const char *request, int fd);
void node_service(struct node *, node_report *, void *context);

/* A process that works without sleep calls this every NODE_LOOK_AROUND or so: it finds frames whose mark was lost, and
 * asks the peers that have been silent for marks, if there are more than NODE_SILENT_FEW. A peer is silent after
 * NODE_LOOK_AROUND; each mark doubles that time, up to NODE_SILENCE_MOST. */
void node_look_around(struct node *, nanos now);
enum { NODE_SILENT_FEW = 3 };
#define NODE_LOOK_AROUND NANOS_MILLISECOND
#define NODE_SILENCE_MOST (16 * NODE_LOOK_AROUND)

/* The descriptor that is readable when node_service has something to do; epoll sleeps on it. */
int node_fd(const struct node *);

/* A thread of the program may sleep in the helper's place: node_open_sleeper makes an epoll instance that has the
 * doorbell, with the datum 0, to which the caller adds what else the thread waits for. While a thread waits there, a
 * doorbell wakes this thread alone; at all other moments it wakes node_fd. The oldest instance comes first. A thread
 * that was woken calls node_attend, looks at the rings, and lets a sleep begin (node_rest) before it waits again or
 * does something else. -1: no descriptor, or no memory. Both under progress. */
int node_open_sleeper(struct node *);
/* Takes the doorbell out of the instance, in which a thread may still wait for the rest. Thread-safe. */
void node_close_sleeper(struct node *, int sleeper);
/* Call it where a thread that waited there does something else instead, as it is cancelled: a doorbell may have woken
 * it. */
void node_leave_sleeper(struct node *);
/* Reads the socket: doorbells end here. All else that node_service does is left to the thread of node_fd, which is
 * woken for it. */
void node_attend(struct node *);

/* Call it before sleeping: from now on senders ring the doorbell. False: something is waiting already, receive it
 * before you sleep (new frames ring the doorbell nevertheless). Senders ring once; node_awake, or the first doorbell,
 * ends that. Thread-safe. */
bool node_sleep(struct node *);
/* node_sleep for a thread that leaves node_fd to another, which sleeps on it or is about to: joins the other's sleep,
 * which saves the fence. Thread-safe. */
bool node_rest(struct node *);
/* Ends the sleep, when a thread will look at the rings before the next node_sleep and needs no doorbell. Thread-safe.
 */
void node_awake(struct node *);
bool node_sleeping(const struct node *);

/* Rings this process's own doorbell, from any thread, so that its helper leaves epoll. */
void node_wake(struct node *);

/* Calls node_insist for every peer that has not taken all that was sent to it, and node_alive (about a microsecond
 * each) for the others. For a thread that waits for one of them without a deadline. Under progress, like receiving. */
void node_check_peers(struct node *, nanos now);

/* Calls `visit`, for tools, for each live process of the directory. Returns 0, or errno and a sentence. */
struct node_entry {
    unsigned slot;
    pid_t pid;
    char program[32]; /* printable (diag/clean.h) */
    bool alive;
};
int node_list(const char *directory, void (*visit)(const struct node_entry *, void *context), void *context, char *why,
              size_t why_size);

/* Sends, for tools, the process in this slot the request, of at most NODE_REQUEST_MAX bytes, and copies the answer to
 * `out_fd`; "" asks for its report. Returns 0, or an errno: ETIMEDOUT: no answer within the milliseconds; EPROTO: the
 * answer is not a file; EFBIG: it has more than 512 MiB; others. */
enum { NODE_REQUEST_MAX = 1023 };
int node_ask(const char *directory, unsigned slot, const char *request, int out_fd, int milliseconds);

/* The version of the directory's layout: processes of different versions can't meet. */
unsigned node_layout(void);

/* Removes what dead processes left. Returns how many were swept, or a negative errno. */
int node_sweep(const char *directory);

#endif
