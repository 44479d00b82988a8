/* The end of one-sided accesses of peers to this process's memory, and their counts. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/uncancelled.h"
#include "diag/log.h"
#include "ipc/peer_threads.h"
#include "ipc/state.h"
#include "link/direct.h"

enum {
    UNDER_WAY_FEW = 64,
    NAP = 200000,        /* ns */
    YIELDS = 100,        /* steps until the first nap; */
    FORBIDS = 110,       /* until calls that begin later are forbidden to write, and we look where the threads are; */
    COMPUTES = 600,      /* until we look whether running threads are in user mode; */
    COMPUTES_EACH = 100, /* between two such looks; */
    TELLS = 5000,        /* until the log reports the wait */
};

/* A peer that was announced when we looked. */
struct under_way {
    struct record *record; /* held */
    uint32_t seen[DIRECT_SEATS];
};

struct published *node_published(struct node *node)
{
    return &node->published;
}

void node_vouch(struct node *node)
{
    published_vouch(&node->published);
}

void node_retract(struct node *node)
{
    published_retract(&node->published);
}

static bool is_any_taken(const uint32_t seen[DIRECT_SEATS])
{
    for (unsigned i = 0; i < DIRECT_SEATS; i++)
        if (seen[i] % 2)
            return true;
    return false;
}

/* Finds the processes that are announced now, and holds as many of them as there is room for. Returns how many there
 * are. */
static unsigned one_sided_look(struct node *node, struct under_way *found, unsigned room)
{
    unsigned count = 0;
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next) {
        const struct direct_seats *seats = record_seats(record);
        struct under_way next = {.record = record};
        if (!seats)
            continue;
        direct_look(seats, next.seen);
        if (!is_any_taken(next.seen))
            continue;
        if (count < room) {
            found[count] = next;
            atomic_fetch_add_explicit(&record->references, 1, memory_order_relaxed);
        }
        count++;
    }
    lock_release(&node->lock);
    return count;
}

/* Asks under node->lock, without which the seats may be unmapped. */
static bool is_under_way(const struct under_way *under_way)
{
    lock_assert_held(&under_way->record->node->lock);
    const struct direct_seats *seats = record_seats(under_way->record);
    return seats && direct_is_under_way(seats, under_way->seen);
}

/* A running thread can't be seen elsewhere. The call that it may be in ends soon; but the call may have ended already,
 * and a signal handler may then compute for long before the seat is given back. */
static bool is_computing(pid_t pid, unsigned looks)
{
    return looks >= COMPUTES && looks % COMPUTES_EACH == 0 && peer_threads_runs(pid, SYS_process_vm_writev);
}

/* A process that is no longer in the table has died, after its last system call, or has left, after its last access; or
 * it has closed the descriptor of its lock, and continues. So its threads are looked at nevertheless. But its number
 * may be another process's by now, for which this waits no longer than a call takes. */
static bool is_elsewhere(const struct under_way *under_way, bool gone, unsigned looks)
{
    pid_t pid = under_way->record->peer.pid;
    return peer_threads_all(pid, SYS_process_vm_writev) || is_computing(pid, looks) ||
           (gone && (looks >= TELLS || peer_threads_nobody(pid)));
}

static void one_sided_tell(const struct under_way *under_way)
{
    log_write(LOG_WARN, "process %d is slow within a WRITE of this process's memory, which waits for its end",
              (int)under_way->record->peer.pid);
}

/* True: the access is over, or can write nothing any more. */
static bool one_sided_is_over(struct node *node, const struct under_way *under_way, unsigned looks)
{
    const struct record *record = under_way->record;
    lock_take(&node->lock);
    bool waited_for = is_under_way(under_way);
    bool gone = waited_for && !table_is(node->table, record->peer.slot, record->generation);
    bool forbidden = gone || looks >= FORBIDS;
    if (waited_for && forbidden)
        shm_forbid_writes(record->peer.link, under_way->seen);
    lock_release(&node->lock);
    return !waited_for || (forbidden && is_elsewhere(under_way, gone, looks));
}

/* Waits until an access is over. Most end within a microsecond, so first we yield. An access whose requester is stopped
 * before its call begins can be forbidden, so we wait only until the requester is seen to be stopped. */
static void one_sided_wait(struct node *node, struct under_way *under_way)
{
    for (unsigned i = 0; !one_sided_is_over(node, under_way, i); i++) {
        if (i == TELLS)
            one_sided_tell(under_way);
        if (i < YIELDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
    }
    record_release(under_way->record);
}

/* Waits for the accesses that are found; returns how many there were. */
static unsigned one_sided_wait_for(struct node *node, struct under_way *found, unsigned room)
{
    unsigned count = one_sided_look(node, found, room);
    for (unsigned i = 0; i < count && i < room; i++)
        one_sided_wait(node, &found[i]);
    return count;
}

/* Finds all accesses under way at once: otherwise the first processes in the list, if they write again and again, would
 * hide the others. Without memory for that it waits for parts of them. */
void node_quiesce(struct node *node)
{
    struct under_way few[UNDER_WAY_FEW], *many = NULL;
    unsigned room = UNDER_WAY_FEW, count;
    if (!node->published.file)
        return;
    int before = uncancelled_begin();
    while ((count = one_sided_wait_for(node, many ? many : few, room)) > room) {
        free(many);
        many = calloc(count + UNDER_WAY_FEW, sizeof *many);
        room = many ? count + UNDER_WAY_FEW : UNDER_WAY_FEW;
    }
    free(many);
    uncancelled_end(before);
}

static void sum_up(struct node *node, struct node_one_sided *total)
{
    lock_assert_held(&node->lock);
    *total = node->one_sided;
    for (struct record *record = node->records; record; record = record->next)
        one_sided_add(total, record);
}

void node_count_one_sided(struct node *node, struct node_one_sided *total)
{
    lock_take(&node->lock);
    sum_up(node, total);
    lock_release(&node->lock);
}

bool node_try_count_one_sided(struct node *node, struct node_one_sided *total)
{
    if (!lock_try(&node->lock))
        return false;
    sum_up(node, total);
    lock_release(&node->lock);
    return true;
}
