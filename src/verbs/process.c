#include "verbs/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "link/fence.h"
#include "link/guard.h"
#include "runtime/clock.h"
#include "runtime/numbers.h"
#include "verbs/cm.h"
#include "verbs/config.h"
#include "verbs/event.h"
#include "verbs/inherit.h"
#include "verbs/late.h"
#include "verbs/mad.h"
#include "verbs/memory.h"
#include "verbs/multicast.h"
#include "verbs/port.h"
#include "verbs/progress.h"
#include "verbs/report.h"
#include "verbs/steering.h"
#include "verbs/taps.h"
#include "verbs/traffic_report.h"

enum {
    CLAIM_ROUNDS = 512,          /* rounds after which pollers are believed to go on: some ten microseconds */
    CLAIM_ROUNDS_MOST = 1 << 16, /* the same for a program that disappointed that belief again and again */
    PATIENCE = 2048,             /* fruitless rounds in a row after which a poller lets others have the processor, */
    PATIENCE_STEP = 64,          /* and again after so many more */
    DENIALS = 4096,              /* tries in a row to get the progress after which a poller sleeps for a moment */
};
static const nanos tick_first = 50 * NANOS_MICROSECOND; /* from claim to the first look whether they do go on, */
static const nanos tick_most = NANOS_MILLISECOND;       /* doubling up to this while they do */
static const nanos glance = 2 * NANOS_MICROSECOND;      /* a hot program calls verbs at least so often */
/* How long the helper looks on after its last work: twice as long whenever that paid, half as long whenever it did not.
 * Looking on saves a sleep and a wake-up in a stream of work, and holds up a thread that waits for this processor. */
static const nanos linger_least = NANOS_MICROSECOND / 2;
static const nanos leaving_most = 500 * NANOS_MILLISECOND; /* what the end of the process waits for the helper */
static const nanos linger_most = 20 * NANOS_MICROSECOND;

static struct mutex joining = MUTEX_INITIAL(LOCK_JOINING);
static struct process *the_process;
static unsigned users;

/* Sleeps until `until`, a doorbell, or a signal that isn't ours; while nobody polls also until a port has something. */
static void sleep_until(struct process *process, nanos until, nanos now, bool polled)
{
    struct pollfd sockets[1 + DEVICES_MAX] = {{.fd = node_fd(process->node), .events = POLLIN}};
    unsigned count = 1 + (polled ? 0 : port_poll(process, sockets + 1));
    nanos span = until > now ? until - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(span / NANOS_SECOND), .tv_nsec = (long)(span % NANOS_SECOND)};
    ppoll(sockets, count, until == NANOS_NEVER ? NULL : &timeout, NULL);
}

struct helper {
    struct process *process;
    nanos linger, busy_until; /* looks on; 0: does not */
    nanos tick;               /* pollers do the work, and are looked after so often; 0: they don't */
    bool failed;              /* the host is lost, and the devices have failed */
};

/* Did somebody ring, or send a new ring? */
static bool answer_doorbell(struct process *process)
{
    struct pollfd socket = {.fd = node_fd(process->node), .events = POLLIN};
    if (poll(&socket, 1, 0) != 1)
        return false;
    lock_take(&process->progress);
    node_service(process->node, report_write, process);
    lock_release(&process->progress);
    return true;
}

static unsigned work(struct process *process)
{
    lock_take(&process->progress);
    unsigned done = progress_round(process, false);
    lock_release(&process->progress);
    return done;
}

static nanos look_at_timers(struct process *process, nanos now)
{
    lock_take(&process->progress);
    nanos deadline = progress_timers(process, now);
    lock_release(&process->progress);
    return deadline;
}

/* Does the program call verbs right now? Who can't be seen at it may be waiting for this very processor, so it gets it
 * for a moment. */
static bool sees_activity(struct process *process)
{
    uint32_t rounds = atomic_load_explicit(&process->rounds, memory_order_relaxed);
    for (nanos until = clock_now() + glance; clock_now() < until;)
        if (atomic_load_explicit(&process->rounds, memory_order_relaxed) != rounds)
            return true;
    nanos now = clock_now();
    sleep_until(process, now + glance, now, true);
    return atomic_load_explicit(&process->rounds, memory_order_relaxed) != rounds;
}

/* Who claimed and then stopped made its peers wait for our tick: next time it must poll twice as long before it is
 * believed. A program that alternates between polling and looking at its memory is soon never believed. */
