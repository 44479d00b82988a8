/* This process on its host: which process owns which queue pair number, links to them, wake-ups, and which processes
 * have died.
 *
 * Processes of one user, network namespace and user namespace meet in a directory (0700), or those that are let in
 * where one is named (docs/how-to/containers.md): one table file of fixed size (reserved with posix_fallocate when
 * made, so a full disk is an error and not a SIGBUS) with a slot for each process and the owner of each block of 256
 * queue pair numbers; and a datagram socket for each process, which carries doorbells, the memfd of a new ring
 * (SCM_RIGHTS, sealed against shrinking), and requests for a report. Nothing that is read from the table is trusted.
 * Whether a process lives is a POSIX record lock on its slot's byte of the table: gone with the process, not inherited
 * by fork, immune to reused process ids.
 *
 * There is one node in a process, for any number of devices. Each function states its thread safety. */
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
    NODE_BLOCK = 256,        /* queue pair numbers are handed out in blocks of so many */
    NODE_SLOTS = 1024,       /* most processes: a peer's slot is below */
    NODE_DIRECTORY_MAX = 90, /* bytes of the directory's name, limited by sockaddr_un */
};

struct node;

/* Another process, or this one, that we send to or receive from. */
struct peer {
    struct link *link; /* both ways; to this process itself: the self link */
    unsigned slot;     /* its slot in the table */
    pid_t pid;
    atomic_bool gone;   /* it has ended, or left; sends go nowhere */
    atomic_bool behind; /* the caller's, for its own bookkeeping; false at first */
};

/* The directory that is used when none is named: $SOFTVERBS_DIR, else softverbs-UID-NETNS-USERNS in the first of
 * /dev/shm, $XDG_RUNTIME_DIR and /tmp that has room for a table. Where another user has taken the name, the directory
 * has an unpredictable suffix, and is made here. All processes of a user arrive at the same one, also when the places
 * change meanwhile. Writes it to `to` (NODE_DIRECTORY_MAX + 1 bytes); false when it would not fit. */
bool node_directory(char *to);

/* Joins the directory (NULL: node_directory), making it when it is missing and sweeping what the dead left. 0 or a
 * positive errno, and then *why is one English sentence to show: unwritable directory, other owner or mode, a table of
 * another version that is in use (an unused one is replaced), a full disk, all slots taken. */
int node_open(struct node **, const char *directory, char *why, size_t why_size);

/* Leaves: peers notice at once. Frees all links and peers. No other node_ call may be under way. */
void node_close(struct node *);

/* Call it when the process is about to end: peers notice that it leaves and its socket goes, nothing is freed. Any
 * thread; the owner ensures that no thread receives or services any more. */
void node_leave_host(struct node *);

/* The same at the end of a process whose helper may never end: takes no lock, so peers notice nothing before the
 * process has ended. The socket goes, and the place in the table as soon as the process has ended. Any thread. */
void node_withdraw(struct node *);

/* Returns true if this process has lost the host, because the table was truncated. It has left then, in node_service:
 * its peers are gone, nothing is found or claimed any more, and only closing the node and opening another helps.
 * Thread-safe. */
bool node_is_lost(const struct node *);

/* In the child of a fork: forgets the node without disturbing the parent's: closes descriptors and unmaps, and sends
 * nothing. Links and peers that are still referenced stay as memory; sends to them go nowhere. */
void node_abandon(struct node *);

/* The name of the peer's program. `size` is above 0. Thread-safe; any lock. */
void node_program(const struct node *, const struct peer *, char *to, size_t size);

/* Counts this process among those that opened a device in the directory (table_head.h). Thread-safe. */
void node_count_opening(struct node *);

const char *node_path(const struct node *);
unsigned node_slot(const struct node *);

/* A block of NODE_BLOCK queue pair numbers for this process: writes the first, never below 256 (0 and 1 are special)
 * nor in the last block (0xffffff is). The order begins at random in each directory, so that a number alone leads to no
 * process of another directory, nor to itself. ENOSPC when the host has none left. Recently returned blocks are given
 * out last. Thread-safe. */
int node_claim_numbers(struct node *, uint32_t *first);
void node_return_numbers(struct node *, uint32_t first);

/* The peer that owns this queue pair number, connected when it was not; NULL if the number has no owner. Takes a
 * reference, which node_put gives back. Never blocks on the peer. Thread-safe. */
struct peer *node_find(struct node *, uint32_t number);
/* Returns true if the number belongs to a process, also to one that has died and was not swept yet. Costs a load.
 * Thread-safe. */
bool node_is_claimed(const struct node *, uint32_t number);
void node_put(struct node *, struct peer *);
/* Takes another reference to the peer. */
void node_hold(struct peer *);

/* Returns true if the peer's process is alive. Asks the kernel (about a microsecond); marks a dead one as gone.
 * Thread-safe. */
bool node_alive(struct node *, struct peer *);

/* For a thread that waits until a peer takes what lies in its ring: makes the peer look, even if a wake-up or the ring
 * itself was lost on the way. Call it repeatedly until the peer has. `now` as CLOCK_MONOTONIC has it. Under progress,
 * like receiving. A peer that is stopped (SIGSTOP, a debugger) is slow for as long as that lasts. A peer that is not
 * stopped and takes nothing for NODE_STALLED_AFTER is stalled until it takes something: meanwhile its link never
 * reports a lack of room. */
