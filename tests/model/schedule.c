#include "schedule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"
#include "search.h"
#include "statics.h"
#include "switch.h"
#include "trace.h"

enum { STACK = 256 << 10, STACK_USED = 24 << 10, OPTIONS = 32 };

struct held {
    volatile void *address;
    uint64_t value;
    unsigned size;
};

struct model_thread {
    switch_place place;
    struct model_process *process;
    const char *name;
    model_body *body;
    void *argument, *stack;
    bool finished;
    bool computes;               /* see schedule_compute */
    bool (*ready)(const void *); /* NULL: waits for nothing */
    const void *ready_argument;
    nanos deadline;
    long call; /* 0: in no call that continues whatever happens to the process */
    uint64_t history;
    int error; /* errno */
    unsigned held_count;
    struct held held[SCHEDULE_BUFFER];
};

enum option_kind { OPTION_RUN, OPTION_DRAIN, OPTION_KILL, OPTION_STOP, OPTION_CONTINUE, OPTION_TICK, OPTION_REST };

struct option {
    enum option_kind kind;
    unsigned which;
};

static struct model_process processes[MEMORY_PROCESSES], processes_then[MEMORY_PROCESSES];
static struct model_thread threads[SCHEDULE_THREADS];
static unsigned process_count, thread_count;
static struct model_thread *current;
static struct model_process *running; /* whose static data is in place */
static bool checking, holding;
static switch_place outside;
static struct budget budget, left;
static nanos now;
static unsigned steps;
static uint64_t execution;
static const struct schedule_checks *checks;
static char fault[512];
static bool failed;

/* --- processes and threads */

static void become(struct model_process *process)
{
    if (process == running)
        return;
    if (running)
        statics_save(running->statics);
    if (process)
        statics_load(process->statics);
    running = process;
}

struct model_process *schedule_process(const char *name)
{
    struct model_process *process = &processes[process_count];
    *process = (struct model_process){.number = process_count++, .name = name};
    return process;
}

void schedule_thread(struct model_process *process, const char *name, model_body *body, void *argument)
{
    struct model_thread *thread = &threads[thread_count++];
    void *stack = thread->stack;
    if (!stack)
        stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *thread =
        (struct model_thread){.process = process, .name = name, .body = body, .argument = argument, .stack = stack};
    process->threads++;
}

void schedule_as(struct model_process *process)
{
    become(process);
}

void schedule_hold_stores(bool hold)
{
    holding = hold;
}

void schedule_begin(const struct budget *given)
{
    budget = *given;
    for (unsigned i = 0; i < SCHEDULE_THREADS; i++)
        threads[i] = (struct model_thread){.stack = threads[i].stack};
    process_count = thread_count = 0;
    running = NULL;
    current = NULL;
    holding = false;
    now = NANOS_SECOND;
}

void schedule_snapshot(void)
{
    become(NULL);
    memcpy(processes_then, processes, sizeof processes);
}

struct model_thread *schedule_thread_now(void)
{
    return checking ? NULL : current;
}

struct model_process *schedule_process_now(void)
{
    return running;
}

struct model_process *schedule_process_at(unsigned number)
{
    return &processes[number];
}

unsigned schedule_processes(void)
{
    return process_count;
}

bool schedule_anyone_may_die(void)
{
    bool any = false;
    for (unsigned i = 0; i < process_count; i++)
        any |= processes[i].may_die;
    return any;
}

unsigned schedule_threads(void)
{
    return thread_count;
}

struct thread_seen schedule_look(unsigned i)
{
    const struct model_thread *thread = &threads[i];
    const struct model_process *process =
        thread->process; /* of a process that is dying or stopping: the threads that are not in a call */
    enum thread_place place = thread->call                            ? THREAD_CALLS
                              : thread->finished || process->dying    ? THREAD_ENDED
                              : process->stopped || process->stopping ? THREAD_STOPPED
                              : thread->ready && !thread->computes    ? THREAD_WAITS
                                                                      : THREAD_RUNS;
    return (struct thread_seen){thread->process->number, place, thread->call};
}

const char *schedule_who(void)
{
    return current ? current->name : "set-up";
}

uint64_t schedule_execution(void)
{
    return execution;
}

nanos schedule_clock(void)
{
    return now;
}

/* --- an execution's end */

static void leave(void)
{
    switch_place nobody;
    current = NULL;
    SWITCH(nobody, outside);
    abort();
}

void schedule_violation(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault, sizeof fault, format, arguments);
    va_end(arguments);
    if (!current) {
        fprintf(stderr, "model: in the set-up: %s\n", fault);
        exit(2);
    }
    failed = true;
    trace_line(NULL, "=> %s", fault);
    leave();
    abort();
}

