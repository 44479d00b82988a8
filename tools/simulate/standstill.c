#include "simulate/standstill.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "place.h"
#include "sim/call_numbers.h"
#include "simulate/space/hosts.h"

enum { STACK_MS = 500, EXPLANATION_S = 20, NO_PLACE = 1000 };

/* --- what threads wait in */

static const struct {
    long number;
    const char *name;
} calls[] = {
#ifdef __x86_64__
#define ANSWERED(name, traits) {SYS_##name, #name},
#define PASSED(name, traits) {SYS_##name, #name},
#define UNANSWERED(name) {SYS_##name, #name},
#endif
#include "sim/calls.def"
    {-1, "a system call"}};

static const char *const places[] = {
    "no place",
#define PLACE(NAME, words) words,
#include "sim/calls.def"
};

static bool is_place(unsigned call)
{
    return call >= NO_PLACE && (size_t)(call - NO_PLACE) < sizeof places / sizeof *places;
}

const char *standstill_name(unsigned call)
{
    unsigned i = 0;
    if (is_place(call))
        return places[call - NO_PLACE];
    while (calls[i].number >= 0 && calls[i].number != (long)call)
        i++;
    return calls[i].name;
}

static void describe(const struct sim_thread *thread, char *to, size_t size)
{
    if (is_place(thread->call))
        snprintf(to, size, "%s", standstill_name(thread->call));
    else
        snprintf(to, size, "%s(0x%" PRIx64 ", 0x%" PRIx64 ")", standstill_name(thread->call), thread->arguments[0],
                 thread->arguments[1]);
}

static void list_threads(const struct sim_run *run)
{
    char where[96];
    for (unsigned i = 0; i < SIM_THREADS; i++) {
        const struct sim_thread *thread = &run->threads[i];
        if (thread->state == SIM_FREE || hosts_carries(run, thread))
            continue;
        describe(thread, where, sizeof where);
        fprintf(stderr, "  thread %u, %s, process %d, thread id %d: %s %s\n", thread->serial,
                *thread->name ? thread->name : "no name", thread->pid, thread->tid,
                thread->state == SIM_WAITING ? "waits in" : "was last in", where);
    }
}

/* --- stacks */

/* The helper of softverbs, which waits wherever there is no work. */
static bool is_waiting_helper(const struct sim_thread *thread)
{
    return thread->state == SIM_WAITING && !strcmp(thread->name, "softverbs");
}

/* A thread of the programs, and not of softverbs, whose cleanup processes look from time to time. */
static bool is_of_interest(const struct sim_run *run, const struct sim_thread *thread)
{
    return thread->state == SIM_WAITING && !is_waiting_helper(thread) && !hosts_carries(run, thread) &&
           strcmp(thread->name, "softverbs-clean") != 0;
}

static void show_stack(struct sim_run *run, struct sim_thread *thread)
{
    struct timespec span = {0, STACK_MS * 1000000L};
    uint32_t seen = atomic_load(&run->launcher);
    atomic_store(&thread->order, SIM_SHOW_STACK);
    syscall(SYS_futex, &thread->order, FUTEX_WAKE, 1, NULL, NULL, 0);
    syscall(SYS_futex, &run->launcher, FUTEX_WAIT, seen, &span, NULL, 0);
}

static void show_stacks(struct sim_run *run, struct streams *streams)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (is_of_interest(run, &run->threads[i]))
            show_stack(run, &run->threads[i]);
    streams_pass_on(streams);
}

/* --- queue pairs */

/* The helper of softverbs answers the tools, also while the program's own threads wait. */
static void wake_helpers(struct sim_run *run)
{
    run->thawed = true;
    for (unsigned i = 0; i < SIM_THREADS; i++) {
        struct sim_thread *thread = &run->threads[i];
        if (!is_waiting_helper(thread))
            continue;
        atomic_store(&thread->order, SIM_RUN);
        syscall(SYS_futex, &thread->order, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static bool has_helper(const struct sim_run *run)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (is_waiting_helper(&run->threads[i]))
            return true;
    return false;
}

/* Writes what this command says, called anew with these words, on standard error. */
static void ask(char *const *words)
{
    int status;
    pid_t child = fork();
    if (!child) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        alarm(EXPLANATION_S);
        place_execute(words);
        _exit(EXIT_SELF);
    }
    if (child > 0)
        waitpid(child, &status, 0);
}

/* The answer of softverbs why, on each host. */
static void explain(struct sim_run *run, const struct network *network)
{
    if (!has_helper(run))
        return;
    wake_helpers(run);
    if (!network)
        ask((char *[]){"softverbs", "why", NULL});
    for (unsigned i = 0; network && i < network->plan->count; i++) {
        char *host = (char *)network->plan->hosts[i];
        fprintf(stderr, "On host %s:\n", host);
        ask((char *[]){"softverbs", "on", host, "--", "softverbs", "why", NULL});
    }
}

static bool some_thread_looks(const struct sim_run *run)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (is_of_interest(run, &run->threads[i]) && run->threads[i].deadline != SIM_NEVER)
            return true;
    return false;
}

int standstill_report(struct sim_run *run, const struct sim_choice *choice, struct streams *streams)
{
    bool livelock = some_thread_looks(run);
    double seconds = (double)run->now * 1e-9;
    if (livelock)
        complain(
            "sim: Livelock after %.6f virtual seconds with seed %" PRIu64
            ": for 300 of them no thread has done anything that another can see; each waits, or looks again and again.",
            seconds, run->seed);
    else
        complain("sim: Deadlock after %.6f virtual seconds with seed %" PRIu64
                 ": no thread of the programs can run, and nothing that they wait for is due.",
                 seconds, run->seed);
    list_threads(run);
    show_stacks(run, streams);
    explain(run, choice->network);
    return livelock ? SIM_EXIT_LIVELOCK : SIM_EXIT_DEADLOCK;
}

int standstill_report_limit(const struct sim_run *run, unsigned seconds)
{
    complain("sim: The run was stopped after %u real and %.6f virtual seconds with seed %" PRIu64
             "; --limit sets another "
             "number.",
             seconds, (double)run->now * 1e-9, run->seed);
    list_threads(run);
    return SIM_EXIT_LIMIT;
}

/* --- calls that are not answered */

void standstill_name_unanswered(const struct sim_run *run)
{
    static const char *const names[] = {
#define UNANSWERED(name) #name,
#include "sim/calls.def"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (run->unanswered[i])
            complain("sim: The programs called %s %u times, which this command does not answer: such a call may wait "
                     "while no other thread can run, and the run need not repeat.",
                     names[i], run->unanswered[i]);
}
