#include "signals.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/ucontext.h>

#include "group.h"
#include "raw.h"
#include "token.h"

#define SIGNALS_BIT(signal) (1ull << ((signal)-1))
#define SIGNALS_OWN (SIGNALS_BIT(SIGSYS) | SIGNALS_BIT(SIGSEGV) | SIGNALS_BIT(SIGNALS_STOP))
#define NEVER_BLOCKED (SIGNALS_OWN | SIGNALS_BIT(SIGKILL) | SIGNALS_BIT(SIGSTOP))
#define HAS_RESTORER 0x04000000
#define SIGNALS_BYTES 8 /* of a set, as the kernel counts */

/* The bytes and the name by which unwinders and gdb know a signal's frame. */
__asm__(".text\n"
        ".balign 16\n"
        "    nop\n"
        ".type __restore_rt, @function\n"
        "__restore_rt:\n"
        "    mov $15, %rax\n"
        "    syscall\n");
extern void signals_restorer(void) __asm__("__restore_rt");

/* The program's actions for the library's signals. */
static struct signals_action kept[_NSIG];

uint64_t signals_block(void)
{
    uint64_t all = ~0ull, before = 0;
    RAW(rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNALS_BYTES);
    return before;
}

void signals_restore(uint64_t before)
{
    RAW(rt_sigprocmask, SIG_SETMASK, &before, 0, SIGNALS_BYTES);
}

void signals_admit(void)
{
    uint64_t own = SIGNALS_OWN;
    RAW(rt_sigprocmask, SIG_UNBLOCK, &own, 0, SIGNALS_BYTES);
}

static uint64_t *mask_of(ucontext_t *context)
{
    return (uint64_t *)(void *)&context->uc_sigmask;
}

static bool is_ignored(int signal, const struct signals_action *action)
{
    static const uint64_t harmless =
        SIGNALS_BIT(SIGCHLD) | SIGNALS_BIT(SIGCONT) | SIGNALS_BIT(SIGURG) | SIGNALS_BIT(SIGWINCH);
    if (action->handler == (void *)SIG_DFL)
        return harmless & SIGNALS_BIT(signal);
    return action->handler == (void *)SIG_IGN;
}

/* A signal that is blocked is pending even if it is ignored, as its action may change until it is delivered. */
static uint64_t pending(bool *restarts)
{
    uint64_t set = 0, found = 0;
    *restarts = true;
    if (!token_context)
        return 0;
    RAW(rt_sigpending, &set, SIGNALS_BYTES);
    set &= ~*mask_of(token_context) & ~SIGNALS_OWN;
    for (int signal = 1; set >> (signal - 1); signal++) {
        struct signals_action action = {0};
        if (!(set & SIGNALS_BIT(signal)))
            continue;
        RAW(rt_sigaction, signal, 0, &action, SIGNALS_BYTES);
        if (is_ignored(signal, &action))
            continue;
        found |= SIGNALS_BIT(signal);
        *restarts &= (action.flags & SA_RESTART) || action.handler == (void *)SIG_DFL;
        if (signal == 64)
            break;
    }
    return found;
}

bool signals_interrupt(void)
{
    bool restarts;
    return pending(&restarts) != 0;
}

long signals_ended(void)
{
    bool restarts;
    pending(&restarts);
    return restarts ? ANSWER_RESTART : -EINTR;
}

void signals_sent(pid_t pid)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (token_run->threads[i].state == SIM_WAITING && (token_run->threads[i].pid == pid || pid <= 0))
            token_run->threads[i].signalled = true;
}

void signals_install(int signal, void (*handler)(int, siginfo_t *, void *))
{
    struct signals_action action = {(void *)handler, SA_SIGINFO | SA_ONSTACK | HAS_RESTORER, (void *)signals_restorer,
                                    ~(signal == SIGSYS ? SIGNALS_BIT(SIGSEGV) : 0)};
    RAW(rt_sigaction, signal, &action, &kept[signal], SIGNALS_BYTES);
}

/* The program's handler makes system calls, which are traps. */
void signals_pass_fault(int signal, siginfo_t *info, void *context)
{
    const struct signals_action *action = &kept[signal];
    struct signals_action standard = {0};
    long self = RAW(gettid);
    bool sent = info->si_code <= 0 || signal != SIGSEGV; /* by a program, or its filter of calls */
    if (sent && action->handler == (void *)SIG_IGN)
        return;
    if (action->handler == (void *)SIG_DFL || action->handler == (void *)SIG_IGN) {
        RAW(rt_sigaction, signal, &standard, 0, SIGNALS_BYTES);
        if (sent)
            RAW(tgkill, token_process, self, signal);
        return; /* else the instruction faults once more */
    }
    uint64_t blocked = (*mask_of(context) | action->mask) & ~NEVER_BLOCKED;
    RAW(rt_sigprocmask, SIG_SETMASK, &blocked, 0, SIGNALS_BYTES);
    if (action->flags & SA_SIGINFO)
        ((void (*)(int, siginfo_t *, void *))action->handler)(signal, info, context);
    else
        ((void (*)(int))action->handler)(signal);
}