static void judge_pollers(struct helper *helper)
{
    struct process *process = helper->process;
    uint32_t needed = atomic_load_explicit(&process->claim_rounds, memory_order_relaxed);
    if (sees_activity(process)) {
        helper->tick = helper->tick * 2 < tick_most ? helper->tick * 2 : tick_most;
        needed = needed / 2 > CLAIM_ROUNDS ? needed / 2 : CLAIM_ROUNDS;
    } else {
        helper->tick = 0;
        needed = needed * 2 < CLAIM_ROUNDS_MOST ? needed * 2 : CLAIM_ROUNDS_MOST;
    }
    atomic_store_explicit(&process->claim_rounds, needed, memory_order_relaxed);
}

/* Pollers do the work; doorbells are off. But the answer that a timer waits for may have come while the poller has no
 * processor, so before one ends the rings are looked at. */
static void watch_pollers(struct helper *helper, nanos now)
{
    struct process *process = helper->process;
    if (schedule_is_due(&process->schedule, now))
        work(process);
    nanos deadline = look_at_timers(process, now), until = now + helper->tick;
    if (deadline < until)
        until = deadline;
    schedule_look_at(&process->schedule, until);
    sleep_until(process, until, now, true);
    judge_pollers(helper);
}

/* Looks at the timers, and says when it will again. Saying so before looking once more pairs with schedule_by,
 * which enters the list before it reads when we look: one of the two sees the other. */
static nanos serve_timers(struct process *process, nanos now)
{
    nanos deadline = look_at_timers(process, now);
    schedule_look_at(&process->schedule, deadline);
    nanos latest = look_at_timers(process, now);
    if (latest < deadline)
        schedule_look_at(&process->schedule, latest);
    return latest < deadline ? latest : deadline;
}

/* node_sleep says that we sleep before it looks at the rings once more, as serve_timers does with the timers. */
static void go_to_sleep(struct process *process, nanos now)
{
    nanos latest = serve_timers(process, now);
    if (node_sleep(process->node) && !atomic_load(&process->owing) &&
        !atomic_load(&process->stopping)) /* whose doorbell may have been read already */
        sleep_until(process, latest, clock_now(), false);
    node_awake(process->node);
}

static void look_on(struct helper *helper, nanos now, unsigned done)
{
    if (done) {
        if (helper->busy_until && helper->linger * 2 <= linger_most)
            helper->linger *= 2;
        helper->busy_until = now + helper->linger;
    } else if (now >= helper->busy_until && helper->busy_until) {
        helper->busy_until = 0;
        if (helper->linger / 2 >= linger_least)
            helper->linger /= 2;
    }
}

/* Who holds `control` may wait for the progress that the helper makes, so the helper does not wait for it. */
static void fail_devices(struct helper *helper)
{
    helper->failed = event_fail_devices(helper->process);
    if (helper->failed)
        return;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    node_wake(helper->process->node);
}

static void step(struct helper *helper)
{
    struct process *process = helper->process;
    nanos now = clock_now();
    bool rang = answer_doorbell(process);
    if (rang && !helper->failed && node_is_lost(process->node))
        fail_devices(helper);
    if (atomic_exchange(&process->claimed, false))
        helper->tick = tick_first;
    else if (rang)
        helper->tick = 0;
    if (helper->tick && atomic_load(&process->owing))
        work(process);
    if (helper->tick) {
        watch_pollers(helper, now);
        return;
    }
    look_on(helper, now, work(process));
    if (!helper->busy_until)
        go_to_sleep(process, now);
    else if (schedule_is_due(&process->schedule, now)) /* others' timers do not wait for the end of this stream */
        serve_timers(process, now);
}

/* Asks the scheduler (EEVDF, Linux 6.12 and later; others ignore it) for the shortest slices. The helper runs for a
 * microsecond when it is woken, and a thread that spins on the same processor for what the helper is about to bring
 * would otherwise keep it waiting for milliseconds. Needs no privilege; a refusal costs nothing but that. */
static void ask_for_short_slices(void)
{
    struct { /* struct sched_attr of sched_setattr(2), first version */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {.size = sizeof attr};
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) || attr.policy != SCHED_OTHER)
        return;
    attr.runtime = 100 * NANOS_MICROSECOND;
    syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void leave_host(struct process *process)
{
    lock_take(&process->progress);
    progress_settle(process);
    cm_say_goodbye(process);
    late_flush(process);
    traffic_report_end(process);
    atomic_store(&process->forked, true);
    node_leave_host(process->node);
    lock_release(&process->progress);
}

