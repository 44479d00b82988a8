#include "process/helper.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "base/likely.h"
#include "base/settings.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "link/guard.h"
#include "process/follow.h"
#include "process/poller.h"
#include "process/port.h"
#include "process/progress.h"
#include "process/rest.h"
#include "process/restraints.h"
#include "runtime/clock.h"
#include "tap/delay.h"
#include "wire/foreign/foreign.h"

static const nanos tick_first = 50 * NANOS_MICROSECOND; /* from a claim to the first look whether pollers still poll, */
static const nanos tick_most = NANOS_MILLISECOND;       /* doubling up to this while they do */
static const nanos glance = 2 * NANOS_MICROSECOND;      /* a hot program calls verbs at least once in this time */
/* The least time that the helper looks on after work, which doubles whenever that paid, and halves whenever it did not.
 * Looking on saves a sleep and a wake-up in a stream of work, and delays a thread that waits for this processor. */
static const nanos linger_least = NANOS_MICROSECOND / 2;
static const nanos leaving_most = 500 * NANOS_MILLISECOND; /* the longest wait for the helper at the process's end */
static const nanos writing_most = 5 * NANOS_SECOND;        /* the longest wait if the helper has a file to write then */
static const nanos starving_most = 3 * NANOS_SECOND;       /* the longest wait if it has got no processor */
static const nanos starving_late = 5 * NANOS_SECOND;       /* the longest wait if a device is to be opened again */
static const nanos leaving_work = 20 * NANOS_MILLISECOND;  /* of a processor: a helper that can leave needs less */
static const nanos linger_most = 20 * NANOS_MICROSECOND;
/* The time that the helper looks on after a poll, if pollers leave all work to it, and the most after its last work: a
 * poller burns a processor to save a wake-up, so the helper must save it, too. */
static const nanos serve_linger = 50 * NANOS_MICROSECOND;
static const nanos serve_most = NANOS_MILLISECOND;
static const nanos deaf_timeout =
    3 * NANOS_SECOND; /* how long the helper may take to end before helper_stop gives up */
static const nanos deaf_nap = 10 * NANOS_MILLISECOND; /* between two looks when no doorbell arrives any more */

/* Queues in memory: the helper looks at them this often while a stream of work may go on, which costs less than closing
 * and opening the registers, and leaves the processor to the program's threads meanwhile. */
static const nanos nap = 50 * NANOS_MICROSECOND;
static const nanos naps_most = 2 * NANOS_MILLISECOND;

static const nanos hang_after = 5 * NANOS_SECOND; /* between two looks at waiting objects */

static void look_for_hangs(struct timer *timer, nanos now)
{
    struct process *process = container_of(timer, struct process, helper.hangs.timer);
    if (process->parts->look_for_hangs(process))
        schedule_by(&process->schedule, &process->helper.hangs, now + hang_after);
}

void helper_freeze(struct process *process, nanos time)
{
    atomic_store(&process->helper.frozen, clock_now() + time);
    node_wake(process->node);
}

void helper_watch(struct process *process)
{
    if (process->helper.watches && atomic_load(&process->helper.hangs.at) == NANOS_NEVER)
        schedule_by(&process->schedule, &process->helper.hangs, clock_now() + hang_after);
}

/* Returns true if the program has closed one of the sockets, as a program that closes all descriptors does. */
static bool has_closed(const struct pollfd *sockets, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (sockets[i].revents & POLLNVAL)
            return true;
    return false;
}

/* Adds the descriptor that a store into a closed doorbell register makes readable; returns the number of those. */
static unsigned poll_stores(const struct process *process, struct pollfd *socket)
{
    int descriptor = rest_has_queues(process) ? process->parts->queues.descriptor() : -1;
    *socket = (struct pollfd){.fd = descriptor, .events = POLLIN};
    return descriptor >= 0;
}

/* Sleeps until `until`, a doorbell or news of interfaces; while no thread polls, also until a port has something. True:
 * the doorbell waits to be served. */
