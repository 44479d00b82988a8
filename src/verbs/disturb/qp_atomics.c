#include "verbs/disturb/qp_adverse.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/static_lock.h"
#include "wire/foreign/foreign.h"
#include "wire/guarded.h"

/* All atomics of the process take this lock, as on one device: several queue pairs may execute atomics at once. */
LOCK_STATIC(executing, LOCK_INNERMOST);

enum { WORD = 8, PAUSE = 400 };

/* Returns true if other processes may have the page, too: their atomics are of the same device, without this lock. */
static bool may_be_shared(const void *memory)
{
    const uint64_t not_anonymous = 1ull << 61; /* proc_pid_pagemap(5) */
    static const unsigned entry_size = sizeof(uint64_t);
    uint64_t entry = not_anonymous;
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return true;
    off_t at = (off_t)((uintptr_t)memory / (uintptr_t)sysconf(_SC_PAGESIZE) * entry_size);
    bool read = pread(file, &entry, entry_size, at) == (ssize_t)entry_size;
    close(file);
    return !read || entry & not_anonymous;
}

static bool change_at_once(const struct packet *packet, void *memory, uint64_t *found)
{
    if (op_operation(packet->opcode) == OPERATION_COMPARE_SWAP)
        return guarded_compare_and_swap(memory, packet->compare, packet->swap_or_add, found) ||
               foreign_compare_and_swap(memory, packet->compare, packet->swap_or_add, found);
    return guarded_fetch_and_add(memory, packet->swap_or_add, found) ||
           foreign_fetch_and_add(memory, packet->swap_or_add, found);
}

static uint64_t value_of(const struct packet *packet, uint64_t found)
{
    if (op_operation(packet->opcode) == OPERATION_COMPARE_SWAP)
        return found == packet->compare ? packet->swap_or_add : found;
    return found + packet->swap_or_add;
}

static void pause_for(uint64_t rounds)
{
    for (volatile uint64_t left = rounds; left; left--) {
    }
}

static bool change_slowly(const struct packet *packet, void *memory, uint64_t *found, uint64_t rounds)
{
    if (!guarded_copy(found, memory, WORD))
        return false;
    uint64_t value = value_of(packet, *found);
    pause_for(rounds);
    return value == *found || guarded_copy(memory, &value, WORD);
}

bool qp_adverse_changes(struct qp *qp, const struct packet *packet, void *memory, uint64_t *found)
{
    lock_assert_held(&qp->lock);
    bool stores = op_operation(packet->opcode) == OPERATION_ATOMIC_WRITE;
    bool at_once = !stores && (uintptr_t)memory % WORD == 0 && may_be_shared(memory);
    uint64_t rounds = adverse_draw(&qp_adverse_of(qp)->source, PAUSE);
    if (!stores && !at_once)
        adverse_note(ADVERSE_TORN);
    lock_take(&executing);
    bool changed = stores    ? payload_copy(&packet->payload, 0, &(struct iovec){memory, WORD}, 1)
                   : at_once ? change_at_once(packet, memory, found)
                             : change_slowly(packet, memory, found, rounds);
    lock_release(&executing);
    return changed;
}