static void *help(void *argument)
{
    struct helper helper = {.process = argument, .linger = linger_least};
    pthread_setname_np(pthread_self(), "softverbs");
    ask_for_short_slices();
    while (!atomic_load(&helper.process->stopping))
        step(&helper);
    if (atomic_load(&helper.process->ending))
        leave_host(helper.process);
    return NULL;
}

/* The helper takes none of the program's signals, but for those that its own accesses may cause. */
static int start_helper(struct process *process)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    guard_start();
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&process->helper, NULL, help, process);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void stop_helper(struct process *process)
{
    atomic_store(&process->stopping, true);
    node_wake(process->node);
    pthread_join(process->helper, NULL);
}

/* The same, but the helper leaves the host first. It may never end: exit was called in a signal handler, and what the
 * interrupted thread holds is never given back. So nothing here waits for a lock, and the helper is left alone when it
 * has had its time: the end of the process tells the peers, too. */
static void let_helper_leave(struct process *process)
{
    atomic_store(&process->ending, true);
    atomic_store(&process->stopping, true);
    node_wake(process->node);
    int before = uncancelled_begin();
    nanos until = clock_now() + leaving_most, step = 20 * NANOS_MICROSECOND;
    while (pthread_tryjoin_np(process->helper, NULL) && clock_now() < until) {
        nanosleep(&(struct timespec){.tv_nsec = (long)step}, NULL);
        step = step < NANOS_MILLISECOND ? step * 2 : step;
    }
    uncancelled_end(before);
}

/* Who polls in vain for long waits for somebody who may need this very processor: a peer, or a thread of this process
 * that was preempted while it held the progress. */
static void be_patient(struct process *process, unsigned done)
{
    uint32_t fruitless = done ? 0 : atomic_load_explicit(&process->fruitless, memory_order_relaxed) + 1;
    if (__builtin_expect(fruitless >= PATIENCE, 0)) {
        fruitless -= PATIENCE_STEP;
        sched_yield();
    }
    atomic_store_explicit(&process->fruitless, fruitless, memory_order_relaxed);
}

/* Under progress. Has polling gone on for long enough to believe that it will? */
static bool claims(struct process *process)
{
    lock_assert_held(&process->progress);
    if (++process->polled_rounds < atomic_load_explicit(&process->claim_rounds, memory_order_relaxed))
        return false;
    process->polled_rounds = 0;
    return !process->forked && node_sleeping(process->node);
}

/* Somebody has the progress, and nobody got it since: its holder may have been preempted by this very thread, and does
 * not run again when a thread of a real-time priority yields, but when it sleeps. */
static void be_denied(struct process *process)
{
    uint32_t rounds = atomic_load_explicit(&process->rounds, memory_order_relaxed);
    uint32_t denied = atomic_load_explicit(&process->denied, memory_order_relaxed) + 1;
    if (rounds != atomic_load_explicit(&process->denied_at, memory_order_relaxed))
        denied = 0;
    atomic_store_explicit(&process->denied_at, rounds, memory_order_relaxed);
    atomic_store_explicit(&process->denied, denied, memory_order_relaxed);
    if (denied && denied % DENIALS == 0)
        lock_wait(LOCK_SLEEPS);
    be_patient(process, 0);
}

/* False: another thread has the progress. */
static inline bool poll_once(struct process *process)
{
    if (!lock_try(&process->progress)) {
        be_denied(process);
        return false;
    }
    unsigned done = process->forked ? 0 : progress_round(process, true);
    bool claim = claims(process);
    lock_release(&process->progress);
    process_active(process);
    be_patient(process, done);
    if (__builtin_expect(claim, 0)) {
        node_awake(process->node);
        atomic_store(&process->claimed, true);
        node_wake(process->node); /* so that the helper begins to tick */
    }
    return true;
}

void process_poll(struct process *process)
{
    poll_once(process);
}

/* That a ring has room again is told once (shm_got_room), here perhaps to us. Whoever has the progress may have looked
 * at those that wait for room just before one of them came, and would sleep until the next look after receivers (50 ms)
 * with nobody left to ring: so it is sent round once more. Frames and letters need no such care, they are still there
 * when the helper looks before it sleeps. Who goes on polling looks at the list in each round, and the helper's own
 * node_sleep is followed by a round. */