static bool sleep_until(struct process *process, nanos until, nanos now, bool polled)
{
    struct pollfd sockets[3 + DEVICES_MAX] = {{.fd = node_fd(process->node), .events = POLLIN}};
    unsigned count = 1 + (polled ? 0 : port_poll(process, sockets + 1)), news = follow_poll(process, sockets + count);
    nanos span = until > now ? until - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(span / NANOS_SECOND), .tv_nsec = (long)(span % NANOS_SECOND)};
    unsigned stores = poll_stores(process, sockets + count + news);
    if (ppoll(sockets, count + news + stores, until == NANOS_NEVER ? NULL : &timeout, NULL) <= 0)
        return false;
    port_polled(process, sockets + 1, count - 1);
    follow_polled(process, sockets + count, news);
    if (has_closed(sockets, count))
        nanosleep(&(struct timespec){.tv_nsec = (long)deaf_nap}, NULL);
    return sockets->revents & POLLIN;
}

/* The state that only the helper thread uses. */
struct duty {
    struct process *process;
    nanos linger, busy_until;            /* how long, and until when, it looks on after work; until 0: it does not */
    nanos tick;                          /* pollers do the work, and are looked after each time; 0: they don't */
    bool failed;                         /* the host is lost, and the devices have failed */
    enum { UNASKED, SILENT, RANG } bell; /* the last sleep's result for the doorbell, if it was not read since */
    unsigned looks;                      /* while it looks on */
    uint32_t polled;                     /* process->poller.rounds at its last look */
    nanos worked;                        /* when a look last found work */
    bool exact;                          /* its sleeps end on time, without the kernel's slack */
    nanos looked_around;
};

static void duty_sleep(struct duty *duty, nanos until, nanos now, bool polled)
{
    duty->bell = sleep_until(duty->process, until, now, polled) ? RANG : SILENT;
}

/* While spinning, the helper sees the rings; it asks the sockets only now and then. */
static bool duty_rings(struct duty *duty, bool claimed)
{
    enum { LOOKS = 16 };
    struct pollfd sockets[2] = {{.fd = node_fd(duty->process->node), .events = POLLIN}};
    int bell = duty->bell;
    duty->bell = UNASKED;
    if (bell != UNASKED && !claimed)
        return bell == RANG;
    if (duty->busy_until && !claimed && ++duty->looks % LOOKS)
        return false;
    unsigned news = follow_poll(duty->process, sockets + 1);
    bool found = poll(sockets, 1 + news, 0) > 0;
    follow_polled(duty->process, sockets + 1, news);
    return found && sockets->revents;
}

/* Returns true if a peer rang, or sent a new ring. */
static bool serve_doorbell(struct duty *duty, bool claimed)
{
    struct process *process = duty->process;
    if (!duty_rings(duty, claimed))
        return false;
    lock_take(&process->progress);
    node_service(process->node, process->parts->report, process);
    foreign_settle();
    lock_release(&process->progress);
    return true;
}

static void look_around(struct duty *duty, nanos now)
{
    struct process *process = duty->process;
    if (nanos_since(duty->looked_around, now) < NODE_LOOK_AROUND)
        return;
    duty->looked_around = now;
    lock_take(&process->progress);
    node_look_around(process->node, now);
    lock_release(&process->progress);
}

static nanos look_at_timers(struct process *process, nanos now)
{
    lock_take(&process->progress);
    nanos deadline = progress_timers(process, now);
    lock_release(&process->progress);
    return deadline;
}

/* Returns true if a thread of the program is within a round, which may copy for a millisecond. */
static bool is_in_round(struct process *process)
{
    bool free = lock_try(&process->progress);
    if (free)
        lock_release(&process->progress);
    return !free;
}

/* Returns true if the program calls verbs right now. A thread that is not seen in a call may be waiting for this very
 * processor, which the helper therefore leaves for a moment. */
static bool sees_activity(struct duty *duty)
{
    struct process *process = duty->process;
    uint32_t rounds = atomic_load_explicit(&process->poller.rounds, memory_order_relaxed);
    if (is_in_round(process))
        return true;
    for (nanos until = clock_now() + glance; clock_now() < until;)
        if (atomic_load_explicit(&process->poller.rounds, memory_order_relaxed) != rounds)
            return true;
    nanos now = clock_now();
    duty_sleep(duty, now + glance, now, true);
    return atomic_load_explicit(&process->poller.rounds, memory_order_relaxed) != rounds;
}

