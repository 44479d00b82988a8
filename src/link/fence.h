/* The full fence between storing one word and loading another (Dekker), and an asymmetric form of it: where one side
 * is rare, it lets the kernel put the fence into all threads of the other side (membarrier), which pays for no
 * fence. ThreadSanitizer doesn't know fences, so it gets an exchange, which orders as much. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
#define LINK_FENCE_BY_EXCHANGE 1
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#define LINK_FENCE_BY_EXCHANGE 1
#endif
#endif

/* Asks the kernel to let other processes put fences into this one's threads, and tries whether we may do so to
 * others. Once for each process. False: no process may count on such fences, use fence_full. */
bool fence_everywhere_prepare(void);

/* A full fence in every running thread of every process that has prepared. False: the kernel refuses. */
bool fence_everywhere(void);

/* Keeps the compiler from reordering, for the side whose fence the other side makes. */
static inline void fence_compiler(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void fence_full(void)
{
#ifdef LINK_FENCE_BY_EXCHANGE
    static atomic_uint word;
    atomic_exchange(&word, 0);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}
