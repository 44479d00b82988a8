#include "process/poller.h"

#include <sched.h>

#include "base/likely.h"
#include "process/progress.h"
#include "process/rest.h"
#include "wire/foreign/foreign.h"

enum {
    YIELD_AFTER = 2048, /* fruitless rounds in a row after which a poller lets others have the processor, */
    YIELD_STEP = 64,    /* and again after each YIELD_STEP more */
    DENIALS = 4096,     /* tries in a row to get the progress after which a poller sleeps for a moment */
};

/* A thread that has polled for long without result gives up the processor: a peer may need it, or a preempted thread of
 * this process that holds the progress. */
cold static void yield_now(struct process *process)
{
    atomic_store_explicit(&process->poller.fruitless, YIELD_AFTER - YIELD_STEP, memory_order_relaxed);
    sched_yield();
}

static inline void yield_if_idle(struct process *process, unsigned done)
{
    uint32_t fruitless = done ? 0 : atomic_load_explicit(&process->poller.fruitless, memory_order_relaxed) + 1;
    atomic_store_explicit(&process->poller.fruitless, fruitless, memory_order_relaxed);
    if (unlikely(fruitless >= YIELD_AFTER))
        yield_now(process);
}

/* Returns true if polling has lasted long enough to assume that it will continue. */
static inline bool may_claim(struct process *process)
{
    lock_assert_held(&process->progress);
    uint32_t most = atomic_load_explicit(&process->poller.claim_rounds, memory_order_relaxed);
    return unlikely(++process->poller.polled_rounds >= most);
}

cold static bool claims(struct process *process)
{
    lock_assert_held(&process->progress);
    process->poller.polled_rounds = 0;
    return !process->poller.restraints && !rest_has_queues(process) && node_sleeping(process->node);
}

cold static void claim_now(struct process *process)
{
    node_awake(process->node);
    atomic_store(&process->poller.claimed, true);
    node_wake(process->node); /* so that the helper begins to tick */
}

/* Another thread has the progress, and no thread got it since: its holder may have been preempted by this very thread,
 * and does not run again when a thread of a real-time priority yields, but when it sleeps. */
cold static void be_denied(struct process *process)
{
    uint32_t rounds = atomic_load_explicit(&process->poller.rounds, memory_order_relaxed);
    uint32_t denied = atomic_load_explicit(&process->poller.denied, memory_order_relaxed) + 1;
    if (rounds != atomic_load_explicit(&process->poller.denied_at, memory_order_relaxed))
        denied = 0;
    atomic_store_explicit(&process->poller.denied_at, rounds, memory_order_relaxed);
    atomic_store_explicit(&process->poller.denied, denied, memory_order_relaxed);
    if (denied && denied % DENIALS == 0)
        lock_wait(LOCK_SLEEPS);
    yield_if_idle(process, 0);
}

/* Leaves all work to the helper, which a doorbell wakes as when no thread polls. */
cold static bool poll_nothing(struct process *process)
{
    uint32_t copies = foreign_waiting();
    if (copies)
        progress_watch_copies(process, copies);
    poller_active(process);
    yield_if_idle(process, 0);
    return process->forked;
}

/* Makes a round of progress. False: another thread has the progress, or has to make it, or more may be left than this
 * round could do. */
static inline bool poll_once(struct process *process)
{
    if (unlikely(process->poller.restraints))
        return poll_nothing(process);
    if (!lock_try(&process->progress)) {
        be_denied(process);
        return false;
    }
    unsigned done = progress_round(process, true);
    bool claim = may_claim(process) && claims(process);
    lock_release(&process->progress);
    poller_active(process);
    yield_if_idle(process, done);
    if (unlikely(claim))
        claim_now(process);
    return done < PROGRESS_FRAMES;
}

void poller_poll(struct process *process)
{
    poll_once(process);
}

/* shm_got_room reports room only once, and it may have been reported to this thread. If another thread holds the
 * progress and has already checked the waiting queue pairs, they would sleep until the next look at receivers (50
 * ms), and no peer would ring: so one more round runs. Frames and control messages need no such care, they are still
 * there when the helper looks before it sleeps. A thread that polls again looks at the list in each round, and a
 * round follows the helper's own node_sleep, which node_rest counts on. */
void poller_handover(struct process *process)
{
    if (process->forked)
        return;
    if (unlikely(process->poller.restraints))
        return node_wake(process->node);
    if (!node_rest(process->node) && !poll_once(process))
        node_wake(process->node);
    if (atomic_load(&process->loop.owing)) /* another thread may have left an ACK for a round that now does not come */
        progress_work(process);
}
