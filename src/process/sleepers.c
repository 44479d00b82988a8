#include "process/sleepers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/uncancelled.h"
#include "process/helper.h"
#include "process/poller.h"
#include "process/progress.h"
#include "process/restraints.h"

enum { DOORBELL, EVENT, SIGNAL, KINDS }; /* the data in the epoll instance */

/* --- signals
 *
 * epoll_wait(2) ends with EINTR whatever the handler's flags are; read(2) begins again where the handler has
 * SA_RESTART. So signals are blocked while the thread sleeps, and a descriptor that is readable while one is pending
 * ends the sleep: then it is known which one comes. Signals of the thread's own mistakes are not blocked, as that would
 * end the process. */

static void fill_blocked(sigset_t *set)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(set);
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(set, own[i]);
}

/* Takes a signal that is pending and was not blocked before, and sends it to this thread: of one for the process it
 * would not be known which thread handles it. 0: there is none any more. The bare call, as the other one is a
 * cancellation point and may lose the signal. */
static int claim_signal(const sigset_t *before)
{
    static const struct timespec now = {0};
    sigset_t mine;
    siginfo_t info;
    fill_blocked(&mine);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(before, number) == 1)
            sigdelset(&mine, number);
    long number = syscall(SYS_rt_sigtimedwait, &mine, &info, &now, (size_t)NSIG / 8);
    if (number <= 0)
        return 0;
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, &info))
        pthread_kill(pthread_self(), (int)number);
    return (int)number;
}

/* Returns true if read(2) ends with EINTR when this signal is handled. */
static bool interrupts(int number)
{
    struct sigaction action;
    return !sigaction(number, NULL, &action) && action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL &&
           !(action.sa_flags & SA_RESTART);
}

/* --- opening */

static bool await(int epoll, int fd, uint32_t kind)
{
    struct epoll_event other = {.events = EPOLLIN, .data.u32 = kind};
    return fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &other);
}

/* The file of signals, of all epoll instances, as an instance keeps it only while it has a descriptor. -1: not opened.
 * With the number of instances, under progress. */
static int signals = -1;
static unsigned opened;
static atomic_uint waiting; /* threads */

