#include "simulate/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/nanos.h"
#include "command.h"
#include "sim/call_numbers.h"
#include "sim/choose.h"
#include "simulate/debug.h"
#include "simulate/space/hosts.h"
#include "simulate/standstill.h"

enum {
    STOP_SIGNAL = 63,   /* lib/sim/signals.h */
    LOOK_MS = 2,        /* between looks at a thread that makes no call */
    END_MS = 10000,     /* for which the end of a process is awaited */
    QUICK_LOOKS = 1000, /* for the end of a thread, before looks with pauses */
    PAUSE_US = 50,
    DEBUG_PATIENCE = 10, /* times as long: each stop at a breakpoint is processor time, too */
};

struct watch {
    struct sim_run *run;
    const struct sim_choice *choice;
    struct streams *streams;
    pid_t programs[SIM_PROGRAMS]; /* 0: it has ended */
    int status;
    nanos began;
    uint64_t seen;       /* decisions and calls when a thread was last seen to go on */
    unsigned watched;    /* the thread whose processor time is counted */
    uint64_t watched_at; /* .seen then */
    nanos processor;     /* its processor time then */
};

static nanos real_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (nanos)now.tv_sec * NANOS_SECOND + (nanos)now.tv_nsec;
}

/* --- ends */

/* Reads a file of /proc; "" where there is none. */
static void read_proc(char *text, size_t size, const char *format, pid_t pid, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, format, pid, tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    if (file >= 0)
        close(file);
}

static bool has_ended(pid_t pid)
{
    char text[512];
    read_proc(text, sizeof text, "/proc/%d/stat", pid, 0);
    const char *state = strrchr(text, ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

static void await_thread(pid_t pid, pid_t tid)
{
    for (unsigned i = 0; !syscall(SYS_tgkill, pid, tid, 0) && !has_ended(pid); i++)
        if (i < QUICK_LOOKS)
            sched_yield();
        else
            usleep(PAUSE_US);
}

static void await_process(pid_t pid)
{
    struct pollfd process = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
    if (process.fd < 0)
        return;
    while (!poll(&process, 1, END_MS) && debug_lives())
        ;
    while (debug_lives() && debug_has(pid))
        usleep(PAUSE_US);
    close(process.fd);
}

/* This process also is the parent of all whose own has ended. */
static bool is_program(struct watch *watch, pid_t pid)
{
    for (unsigned i = 0; i < SIM_PROGRAMS; i++)
        if (watch->programs[i] == pid) {
            watch->programs[i] = 0;
            return true;
        }
    return false;
}

static void reap(struct watch *watch)
{
    int how;
    for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;) {
        int status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
        debug_reaped(pid);
        if (!is_program(watch, pid))
            continue;
        if (WIFSIGNALED(how))
            complain("sim: Process %d was ended by signal %d.", pid, WTERMSIG(how));
        watch->status = status > watch->status ? status : watch->status;
    }
}

static bool some_thread(const struct sim_run *run)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (run->threads[i].state != SIM_FREE && !hosts_carries(run, &run->threads[i]))
            return true;
    return false;
}