/* A thread that claimed polling and then stopped left its peers waiting for our tick: next time it must poll twice as
 * long before the claim counts. Half as long suffices only after it was seen polling in five looks in a row: a program
 * that alternates between polling and looking at its memory is seen as often at the one as at the other, and its claims
 * soon count no more. */
static void judge_pollers(struct duty *duty)
{
    struct process *process = duty->process;
    uint32_t needed = atomic_load_explicit(&process->poller.claim_rounds, memory_order_relaxed);
    if (sees_activity(duty)) {
        duty->tick = duty->tick * 2 < tick_most ? duty->tick * 2 : tick_most;
        if (duty->tick == tick_most)
            needed = needed / 2 > CLAIM_ROUNDS ? needed / 2 : CLAIM_ROUNDS;
    } else {
        duty->tick = 0;
        needed = needed * 2 < CLAIM_ROUNDS_MOST ? needed * 2 : CLAIM_ROUNDS_MOST;
    }
    atomic_store_explicit(&process->poller.claim_rounds, needed, memory_order_relaxed);
}

/* Watches pollers, which do the work; doorbells are off. The answer that a timer waits for may have arrived while the
 * poller has no processor, so the rings are looked at before a timer expires. */
static void watch_pollers(struct duty *duty, nanos now)
{
    struct process *process = duty->process;
    if (schedule_is_due(&process->schedule, now))
        progress_work(process);
    nanos deadline = look_at_timers(process, now), until = now + duty->tick;
    if (deadline < until)
        until = deadline;
    schedule_look_at(&process->schedule, until);
    duty_sleep(duty, until, now, true);
    judge_pollers(duty);
}

/* Looks at the timers, and announces when the helper looks again. The announcement before the second look pairs with
 * schedule_by, which enters the list before it reads the announcement: one of the two sees the other. */
static nanos serve_timers(struct process *process, nanos now)
{
    nanos deadline = look_at_timers(process, now);
    schedule_look_at(&process->schedule, deadline);
    nanos latest = look_at_timers(process, now);
    if (latest < deadline)
        schedule_look_at(&process->schedule, latest);
    return latest < deadline ? latest : deadline;
}

/* Sleeps for so short a time that no store and no peer has to end it. The kernel's slack of a timer, 50 us, would be
 * most of a nap; the sleeps of a helper without queues in memory keep it. */
static void take_nap(struct duty *duty, nanos latest)
{
    if (!duty->exact)
        duty->exact = !prctl(PR_SET_TIMERSLACK, NANOS_MICROSECOND, 0ul, 0ul, 0ul);
    nanos now = clock_now();
    duty_sleep(duty, now + nap < latest ? now + nap : latest, now, false);
}

/* node_sleep says that we sleep before it looks at the rings once more, as serve_timers does with the timers. */
static void go_to_sleep(struct duty *duty, nanos now)
{
    struct process *process = duty->process;
    nanos latest = serve_timers(process, now);
    bool queues = rest_has_queues(process);
    unsigned found;
    if (queues && nanos_since(duty->worked, now) < naps_most)
        return take_nap(duty, latest);
    if (rest_begin(process, queues, now, &found))
        duty_sleep(duty, latest, clock_now(), false);
    if (rest_end(process, queues) || found) /* closed again at once, a register might never let a store pass */
        duty->worked = clock_now();
}

/* Gives the processor to other threads while threads poll that may not do the work: a poller may wait for it. */
cold static bool serves_pollers(struct duty *duty, nanos now)
{
    uint32_t rounds = atomic_load_explicit(&duty->process->poller.rounds, memory_order_relaxed);
    bool polled = rounds != duty->polled;
    duty->polled = rounds;
    if (!polled || nanos_since(duty->worked, now) > serve_most)
        return false;
    sched_yield();
    return true;
}