/* --- calls */

static bool is_own(long signal)
{
    return signal > 0 && signal < _NSIG && SIGNALS_OWN & SIGNALS_BIT(signal);
}

/* The return from a handler is a system call, too, and must be of this library's text. */
long answer_rt_sigaction(struct caught *call)
{
    const struct signals_action *to = (void *)call->argument[1];
    struct signals_action *old = (void *)call->argument[2], copy = {0};
    if (is_own(call->argument[0])) {
        struct signals_action was = kept[call->argument[0]];
        if (to)
            kept[call->argument[0]] = *to;
        if (old)
            *old = was;
        return 0;
    }
    if (to) {
        copy = *to;
        copy.flags |= HAS_RESTORER;
        copy.restorer = (void *)signals_restorer;
        copy.mask &= ~NEVER_BLOCKED;
    }
    return RAW(rt_sigaction, call->argument[0], to ? &copy : NULL, old, SIGNALS_BYTES);
}

long answer_rt_sigprocmask(struct caught *call)
{
    uint64_t *mask = mask_of(call->context), was = *mask;
    if (call->argument[1]) {
        uint64_t set = *(uint64_t *)call->argument[1];
        long how = call->argument[0];
        if (how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
            return -EINVAL;
        *mask = (how == SIG_BLOCK ? was | set : how == SIG_UNBLOCK ? was & ~set : set) & ~NEVER_BLOCKED;
    }
    if (call->argument[2])
        *(uint64_t *)call->argument[2] = was;
    return 0;
}

static long wait_for_signal(void)
{
    while (token_wait(SIM_SLEEPS, SIM_NEVER, 0) != TOKEN_SIGNAL)
        ;
    return -EINTR;
}

long answer_pause(struct caught *call)
{
    return wait_for_signal();
}

uint64_t signals_begin_mask(struct caught *call, const uint64_t *mask)
{
    uint64_t *now = mask_of(call->context), before = *now;
    if (mask)
        *now = *mask & ~NEVER_BLOCKED;
    return before;
}

/* The kernel runs handlers under a mask of its own call's, which does not wait, as the signal is pending. */
long signals_end_mask(struct caught *call, const uint64_t *mask, uint64_t before, long result)
{
    uint64_t *now = mask_of(call->context), during = *now;
    *now = before;
    if (mask && result == -EINTR)
        RAW(rt_sigsuspend, &during, SIGNALS_BYTES);
    return result;
}

long answer_rt_sigsuspend(struct caught *call)
{
    const uint64_t *mask = (void *)call->argument[0];
    uint64_t before = signals_begin_mask(call, mask);
    return signals_end_mask(call, mask, before, wait_for_signal());
}

long answer_rt_sigtimedwait(struct caught *call)
{
    const struct timespec *span = (void *)call->argument[2];
    uint64_t until = span ? token_later((uint64_t)span->tv_sec * 1000000000ull + (uint64_t)span->tv_nsec) : SIM_NEVER;
    struct timespec nothing = {0, 0};
    for (;;) {
        long got = RAW(rt_sigtimedwait, call->argument[0], call->argument[1], &nothing, SIGNALS_BYTES);
        if (got != -EAGAIN || until <= token_run->now)
            return got;
        if (token_wait(SIM_TRIES, until, 0) == TOKEN_SIGNAL)
            return -EINTR;
    }
}

static long sent(long result, pid_t to)
{
    signals_sent(to);
    return result;
}

/* Processes that are killed have ended before any thread goes on. */
long answer_kill(struct caught *call)
{
    struct group killed = {0};
    pid_t to = (pid_t)call->argument[0];
    if (call->argument[1] == SIGKILL)
        group_find(&killed, to);
    long result = sent(RAW(kill, to, call->argument[1]), to);
    if (!result)
        group_await(&killed);
    return result;
}

long answer_tkill(struct caught *call)
{
    return sent(RAW(tkill, call->argument[0], call->argument[1]), 0);
}

long answer_tgkill(struct caught *call)
{
    return sent(RAW(tgkill, call->argument[0], call->argument[1], call->argument[2]), (pid_t)call->argument[0]);
}

long answer_rt_sigqueueinfo(struct caught *call)
{
    return sent(RAW(rt_sigqueueinfo, call->argument[0], call->argument[1], call->argument[2]),
                (pid_t)call->argument[0]);
}
