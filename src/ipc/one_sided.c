/* What peers do in this process's memory by themselves: waiting until it is over, and counting it. */
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/uncancelled.h"
#include "diag/log.h"
#include "ipc/elsewhere.h"
#include "ipc/state.h"
#include "link/direct.h"

enum {
    UNDER_WAY_MAX = 64,
    NAP = 200000,  /* ns */
    YIELDS = 100,  /* before the first nap; */
    FORBIDS = 110, /* then no call that begins later writes, and it is looked where the threads are, */
    TELLS = 5000,  /* and the log says so */
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

/* Who is announced now, each with a reference. False: there are more. */
static bool one_sided_look(struct node *node, struct under_way *found, unsigned *count)
{
    bool all = true;
    *count = 0;
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next) {
        const struct direct_seats *seats = record_seats(record);
        struct under_way *next = &found[*count];
        if (!seats)
            continue;
        if (*count == UNDER_WAY_MAX) {
            all = false;
            break;
        }
        direct_look(seats, next->seen);
        if (!is_any_taken(next->seen))
            continue;
        next->record = record;
        atomic_fetch_add_explicit(&record->references, 1, memory_order_relaxed);
        ++*count;
    }
    lock_release(&node->lock);
    return all;
}

/* Under node->lock, without which the seats may go. A process that has died, or left, does nothing any more: it dies
 * after its last system call, and its record lock goes after that; and it leaves after its last access. */
static bool is_under_way(struct node *node, const struct under_way *under_way)
{
    lock_assert_held(&node->lock);
    const struct direct_seats *seats = record_seats(under_way->record);
    return seats && direct_is_under_way(seats, under_way->seen) &&
           table_alive(node->table, under_way->record->peer.slot);
}

static void one_sided_tell(const struct under_way *under_way)
{
    log_write(LOG_WARN, "process %d is slow within a WRITE of memory here, which waits for it",
              (int)under_way->record->peer.pid);
}

/* True: it is over. */
static bool one_sided_is_over(struct node *node, const struct under_way *under_way, unsigned patience)
{
    lock_take(&node->lock);
    bool over = !is_under_way(node, under_way);
    if (!over && patience == FORBIDS)
        shm_forbid_writes(under_way->record->peer.link, under_way->seen);
    lock_release(&node->lock);
    return over || (patience >= FORBIDS && elsewhere_all(under_way->record->peer.pid, SYS_process_vm_writev));
}

/* Mostly it is over within a microsecond, so first we yield. One whose requester is stopped before its call begins can
 * be forbidden, so it is waited for no longer than until that is seen. */
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

void node_quiesce(struct node *node)
{
    struct under_way found[UNDER_WAY_MAX];
    unsigned count;
    bool all = !node->published.file;
    int before = uncancelled_begin();
    while (!all) {
        all = one_sided_look(node, found, &count);
        for (unsigned i = 0; i < count; i++)
            one_sided_wait(node, &found[i]);
    }
    uncancelled_end(before);
}

void node_count_one_sided(struct node *node, struct node_one_sided *total)
{
    lock_take(&node->lock);
    *total = node->one_sided;
    for (struct record *record = node->records; record; record = record->next)
        one_sided_add(total, record);
    lock_release(&node->lock);
}