enum node_presence { NODE_SLOW, NODE_STALLED, NODE_GONE };
enum node_presence node_insist(struct node *, struct peer *, nanos now);
#define NODE_STALLED_AFTER (30 * NANOS_SECOND)

/* From now on the peer's end is noticed at once, however its process ends: node_fd becomes readable, and node_service
 * marks it as gone. 0, or errno when the kernel can't report it (before Linux 5.3), or does not show us the process.
 * Thread-safe. */
int node_watch(struct node *, struct peer *);

/* How many peers have been found gone until now: when it has changed, look at your peers' `gone`. Thread-safe. */
unsigned node_departures(const struct node *);

/* Multicast groups on this host: joins count; EINVAL when the group was not joined, ENOSPC when the table is full. */
int node_join(struct node *, const uint8_t group[16]);
int node_leave(struct node *, const uint8_t group[16]);
/* Calls visit for every process (this one too) that has joined. Thread-safe; visit may send. */
void node_members(struct node *, const uint8_t group[16], void (*visit)(struct peer *, void *context), void *context);

/* One-sided accesses of peers to this process's memory (docs/evidence/one-sided.md). */

/* The place where their permissions stand (link/published.h). */
struct published;
struct published *node_published(struct node *);

/* The calling thread stands for the process: with it ends what peers do. And: no more. */
void node_vouch(struct node *);
void node_retract(struct node *);

/* After a publication was withdrawn: waits until every access that may have begun before is over. A peer that is
 * stopped in the midst of one is waited for, until it goes on or ends. Thread-safe; not under the node's locks. */
void node_quiesce(struct node *);

/* All that was done so. Thread-safe. */
struct node_one_sided {
    uint64_t writes, reads, bytes;
};
void node_count_one_sided(struct node *, struct node_one_sided *);
/* For callers that hold a lock which is taken behind the node's: false where that is not free now. */
bool node_try_count_one_sided(struct node *, struct node_one_sided *);

/* Receiving. One caller at a time for these six (the owner's progress lock). */

/* Returns true if node_receive would find nothing to do. */
bool node_is_quiet(const struct node *);

/* Hands every waiting frame of every peer to `take`, at most `budget` of each peer; returns how many. Each frame is
 * valid during the call only. `take` may send on any link. Cheap when nothing waits: one load for each peer that sent
 * lately (link/marks.h). */
typedef void node_take(void *context, struct peer *, const struct frame *);
unsigned node_receive(struct node *, node_take *, void *context, unsigned budget);

/* Reads the socket: doorbells, new rings, requests. Call when node_fd is readable. report is called for
 * each request of a tool; it writes the answer to fd and must not close it. */
typedef void node_report(void *context, const char *request, int fd);
void node_service(struct node *, node_report *, void *context);

/* For a process that works and does not sleep, every NODE_LOOK_AROUND or so: finds frames whose mark was lost, and asks
 * the peers that have been silent for marks, if there are more than NODE_SILENT_FEW. A peer counts as silent after as
 * much time, up to NODE_SILENCE_MOST the longer the more often it was marked. */
void node_look_around(struct node *, nanos now);
enum { NODE_SILENT_FEW = 3 };
#define NODE_LOOK_AROUND NANOS_MILLISECOND
#define NODE_SILENCE_MOST (16 * NODE_LOOK_AROUND)

/* Readable when node_service has something to do. Also what epoll sleeps on. */
int node_fd(const struct node *);

/* Before sleeping: from now on senders ring the doorbell. False: something is waiting already, receive it before you
 * sleep (new frames ring the doorbell nevertheless). Senders ring it once; node_awake, or the first doorbell, takes it
 * back. Thread-safe. */
bool node_sleep(struct node *);
/* The same for a thread that leaves node_fd to another, which sleeps on it or is about to: joins a sleep that goes on,
 * and so spares the fence. Thread-safe. */
bool node_rest(struct node *);
/* A thread will look at the rings again before the next node_sleep: doorbells would be wasted. Thread-safe. */
void node_awake(struct node *);
bool node_sleeping(const struct node *);

/* Rings this process's own doorbell, from any thread, to get its helper out of epoll. */
void node_wake(struct node *);

/* node_insist for every peer that has not taken all that was sent to it, and node_alive (about a microsecond each) for
 * the others. For a thread that waits for one of them without a deadline. Under progress, like receiving. */
void node_check_peers(struct node *, nanos now);

/* For tools: the contents of the directory. Calls visit for each live process; 0 or errno and a sentence. */
struct node_entry {
    unsigned slot;
    pid_t pid;
    char program[32]; /* printable (diag/clean.h) */
    bool alive;
};
int node_list(const char *directory, void (*visit)(const struct node_entry *, void *context), void *context, char *why,
              size_t why_size);

/* For tools: sends the process in this slot the request, of at most NODE_REQUEST_MAX bytes, and copies the answer to
 * `out_fd`; "" asks for its report. 0, ETIMEDOUT when it does not
 * answer within the milliseconds, EPROTO when the answer is no file, EFBIG when it has more than 512 MiB, or another
 * errno. */
enum { NODE_REQUEST_MAX = 1023 };
int node_ask(const char *directory, unsigned slot, const char *request, int out_fd, int milliseconds);

/* The version of the directory's layout: processes of different ones can't meet. */
unsigned node_layout(void);

/* Removes what dead processes left; returns how many were swept, or a negative errno. */
int node_sweep(const char *directory);

#endif
