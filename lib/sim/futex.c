/* futex(2). A private one is a queue by process and address, of which a wake-up chooses by the seed. One that processes
 * share has no name that all know: who waits looks again when a thread has acted, or woken anybody. */
#include <linux/futex.h>

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "answer.h"
#include "clock.h"
#include "raw.h"
#include "signals.h"
#include "sim/choose.h"
#include "token.h"

#define SHARED 1ull /* the key of all that processes share */

static uint64_t key_of(long operation, long address)
{
    return operation & FUTEX_PRIVATE_FLAG ? ((uint64_t)token_process << 48 ^ (uint64_t)address) | 2 : SHARED;
}

static uint32_t read_word(long address)
{
    return *(volatile uint32_t *)address;
}

static long wait_while(uint64_t key, long address, uint32_t value, uint64_t deadline)
{
    for (;;) {
        switch (token_wait(key == SHARED ? SIM_SPINS : SIM_SLEEPS, deadline, key)) {
        case TOKEN_WOKEN:
            return 0;
        case TOKEN_SIGNAL:
            return deadline == SIM_NEVER ? signals_ended() : -EINTR;
        case TOKEN_TIME:
            return -ETIMEDOUT;
        case TOKEN_AGAIN:
            if (key == SHARED && read_word(address) != value)
                return 0;
        }
    }
}

static unsigned find_waiters(uint64_t key, unsigned *waiters)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SIM_THREADS; i++) {
        const struct sim_thread *thread = &token_run->threads[i];
        if (thread->state == SIM_WAITING && thread->key == key && !thread->woken)
            waiters[count++] = i;
    }
    return count;
}

/* All of a shared key's, as their addresses are not known: a wake-up without cause is allowed. */
static long wake(uint64_t key, long most)
{
    unsigned waiters[SIM_THREADS], count = find_waiters(key, waiters);
    long woken = 0;
    for (long left = key == SHARED ? INT_MAX : most; count && left > 0; left--, woken++) {
        unsigned picked = sim_pick_waiter(token_run, count);
        token_run->threads[waiters[picked]].woken = true;
        waiters[picked] = waiters[--count];
    }
    if (woken || key == SHARED)
        token_moved();
    return woken;
}

static uint64_t deadline_of(long operation, const struct timespec *time)
{
    if (!time)
        return SIM_NEVER;
    if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT)
        return token_later(clock_nanos(time));
    return clock_from_absolute(operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, time);
}

static long lock_with_priority(const struct caught *call)
{
    long result, flags = call->argument[1] & FUTEX_PRIVATE_FLAG;
    while ((result = RAW(futex, call->argument[0], FUTEX_TRYLOCK_PI | flags)) == -EAGAIN)
        token_wait(SIM_SPINS, SIM_NEVER, SHARED);
    return result;
}

long answer_futex(struct caught *call)
{
    const long *argument = call->argument;
    uint64_t key = key_of(argument[1], argument[0]);
    switch (argument[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        if (read_word(argument[0]) != (uint32_t)argument[2])
            return -EAGAIN;
        return wait_while(key, argument[0], (uint32_t)argument[2], deadline_of(argument[1], (void *)argument[3]));
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        return wake(key, argument[2]);
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        return wake(key, INT_MAX);
    case FUTEX_WAKE_OP: /* the operation is the kernel's, which has no waiters */
        RAW(futex, argument[0], argument[1], 0, 0, argument[4], argument[5]);
        return wake(key, argument[2]) + wake(key_of(argument[1], argument[4]), argument[3]);
    case FUTEX_LOCK_PI:
        return lock_with_priority(call);
    case FUTEX_UNLOCK_PI:
        wake(SHARED, INT_MAX);
        break;
    }
    return RAW(futex, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
