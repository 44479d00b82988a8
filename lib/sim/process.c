/* Processes and threads that begin and end. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "answer.h"
#include "counter.h"
#include "debug.h"
#include "file.h"
#include "raw.h"
#include "signals.h"
#include "sim/choose.h"
#include "token.h"

/* --- beginning */

/* The child runs when it is chosen, at the stack that the caller gave. */
static void begin_child(struct caught *call, unsigned number, pid_t parent)
{
    token_number = number;
    file_drop_parents(parent);
    token_process = (pid_t)RAW(getpid);
    token_thread()->pid = token_thread()->tid = token_process;
    if (call->argument[1])
        call->context->uc_mcontext.gregs[REG_RSP] = call->argument[1];
    answer_begin();
    token_await();
    debug_begin(true);
}

/* A child that shares memory with a parent that waits (vfork, posix_spawn) becomes a plain child: it could not give the
 * token away otherwise. A thread begins by pthread_create, which is caught by its name. */
static long begin_process(struct caught *call)
{
    const long *argument = call->argument;
    pid_t parent = token_process;
    if (argument[0] & CLONE_THREAD)
        return -ENOSYS;
    unsigned number = sim_add(token_run, 0, 0);
    if (number == SIM_NONE)
        return -EAGAIN;
    token_run->threads[number].state = SIM_FREE;
    long child = RAW(clone, argument[0] & ~(CLONE_VM | CLONE_VFORK), 0, argument[2], argument[3], argument[4]);
    if (!child) {
        begin_child(call, number, parent);
        return 0;
    }
    if (child > 0) {
        token_run->threads[number].pid = (pid_t)child;
        token_run->threads[number].state = SIM_READY;
    }
    return child;
}

long answer_clone(struct caught *call)
{
    return begin_process(call);
}

/* The C library takes clone then. */
long answer_clone3(struct caught *call)
{
    return -ENOSYS;
}

static long fork_plainly(struct caught *call)
{
    memset(call->argument, 0, sizeof call->argument);
    call->argument[0] = SIGCHLD;
    return begin_process(call);
}

long answer_fork(struct caught *call)
{
    return fork_plainly(call);
}

long answer_vfork(struct caught *call)
{
    return fork_plainly(call);
}

/* The other threads end. The dynamic linker of the new program reads the counter, and this thread keeps the token.
 * Until the new program begins the launcher must not stop it (tid 0): it has no handler yet. */
static long become(const struct caught *call)
{
    const long *argument = call->argument;
    struct sim_thread *thread = token_thread();
    pid_t before = thread->tid;
    thread->tid = 0;
    counter_catch(false);
    long result =
        RAW_CALL(call->number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5], 0);
    counter_catch(true);
    thread->tid = before;
    return result;
}

long answer_execve(struct caught *call)
{
    return become(call);
}

long answer_execveat(struct caught *call)
{
    return become(call);
}

/* --- ending: the kernel closes and releases what the thread had before another runs */

long answer_exit(struct caught *call)
{
    token_leave_at_end(token_process, (pid_t)RAW(gettid));
    return RAW(exit, call->argument[0]);
}

long answer_exit_group(struct caught *call)
{
    token_leave_at_end(token_process, 0);
    return RAW(exit_group, call->argument[0]);
}

/* --- waiting */

long answer_wait4(struct caught *call)
{
    const long *argument = call->argument;
    for (;;) {
        long result = RAW(wait4, argument[0], argument[1], argument[2] | WNOHANG, argument[3]);
        if (result || argument[2] & WNOHANG)
            return result;
        if (token_wait(SIM_TRIES, SIM_NEVER, 0) == TOKEN_SIGNAL) {
            result = RAW(wait4, argument[0], argument[1], argument[2] | WNOHANG, argument[3]);
            return result ? result : signals_ended();
        }
    }
}

static long look_for_child(const struct caught *call, siginfo_t *found)
{
    memset(found, 0, sizeof *found);
    long result =
        RAW(waitid, call->argument[0], call->argument[1], found, call->argument[3] | WNOHANG, call->argument[4]);
    return result ? result : found->si_pid;
}

long answer_waitid(struct caught *call)
{
    siginfo_t *info = (void *)call->argument[2], found;
    long result;
    while (!(result = look_for_child(call, &found)) && !(call->argument[3] & WNOHANG))
        if (token_wait(SIM_TRIES, SIM_NEVER, 0) == TOKEN_SIGNAL)
            return signals_ended();
    if (result < 0)
        return result;
    if (info)
        *info = found;
    return 0;
}

/* --- names and processors */

long answer_prctl(struct caught *call)
{
    const long *argument = call->argument;
    if (argument[0] == PR_SET_TSC || argument[0] == PR_SET_SYSCALL_USER_DISPATCH)
        return -EINVAL;
    if (argument[0] == PR_SET_NAME)
        token_thread()->name[0] = '\0'; /* it is asked for when it is wanted */
    return RAW(prctl, argument[0], argument[1], argument[2], argument[3], argument[4]);
}

/* All run on one. */
long answer_sched_setaffinity(struct caught *call)
{
    return 0;
}
