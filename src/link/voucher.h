/* A word in shared memory by which other processes see that a thread of this one lives. The word holds the thread's
 * number, and the kernel puts FUTEX_OWNER_DIED in its place when the thread ends, in any way (return, exit, signal,
 * exec), before the process's memory or number can be another's.
 *
 * The kernel's list of robust futexes does this, used without a mutex: pthread's robust mutexes keep pointers of
 * their process beside the word, and a process that can write those chooses where the other writes. Here only the
 * word is shared; the list is in private memory. While the thread vouches, the kernel does not see robust mutexes of
 * pthread that it holds: it must not take any. */
#pragma once

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct voucher {
    atomic_uint *word; /* NULL: the thread does not vouch */
    struct robust_list entry;
    struct robust_list_head list, *before; /* the thread's list while it vouches, and the one of pthread before */
    size_t before_size;
};

/* The calling thread vouches, until it ends or voucher_give_back. 0, or errno where the kernel has no such lists: then
 * the word stays 0, the number of no thread. The word stays mapped meanwhile, and the voucher is not moved. */
int voucher_take(struct voucher *, atomic_uint *word);

/* Ends the vouching; called by the same thread. Does nothing for one that does not vouch. */
void voucher_give_back(struct voucher *);

/* Returns true if a thread vouches by this word, which may be another process's. */
static inline bool voucher_holds(const atomic_uint *word)
{
    unsigned value = atomic_load(word);
    return value && !(value & FUTEX_OWNER_DIED);
}