static const char *check(const char *(*what)(void))
{
    struct model_process *before = running;
    become(NULL); /* without a process no memory is out of bounds */
    checking = true;
    const char *answer = what();
    checking = false;
    become(before);
    return answer;
}

/* --- the state */

static uint64_t thread_hash(const struct model_thread *thread)
{
    uint64_t hash =
        memory_mix(thread->history + thread->finished * 3u + (thread->ready ? 5 : 0) + thread->computes * 7u);
    hash = memory_mix(hash ^ (thread->ready ? thread->deadline : 0));
    for (unsigned i = 0; i < thread->held_count; i++)
        hash = memory_mix(hash ^ (uintptr_t)thread->held[i].address ^ thread->held[i].value << 7);
    return hash;
}

static uint64_t process_hash(const struct model_process *process)
{
    uint64_t hash = process->dead * 2u + process->stopped + process->dying * 8u + process->stopping * 4u;
    for (unsigned i = 0; i < sizeof process->statics / 8; i++)
        hash = hash * 31 + memory_load(process->statics + 8 * i, 8);
    return memory_mix(hash);
}

/* `refusing`: a thread in the middle of a step, + 1; 0: no thread. */
static uint64_t state_key(unsigned refusing)
{
    uint64_t key = memory_hash() ^ host_hash() ^ memory_mix(refusing);
    if (running)
        statics_save(running->statics);
    for (unsigned i = 0; i < thread_count; i++)
        key = memory_mix(key ^ thread_hash(&threads[i]));
    for (unsigned i = 0; i < process_count; i++)
        key = memory_mix(key ^ process_hash(&processes[i]));
    key = memory_mix(key ^ now);
    key = memory_mix(key ^ (left.continues << 30 | left.deaths << 24 | left.stops << 18 | left.refusals << 12 |
                            left.ticks << 6 | left.rests));
    bool bounded = budget.preemptions != UINT32_MAX;
    return bounded && current ? memory_mix(key + (uint64_t)(current - threads)) : key;
}

/* --- the choice of the next thread */

static bool is_present(const struct model_process *process)
{
    return !process->dead && !process->stopped;
}

static bool is_enabled(const struct model_thread *thread)
{
    bool ending = thread->process->dying || thread->process->stopping;
    if (thread->finished || !is_present(thread->process) || (ending && !thread->call))
        return false;
    return !thread->ready || thread->deadline <= now || thread->ready(thread->ready_argument);
}

static nanos earliest_deadline(void)
{
    nanos earliest = host_next_timer();
    for (unsigned i = 0; i < thread_count; i++)
        if (!threads[i].finished && threads[i].ready && is_present(threads[i].process) &&
            threads[i].deadline < earliest)
            earliest = threads[i].deadline;
    return earliest;
}

static unsigned list_threads(struct option *options)
{
    unsigned count = 0;
    bool stays = current && is_enabled(current);
    if (stays)
        options[count++] = (struct option){OPTION_RUN, (unsigned)(current - threads)};
    for (unsigned i = 0; i < thread_count && (!stays || left.preemptions); i++)
        if (&threads[i] != current && is_enabled(&threads[i]))
            options[count++] = (struct option){OPTION_RUN, i};
    for (unsigned i = 0; i < thread_count; i++)
        if (threads[i].held_count)
            options[count++] = (struct option){OPTION_DRAIN, i};
    return count;
}

static bool has_enabled(const struct model_process *process)
{
    bool any = false;
    for (unsigned i = 0; i < thread_count; i++)
        any |= threads[i].process == process && is_enabled(&threads[i]);
    return any;
}

static unsigned list_misfortunes(struct option *options, unsigned count, bool at_rest)
{
    for (unsigned i = 0; i < process_count; i++) {
        bool ending = processes[i].dying || processes[i].stopping;
        if (left.deaths && processes[i].may_die && !processes[i].dead && !processes[i].dying)
            options[count++] = (struct option){OPTION_KILL, i};
        if (left.stops && processes[i].may_stop && is_present(&processes[i]) && !ending && has_enabled(&processes[i]))
            options[count++] = (struct option){OPTION_STOP, i};
        if (left.continues && processes[i].stopped && !processes[i].dead && !at_rest)
            options[count++] = (struct option){OPTION_CONTINUE, i};
    }
    if (left.ticks && !at_rest && earliest_deadline() != NANOS_NEVER && earliest_deadline() > now)
        options[count++] = (struct option){OPTION_TICK, 0};
    return count;
}

static void drain(struct model_thread *thread)
{
    struct held first = thread->held[0];
    memmove(thread->held, thread->held + 1, --thread->held_count * sizeof first);
    memory_store(first.address, first.size, first.value);
    trace_line(NULL, "(%s's store of 0x%llx to %s becomes visible)", thread->name, (unsigned long long)first.value,
               trace_place(first.address));
}