static void look_on(struct duty *duty, nanos now, unsigned done)
{
    bool restrained = unlikely(restraints_leave_all(duty->process));
    if (done)
        duty->worked = now;
    if (restrained && !done && serves_pollers(duty, now)) {
        duty->busy_until = now + serve_linger;
    } else if (done) {
        if (duty->busy_until && duty->linger * 2 <= linger_most)
            duty->linger *= 2;
        duty->busy_until = now + duty->linger;
    } else if (now >= duty->busy_until && duty->busy_until) {
        duty->busy_until = 0;
        if (duty->linger / 2 >= linger_least)
            duty->linger /= 2;
    }
}

/* Makes the helper's next sleep end at once. */
static void come_again(struct process *process)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    node_wake(process->node);
}

/* A holder of `control` may wait for the progress that the helper makes, so the helper does not wait for it. */
static void fail_devices(struct duty *duty)
{
    duty->failed = duty->process->parts->fail_devices(duty->process);
    if (!duty->failed)
        come_again(duty->process);
}

/* Does nothing until the time of helper_freeze, or the end of the process. */
static void stay_frozen(struct process *process)
{
    while (!atomic_load(&process->helper.stopping) && clock_now() < atomic_load(&process->helper.frozen))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&process->helper.frozen, 0);
}

static void step(struct duty *duty)
{
    struct process *process = duty->process;
    if (unlikely(atomic_load_explicit(&process->helper.frozen, memory_order_relaxed) != 0))
        stay_frozen(process);
    nanos now = clock_now();
    bool claimed = atomic_exchange(&process->poller.claimed, false), rang = serve_doorbell(duty, claimed);
    if (rang && !duty->failed && node_is_lost(process->node))
        fail_devices(duty);
    if (!follow_changes(process, now))
        come_again(process);
    if (claimed || rang)
        helper_watch(process);
    if (claimed)
        duty->tick = tick_first;
    else if (rang || rest_has_queues(process) ||
             unlikely(atomic_load_explicit(&process->poller.restraints, memory_order_relaxed)))
        duty->tick = 0;
    if (duty->tick && atomic_load(&process->loop.owing))
        progress_work(process);
    if (duty->tick) {
        look_around(duty, now);
        watch_pollers(duty, now);
        return;
    }
    unsigned done = progress_work(process);
    if (rest_has_queues(process))
        done += rest_look(process, now);
    if (done)
        helper_watch(process);
    look_on(duty, now, done);
    if (!duty->busy_until) {
        go_to_sleep(duty, now);
        return;
    }
    look_around(duty, now);
    if (schedule_is_due(&process->schedule, now)) /* others' timers do not wait for the end of this stream */
        serve_timers(process, now);
}

/* Asks the scheduler (EEVDF, Linux 6.12 and later; others ignore it) for the shortest slices. The helper runs for a
 * microsecond when it is woken, and a thread that spins on the same processor for data that the helper is about to
 * bring would otherwise keep it waiting for milliseconds. Needs no privilege; a refusal costs nothing but that. */
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
    process->parts->leave(process);
    delay_flush(traffic_taps(&process->traffic));
    process->parts->write_counters(process);
    restraints_end_all(process);
    node_leave_host(process->node);
    lock_release(&process->progress);
}

/* malloc maps an arena for a thread with its first call: this one, as now the program has no region yet, in whose hole
 * the arena could be (base/mapping.h). It is 64 MiB of addresses, which a program with a limit of them can't spare. */
static void take_arena(void)
{
    struct rlimit addresses;
    if (getrlimit(RLIMIT_AS, &addresses) || addresses.rlim_cur != RLIM_INFINITY)
        return;
    void *volatile taken = malloc(1); /* so that the compiler does not leave it out */
    free(taken);
}

static void *help(void *argument)
{
    take_arena();
    restraints_be_helper();
    struct duty duty = {.process = argument, .linger = linger_least};
    pthread_setname_np(pthread_self(), "softverbs");
    ask_for_short_slices();
    node_vouch(duty.process->node);
    while (!atomic_load(&duty.process->helper.stopping))
        step(&duty);
    if (atomic_load(&duty.process->helper.ending))
        leave_host(duty.process);
    node_retract(duty.process->node);
    return NULL;
}