void process_handover(struct process *process)
{
    if (process->forked)
        return;
    if (!node_sleep(process->node) && !poll_once(process))
        node_wake(process->node);
    if (atomic_load(&process->owing)) /* another thread may have left an ACK for a round that now nobody promises */
        work(process);
}

void process_quiesce(struct process *process)
{
    lock_take(&process->progress);
    lock_release(&process->progress);
}

static void destroy(struct process *process)
{
    late_flush(process);
    cm_destroy(process);
    if (process->totals)
        traffic_report_end(process);
    if (!process->forked)
        node_close(process->node);
    port_close_all(process);
    taps_close(process->taps);
    free(process->totals);
    memory_destroy(process->keys);
    numbers_destroy(process->numbers);
    steering_destroy(process->steering);
    numbers_destroy(process->srqs);
    pthread_mutex_destroy(&process->control.mutex);
    free(process);
}

static void wake_helper(struct schedule *schedule)
{
    node_wake(container_of(schedule, struct process, schedule)->node);
}

static struct process *create(void)
{
    char why[256];
    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    int error = node_open(&process->node, NULL, why, sizeof why);
    if (error) {
        log_write(LOG_ERROR, "%s", why);
        free(process);
        errno = error;
        return NULL;
    }
    mutex_initialize(&process->control, LOCK_CONTROL);
    lock_set_rank(&process->progress, LOCK_PROGRESS);
    progress_begin(process, wake_helper);
    atomic_store(&process->claim_rounds, CLAIM_ROUNDS);
    process->fences = fence_everywhere_prepare();
    process->keys = memory_create();
    process->numbers = numbers_create();
    process->srqs = numbers_create();
    error = steering_create(process);
    multicast_begin(process);
    mad_begin(process);
    process->totals = calloc(DEVICES_MAX, sizeof *process->totals);
    process->taps = taps_open(process);
    bool made = process->keys && process->numbers && process->srqs && !error && process->totals;
    error = made ? start_helper(process) : ENOMEM;
    if (!error)
        return process;
    destroy(process);
    errno = error;
    return NULL;
}

/* Threads don't survive a fork. The parent's helper is kept out of everything for the moment of the fork, and so is who
 * opens, closes, makes or destroys; in the child, what was inherited is cut off from the host, and the next
 * ibv_open_device begins anew. */
static void before_fork(void)
{
    mutex_take(&joining);
    if (the_process) {
        mutex_take(&the_process->control);
        lock_take(&the_process->progress);
        cm_lock(the_process);
        lock_take(&the_process->schedule.lock);
    }
}

static void release_after_fork(void)
{
    if (the_process) {
        lock_release(&the_process->schedule.lock);
        cm_unlock(the_process);
        lock_release(&the_process->progress);
        mutex_release(&the_process->control);
    }
}

static void in_parent(void)
{
    release_after_fork();
    mutex_release(&joining);
}

static void in_child(void)
{
    release_after_fork();
    if (the_process) {
        inherit_process(the_process);
        node_abandon(the_process->node);
        port_abandon_all(the_process);
    }
    the_process = NULL;
    users = 0;
    mutex_release(&joining);
}

/* A program that ends without closing its device still leaves the host, so that its peers hear of it at once. Other
 * threads may still be inside a call, and destructors that come later may destroy what the program had. */
static void __attribute__((destructor)) leave_at_exit(void)
{
    struct process *process = the_process;
    if (process && users)
        let_helper_leave(process);
}

static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

/* Under `joining`. A process that has left the host at its end does not come back. */
static struct process *use(void)
{
    if (!the_process)
        the_process = create();
    if (!the_process)
        return NULL;
    if (atomic_load(&the_process->ending)) {
        errno = ENODEV;
        return NULL;
    }
    users++;
    return the_process;
}

struct process *process_join(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
    int before = uncancelled_begin();
    mutex_take(&joining);
    struct process *process = use();
    mutex_release(&joining);
    uncancelled_end(before);
    return process;
}

void process_leave(struct process *process)
{
    if (process->inherited || atomic_load(&process->ending))
        return; /* what was inherited over a fork, or the process ends with, stays */
    int before = uncancelled_begin();
    mutex_take(&joining);
    if (--users == 0) {
        the_process = NULL;
        stop_helper(process);
        destroy(process); /* nobody joins, and no child is forked, while half of it is there */
    }
    mutex_release(&joining);
    uncancelled_end(before);
}