static bool await_signals(int epoll)
{
    sigset_t blocked;
    fill_blocked(&blocked);
    if (signals < 0)
        signals = descriptor_raise(signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
    return await(epoll, signals, SIGNAL);
}

static int open_sleeper(struct process *process, int fd)
{
    lock_assert_held(&process->progress);
    int epoll = node_open_sleeper(process->node);
    if (epoll >= 0 && await(epoll, fd, EVENT) && await_signals(epoll)) {
        opened++;
        return epoll;
    }
    descriptor_close(&epoll);
    return -1;
}

/* Returns the epoll instance; -1: there is none. */
static int epoll_of(struct process *process, struct sleeper *sleeper, int fd)
{
    int epoll = atomic_load_explicit(&sleeper->epoll, memory_order_acquire);
    if (epoll)
        return epoll;
    int before = uncancelled_begin();
    lock_take(&process->progress);
    if (!atomic_load(&sleeper->epoll))
        atomic_store(&sleeper->epoll, open_sleeper(process, fd));
    lock_release(&process->progress);
    uncancelled_end(before);
    return atomic_load(&sleeper->epoll);
}

static void close_sleeper(struct node *node, int epoll)
{
    if (node)
        node_close_sleeper(node, epoll);
    close(epoll);
    if (!--opened && !atomic_load(&waiting))
        descriptor_close(&signals);
}

/* A thread that waits for a channel that the program has destroyed waits on, as it does in read(2), until a signal
 * comes or it is cancelled. It takes no doorbell any more. */
void sleepers_close(struct process *process, struct sleeper *sleeper)
{
    int epoll = atomic_load(&sleeper->epoll);
    if (epoll <= 0)
        return;
    int before = uncancelled_begin();
    lock_take(&process->progress);
    close_sleeper(process_node(process), epoll);
    lock_release(&process->progress);
    uncancelled_end(before);
}

/* --- sleeping */

/* Returns true if this thread may do the helper's work: no driver's copies and no script leave it to the helper. */
static bool may_serve(const struct process *process)
{
    return restraints_permit(process) && !atomic_load_explicit(&process->helper.frozen, memory_order_relaxed);
}

static bool make_round(struct process *process)
{
    lock_take(&process->progress);
    bool permitted = may_serve(process);
    if (permitted) {
        node_attend(process->node);
        progress_round(process, true);
    }
    lock_release(&process->progress);
    return permitted;
}

/* Does what the helper does for a doorbell; the handover begins another sleep. False: the helper has to. */
static bool serve(struct process *process)
{
    int before = uncancelled_begin();
    bool served = make_round(process);
    if (served) {
        poller_handover(process);
        helper_watch(process);
    } else {
        node_leave_sleeper(process->node);
    }
    uncancelled_end(before);
    return served;
}

/* Returns why the thread woke up: a set of 1 << kind. The doorbell alone: it has served, and sleeps again. None: it
 * can't sleep here. */
static unsigned sleep_once(struct process *process, struct sleeper *sleeper)
{
    struct epoll_event events[KINDS];
    uint32_t added = atomic_load_explicit(&sleeper->wakeup.added, memory_order_relaxed);
    unsigned found = 0;
    int count = epoll_wait(atomic_load_explicit(&sleeper->epoll, memory_order_relaxed), events, KINDS, -1);
    for (int i = 0; i < count; i++)
        found |= 1u << events[i].data.u32;
    if (!(found & 1u << DOORBELL))
        return found;
    if (!serve(process))
        return found & ~(1u << DOORBELL);
    if (atomic_load_explicit(&sleeper->wakeup.added, memory_order_relaxed) != added)
        found |= 1u << EVENT;
    return found;
}

struct rest {
    struct process *process;
    sigset_t before;
};

/* The thread is cancelled: a doorbell may have woken it at the same time. The program may have closed the device. */
static void end_rest(void *argument)
{
    struct rest *rest = argument;
    atomic_fetch_sub(&waiting, 1);
    pthread_sigmask(SIG_SETMASK, &rest->before, NULL);
    process_leave_sleeper(rest->process);
}

/* Sleeps with signals blocked. Returns what has ended that, and the signal that is handled now, or 0. */
static unsigned rest_blocked(struct process *process, struct sleeper *sleeper, int *number)
{
    struct rest rest = {.process = process};
    sigset_t blocked;
    unsigned found;
    fill_blocked(&blocked);
    pthread_sigmask(SIG_BLOCK, &blocked, &rest.before);
    atomic_fetch_add(&waiting, 1);
    pthread_cleanup_push(end_rest, &rest);
    while ((found = sleep_once(process, sleeper)) == 1u << DOORBELL)
        ;
    pthread_cleanup_pop(false);
    atomic_fetch_sub(&waiting, 1);
    *number = found & 1u << SIGNAL ? claim_signal(&rest.before) : 0;
    pthread_sigmask(SIG_SETMASK, &rest.before, NULL);
    return found;
}

static int rest_on(struct process *process, struct sleeper *sleeper)
{
    unsigned found;
    int number;
    do {
        found = rest_blocked(process, sleeper, &number);
        if (number && !(found & 1u << EVENT) && interrupts(number))
            return EINTR;
    } while (number && !(found & 1u << EVENT));
    return 0; /* also for a signal that the program blocks, which would end each sleep */
}

static bool waits(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_NONBLOCK);
}

int sleepers_wait(struct process *process, struct sleeper *sleeper, int fd)
{
    if (!may_serve(process) || !waits(fd))
        return 0;
    int epoll = epoll_of(process, sleeper, fd);
    return epoll < 0 ? 0 : rest_on(process, sleeper);
}