static void flush_process(const struct model_process *process)
{
    for (unsigned i = 0; i < thread_count; i++)
        while (threads[i].process == process && threads[i].held_count)
            drain(&threads[i]);
}

static bool is_within_call(const struct model_process *process)
{
    bool any = false;
    for (unsigned i = 0; i < thread_count; i++)
        any |= threads[i].process == process && threads[i].call && !threads[i].finished;
    return any;
}

/* The pending death or stop of the process happens when no call prevents it. */
static void settle(struct model_process *process)
{
    if (is_within_call(process))
        return;
    if (process->dying) {
        trace_line(NULL, "-- %s is dead", process->name);
        process->dead = true;
        process->dying = process->stopping = false;
        host_process_ends(process->number);
    } else if (process->stopping) {
        trace_line(NULL, "-- %s stands still", process->name);
        process->stopped = true;
        process->stopping = false;
    }
}

static void kill_process(struct model_process *process)
{
    trace_line(NULL, "-- %s is killed", process->name);
    flush_process(process);
    process->dying = true;
    left.deaths--;
    settle(process);
}

static void stop_process(struct model_process *process)
{
    trace_line(NULL, "-- %s is stopped", process->name);
    flush_process(process);
    process->stopping = true;
    left.stops--;
    settle(process);
}

static void tick(void)
{
    now = earliest_deadline();
    trace_line(NULL, "-- the clock goes on to %llu us", (unsigned long long)((now - NANOS_SECOND) / NANOS_MICROSECOND));
}

static void continue_process(struct model_process *process)
{
    trace_line(NULL, "-- %s is continued", process->name);
    process->stopped = false;
}

static bool continue_stopped(void)
{
    bool any = false;
    for (unsigned i = 0; i < process_count; i++)
        if (processes[i].stopped && !processes[i].dead) {
            continue_process(&processes[i]);
            any = true;
        }
    return any;
}

/* No thread can continue. While something is wrong, deadlines may mend it; then a stopped process continues. */
static void rest(void)
{
    trace_line(NULL, "-- all are at rest");
    const char *wrong = check(checks->wrong);
    if (wrong && left.rests && earliest_deadline() != NANOS_NEVER) {
        left.rests--;
        tick();
        return;
    }
    if (wrong)
        schedule_violation("%s", wrong);
    left.rests = budget.rests;
    if (!continue_stopped())
        leave();
}

static void happen(struct option option)
{
    switch (option.kind) {
    case OPTION_RUN:
        break;
    case OPTION_DRAIN:
        drain(&threads[option.which]);
        break;
    case OPTION_KILL:
        kill_process(&processes[option.which]);
        break;
    case OPTION_STOP:
        stop_process(&processes[option.which]);
        break;
    case OPTION_CONTINUE:
        left.continues--;
        continue_process(&processes[option.which]);
        break;
    case OPTION_TICK:
        left.ticks--;
        tick();
        break;
    case OPTION_REST:
        rest();
        break;
    }
}

static struct option choose(void)
{
    struct option options[OPTIONS];
    unsigned count = list_threads(options);
    bool at_rest = !count;
    if (at_rest)
        options[count++] = (struct option){OPTION_REST, 0};
    count = list_misfortunes(options, count, at_rest);
    int chosen = count == 1 ? 0 : search_choose(count, state_key, 0, left.preemptions);
    if (chosen < 0)
        leave();
    return options[chosen];
}

static void entry(void)
{
    current->body(current->argument);
    schedule_flush();
    current->finished = true;
    schedule_step();
    abort();
}

static void switch_to(struct model_thread *thread)
{
    struct model_thread *before = current;
    if (thread == before)
        return;
    if (before && left.preemptions && left.preemptions != UINT32_MAX && is_enabled(before))
        left.preemptions--;
    if (before)
        before->error = errno;
    become(thread->process);
    current = thread;
    SWITCH(before->place, thread->place);
    errno = current->error;
}

void schedule_step(void)
{
    if (!schedule_thread_now())
        return;
    if (++steps > SCHEDULE_STEPS)
        schedule_violation("%d steps and no end: somebody works for nothing", SCHEDULE_STEPS);
    const char *wrong = checks->always ? check(checks->always) : NULL;
    if (wrong)
        schedule_violation("%s", wrong);
    for (;;) {
        struct option option = choose();
        happen(option);
        if (option.kind == OPTION_RUN) {
            switch_to(&threads[option.which]);
            break;
        }
    }
    schedule_saw(0); /* being here is something else than being at the step before */
}

static switch_place nowhere;

/* Structs are copied with the padding that they had on the stack, which must not be of an execution before. */
static void start_threads(void)
{
    for (unsigned i = 0; i < thread_count; i++) {
        struct model_thread *thread = &threads[i];
        memset((char *)thread->stack + STACK - STACK_USED, 0, STACK_USED);
        switch_make(&thread->place, thread->stack, STACK, entry);
        thread->finished = false;
        thread->ready = NULL;
        thread->computes = false;
        thread->call = 0;
        thread->history = i;
        thread->held_count = 0;
    }
}

