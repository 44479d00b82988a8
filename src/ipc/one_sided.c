/* What peers do in this process's memory by themselves: waiting until it is over, and counting it. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/uncancelled.h"
#include "diag/log.h"
#include "ipc/state.h"
#include "link/direct.h"

enum { UNDER_WAY_MAX = 64, YIELDS = 100, NAP = 100000, TELLS = 10000 };

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
    log_write(LOG_WARN, "process %d stands still within a READ or WRITE of memory here, which waits for it",
              (int)under_way->record->peer.pid);
}

/* Mostly it is over within a microsecond, so first we yield. */
static void one_sided_wait(struct node *node, const struct under_way *under_way)
{
    for (unsigned i = 0;; i++) {
        lock_take(&node->lock);
        bool goes_on = is_under_way(node, under_way);
        lock_release(&node->lock);
        if (!goes_on)
            break;
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