/* The helper's calls need some 10 KiB of stack, and a few times that with sanitizers. The default, mostly 8 MiB, is
 * all that an ordinary user's program may lock (mlockall with MCL_FUTURE). The program's thread-local data are in
 * the stack, too: if they do not fit into the small one, the helper gets the default. */
static int helper_create(struct process *process)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    enum { STACK = 1 << 20 };
#else
    enum { STACK = 256 << 10 };
#endif
    pthread_attr_t small;
    pthread_attr_init(&small);
    int error = pthread_attr_setstacksize(&small, STACK);
    if (!error)
        error = pthread_create(&process->helper.thread, &small, help, process);
    pthread_attr_destroy(&small);
    return error == EINVAL ? pthread_create(&process->helper.thread, NULL, help, process) : error;
}

/* The helper blocks the program's signals, and takes only those that its accesses may cause. */
int helper_start(struct process *process)
{
    sigset_t all, before;
    schedule_initialize_timer(&process->helper.hangs, look_for_hangs);
    process->helper.watches =
        process->parts->look_for_hangs && (log_wanted(LOG_WARN) || setting_environment(SETTING_STORY));
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    guard_start();
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = helper_create(process);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* The time for which the helper has had a processor; NANOS_NEVER: unknown, for example because it has ended. */
static nanos helper_worked(const struct process *process)
{
    clockid_t clock;
    struct timespec time;
    if (pthread_getcpuclockid(process->helper.thread, &clock) || clock_gettime(clock, &time))
        return NANOS_NEVER;
    return (nanos)time.tv_sec * NANOS_SECOND + (nanos)time.tv_nsec;
}

/* A helper that is ready may get no processor for a second on a busy machine. A helper that waits for a lock for
 * ever looks for it every 50 us, and so has done this much work soon. */
static bool helper_starves(const struct process *process, nanos worked_before)
{
    nanos worked = helper_worked(process);
    return worked != NANOS_NEVER && worked - worked_before < leaving_work;
}

/* Waits `least` for the end of the helper, and up to `most` while it starves. The wait tries again and again, since
 * ThreadSanitizer knows no join that ends at a time of the monotonic clock. */
static bool helper_ends_within(struct process *process, nanos least, nanos most)
{
    nanos began = clock_now(), worked = helper_worked(process), step = 20 * NANOS_MICROSECOND;
    atomic_store(&process->helper.stopping, true);
    node_wake(process->node);
    while (pthread_tryjoin_np(process->helper.thread, NULL)) {
        nanos waited = clock_now() - began;
        if (waited >= least && (waited >= most || !helper_starves(process, worked)))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = (long)step}, NULL);
        step = step < NANOS_MILLISECOND ? step * 2 : step;
    }
    return true;
}

bool helper_stop(struct process *process)
{
    return helper_ends_within(process, deaf_timeout, deaf_timeout);
}

bool helper_ends_late(struct process *process)
{
    nanos most = process->helper.late ? 0 : starving_late;
    process->helper.late = true;
    return helper_ends_within(process, most ? leaving_most : 0, most);
}

/* Returns true if the helper may have much to write at the end. */
static bool writes_at_end(void)
{
    return setting_environment(SETTING_COUNTERS) || setting_environment(SETTING_STORY);
}

/* Ends the helper, which leaves the host first. It may never end: exit was called in a signal handler, and the locks
 * of the interrupted thread are never released. So nothing here waits for a lock, and the helper is left alone after
 * its time: the end of the process reaches the peers as well. */
static void leave_within(struct process *process, nanos least, nanos most)
{
    atomic_store(&process->helper.ending, true);
    int before = uncancelled_begin();
    helper_ends_within(process, least, most);
    node_withdraw(process->node);
    uncancelled_end(before);
}

void helper_leave(struct process *process)
{
    leave_within(process, writes_at_end() ? writing_most : leaving_most, starving_most);
}

void helper_leave_late(struct process *process)
{
    leave_within(process, leaving_most, leaving_most);
}