/* The first question is asked for no thread: it only begins. */
static void begin(void)
{
    struct option option = choose();
    while (option.kind != OPTION_RUN) {
        happen(option);
        option = choose();
    }
    current = &threads[option.which];
    become(current->process);
    SWITCH(nowhere, current->place);
    abort();
}

const char *schedule_run(const struct schedule_checks *given)
{
    static char stack[STACK] __attribute__((aligned(16)));
    switch_place beginning;
    memory_restore();
    host_restore();
    memcpy(processes, processes_then, sizeof processes);
    running = NULL;
    checks = given;
    left = budget;
    failed = checking = false;
    now = NANOS_SECOND;
    steps = 0;
    execution++;
    start_threads();
    switch_make(&beginning, stack, STACK, begin);
    SWITCH(outside, beginning);
    current = NULL;
    become(NULL);
    return failed ? fault : NULL;
}

/* --- what threads ask for */

bool schedule_wait(bool (*ready)(const void *), const void *argument, nanos deadline)
{
    struct model_thread *thread = schedule_thread_now();
    if (!thread)
        return ready(argument);
    schedule_flush();
    thread->ready = ready;
    thread->ready_argument = argument;
    thread->deadline = deadline;
    schedule_step();
    thread->ready = NULL;
    bool is_ready = ready(argument);
    schedule_saw(is_ready);
    return is_ready;
}

unsigned schedule_refuse(unsigned options)
{
    if (!schedule_thread_now() || !left.refusals || options < 2)
        return 0;
    int chosen = search_choose(options, state_key, (unsigned)(current - threads) + 1, left.preemptions);
    if (chosen < 0)
        leave();
    left.refusals -= chosen > 0;
    schedule_saw((unsigned)chosen);
    return (unsigned)chosen;
}

static bool never(const void *argument)
{
    return false;
}

void schedule_compute(nanos until)
{
    struct model_thread *thread = schedule_thread_now();
    if (!thread)
        return;
    thread->computes = true;
    schedule_wait(never, NULL, until);
    thread->computes = false;
}

void schedule_call_begin(long call)
{
    struct model_thread *thread = schedule_thread_now();
    if (thread)
        thread->call = call;
}

void schedule_call_end(void)
{
    struct model_thread *thread = schedule_thread_now();
    if (!thread)
        return;
    thread->call = 0;
    settle(thread->process);
    if (!is_present(thread->process))
        schedule_step();
}

void schedule_saw(uint64_t value)
{
    struct model_thread *thread = schedule_thread_now();
    if (thread)
        thread->history = memory_mix(thread->history * 0x9e3779b97f4a7c15u + value + 1);
}

void schedule_forget(uint64_t label)
{
    struct model_thread *thread = schedule_thread_now();
    if (thread)
        thread->history = memory_mix(label * SCHEDULE_THREADS + (uint64_t)(thread - threads) + 1);
}

uint64_t schedule_known(void)
{
    const struct model_thread *thread = schedule_thread_now();
    return thread ? thread->history : 0;
}

bool schedule_hold(volatile void *address, unsigned size, uint64_t value)
{
    struct model_thread *thread = schedule_thread_now();
    if (!thread || !holding)
        return false;
    if (thread->held_count == SCHEDULE_BUFFER)
        drain(thread);
    thread->held[thread->held_count++] = (struct held){address, value, size};
    return true;
}

bool schedule_held(const volatile void *address, unsigned size, uint64_t *value)
{
    struct model_thread *thread = schedule_thread_now();
    for (unsigned i = thread ? thread->held_count : 0; i--;)
        if (thread->held[i].address == address) {
            *value = thread->held[i].value;
            return true;
        }
    return false;
}

void schedule_flush(void)
{
    struct model_thread *thread = schedule_thread_now();
    if (!thread || !thread->held_count)
        return;
    schedule_step(); /* the others may see one of the stores and not yet the next */
    while (thread->held_count)
        drain(thread);
}

static bool holds_store_to(const struct model_thread *thread, const struct model_region *region)
{
    bool any = false;
    for (unsigned i = 0; i < thread->held_count; i++)
        any |= memory_region(thread->held[i].address) == region;
    return any;
}

void schedule_flush_region(const struct model_region *region)
{
    for (unsigned i = 0; i < thread_count; i++)
        while (holds_store_to(&threads[i], region))
            drain(&threads[i]);
}

void schedule_flush_all(void)
{
    for (unsigned i = 0; i < thread_count; i++)
        while (threads[i].held_count)
            drain(&threads[i]);
}