static void give_on(struct sim_run *run)
{
    unsigned next = sim_next(run);
    if (next == SIM_NONE)
        return;
    run->current = next;
    run->threads[next].state = SIM_RUNNING;
    run->threads[next].deadline = SIM_NEVER;
    atomic_store(&run->threads[next].order, SIM_RUN);
    syscall(SYS_futex, &run->threads[next].order, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void serve_end(struct watch *watch)
{
    struct sim_run *run = watch->run;
    pid_t pid = run->ended.pid, tid = run->ended.tid;
    run->ended.pid = run->ended.tid = 0;
    if (tid)
        await_thread(pid, tid);
    else
        await_process(pid);
    sim_remove(run, pid, tid);
    reap(watch);
    if (some_thread(run))
        give_on(run);
}

/* --- loops */

static nanos processor_time(const struct sim_thread *thread)
{
    char text[64];
    read_proc(text, sizeof text, "/proc/%d/task/%d/schedstat", thread->pid, thread->tid);
    return (nanos)strtoll(text, NULL, 10);
}

/* By the thread's own processor time, which is the same on a busy machine. */
static void stop_loop(struct watch *watch)
{
    struct sim_run *run = watch->run;
    const struct sim_thread *thread = &run->threads[run->current];
    nanos spent = processor_time(thread), slowness = debug_lives() ? DEBUG_PATIENCE : 1;
    if (watch->watched != run->current || watch->watched_at != watch->seen) {
        watch->watched = run->current;
        watch->watched_at = watch->seen;
        watch->processor = spent;
    } else if (spent - watch->processor > watch->choice->patience * NANOS_MILLISECOND * slowness) {
        syscall(SYS_tgkill, thread->pid, thread->tid, STOP_SIGNAL);
        watch->processor = spent;
    }
}

/* The thread that has the token made no call for a while. */
static void look_at_holder(struct watch *watch)
{
    struct sim_run *run = watch->run;
    if (run->current == SIM_NONE || run->threads[run->current].state != SIM_RUNNING)
        return;
    const struct sim_thread *thread = &run->threads[run->current];
    if (has_ended(thread->pid))
        run->ended.pid = thread->pid;
    else if (thread->tid)
        stop_loop(watch);
}

static void look(struct watch *watch)
{
    struct sim_run *run = watch->run;
    uint64_t done = run->counts.decisions + run->counts.calls;
    if (done != watch->seen)
        watch->seen = done;
    else if (!run->over && !run->ended.pid)
        look_at_holder(watch);
}

/* --- the run */

static volatile sig_atomic_t asked; /* the signal that asks this command to end */

static void note_signal(int signal)
{
    asked = signal;
}

/* The first process of a namespace ignores signals that it does not handle. */
static void take_signals(void)
{
    static const int ending[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        sigaction(ending[i], &(struct sigaction){.sa_handler = note_signal}, NULL);
}

static bool is_late(struct watch *watch)
{
    if (debug_lives())
        watch->began = real_time();
    return real_time() - watch->began > watch->choice->limit * NANOS_SECOND;
}

static void wait_for_call(struct sim_run *run, uint32_t seen)
{
    struct timespec span = {0, LOOK_MS * 1000000};
    syscall(SYS_futex, &run->launcher, FUTEX_WAIT, seen, &span, NULL, 0);
}

static void end_processes(const struct sim_run *run)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (run->threads[i].state != SIM_FREE && run->threads[i].pid > 1)
            kill(run->threads[i].pid, SIGKILL);
}

static struct sim_end end_of(const struct watch *watch)
{
    const struct sim_run *run = watch->run;
    uint64_t output = watch->streams->hash[0] ^ watch->streams->hash[1] << 1;
    return (struct sim_end){SIM_ENDED, watch->status, run->hash, run->now, run->counts.decisions, output};
}

/* The command was asked to end. */
static struct sim_end give_up(struct watch *watch)
{
    struct sim_end end = end_of(watch);
    streams_pass_on(watch->streams);
    complain("sim: The run was ended by signal %d.", (int)asked);
    end.ending = SIM_LATE;
    end.status = 128 + (int)asked;
    end_processes(watch->run);
    return end;
}

/* The numbers are those before the report, for which threads go on without the token. */
static struct sim_end stop(struct watch *watch)
{
    static const enum sim_ending endings[] = {
        [SIM_EXIT_DEADLOCK] = SIM_DEADLOCK, [SIM_EXIT_LIVELOCK] = SIM_LIVELOCK, [SIM_EXIT_LIMIT] = SIM_LATE};
    streams_pass_on(watch->streams);
    struct sim_end end = end_of(watch);
    end.status = watch->run->over ? standstill_report(watch->run, watch->choice, watch->streams)
                                  : standstill_report_limit(watch->run, watch->choice->limit);
    end.ending = endings[end.status];
    debug_show(watch->run);
    end_processes(watch->run);
    return end;
}

struct sim_end watch_run(struct sim_run *run, const struct sim_choice *choice, struct streams *streams)
{
    struct watch watch = {.run = run, .choice = choice, .streams = streams, .began = real_time(), .watched = SIM_NONE};
    for (unsigned i = 0; i < choice->count; i++)
        watch.programs[i] = run->threads[i + (run->carrier != 0)].pid;
    take_signals();
    give_on(run);
    while (some_thread(run)) {
        uint32_t seen = atomic_load(&run->launcher);
        if (asked)
            return give_up(&watch);
        if (run->over || is_late(&watch))
            return stop(&watch);
        if (run->ended.pid) {
            serve_end(&watch);
            continue;
        }
        debug_serve(run);
        wait_for_call(run, seen);
        streams_pass_on(streams);
        look(&watch);
    }
    reap(&watch);
    streams_pass_on(streams);
    debug_await(run);
    return end_of(&watch);
}
