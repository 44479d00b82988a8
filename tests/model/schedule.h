/* Modelled processes and their threads: coroutines, where one runs at a time, up to its next step that another could
 * notice. There it asks the search which thread is next, or which process dies, is stopped, or gets its timer early. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "memory.h"

enum {
    SCHEDULE_THREADS = 6,
    SCHEDULE_STATICS = 96, /* bytes of static data of a process */
    SCHEDULE_BUFFER = 12,  /* stores that a processor holds back */
    SCHEDULE_STEPS = 20000,
};

/* The number of faults of each kind that one execution may have. */
struct budget {
    unsigned preemptions; /* a thread that could continue loses the processor */
    unsigned deaths;      /* of processes that may_die */
    unsigned stops;       /* of processes that may_stop; they continue when all else is at rest, */
    unsigned continues;   /* or before that */
    unsigned refusals;    /* of system calls */
    unsigned ticks;       /* of a clock while others still work */
    unsigned rests;       /* how often the clock may advance before everything must be well */
};

struct model_process {
    unsigned number;
    const char *name;
    bool may_die, may_stop;
    bool dead, stopped;
    bool dying, stopping; /* takes effect once no thread of it is within a call of schedule_call_begin */
    unsigned threads;
    uint8_t statics[SCHEDULE_STATICS];
};

struct model_thread;
typedef void model_body(void *argument);

/* --- before the first execution */

struct model_process *schedule_process(const char *name);
void schedule_thread(struct model_process *, const char *name, model_body *, void *argument);
/* Code that runs until the next call, outside of threads, is this process's and asks nothing. NULL: no process's. */
void schedule_as(struct model_process *);
/* Stores are held back by the processor that made them, as on x86-64 (otherwise all is sequentially consistent). */
void schedule_hold_stores(bool);
void schedule_begin(const struct budget *);

struct schedule_checks {
    const char *(*wrong)(void);  /* at rest: NULL, or what should not be so */
    const char *(*always)(void); /* before each step; NULL: nothing to check */
};

/* One execution from the snapshot on. NULL: nothing was wrong; otherwise a sentence, until the next execution. */
const char *schedule_run(const struct schedule_checks *);
void schedule_snapshot(void);

/* --- in threads */

/* NULL in the set-up and in checks. */
struct model_thread *schedule_thread_now(void);
/* NULL: the running code belongs to no process. */
struct model_process *schedule_process_now(void);
struct model_process *schedule_process_at(unsigned number);
unsigned schedule_processes(void);
bool schedule_anyone_may_die(void);
const char *schedule_who(void);
/* The number differs from the number of the execution before. */
uint64_t schedule_execution(void);
nanos schedule_clock(void);

/* The place of a thread, for an observer from outside. */
enum thread_place { THREAD_RUNS, THREAD_WAITS, THREAD_STOPPED, THREAD_ENDED, THREAD_CALLS };
struct thread_seen {
    unsigned process;
    enum thread_place place;
    long call; /* THREAD_CALLS: which */
};
unsigned schedule_threads(void);
struct thread_seen schedule_look(unsigned thread);

/* Called before a step that others may notice. */
void schedule_step(void);
/* The thread waits until ready(argument); false: until the clock says so. Of whatever ready looks at, nothing may still
 * be in the thread's own store buffer. */
bool schedule_wait(bool (*ready)(const void *), const void *argument, nanos deadline);
/* The thread computes in a signal handler until then: seen from outside it runs, and is in no call. */
void schedule_compute(nanos until);
/* One of `options` happens to the thread, 0 unless something is refused (which costs one refusal). */
unsigned schedule_refuse(unsigned options);
/* The thread saw this, and may continue differently for it. */
void schedule_saw(uint64_t value);
/* The thread is within this system call, which a signal does not end, from here to schedule_call_end: a process that is
 * killed or stopped meanwhile is so when the call is through. Its other threads do nothing any more. */
void schedule_call_begin(long call);
void schedule_call_end(void);
/* The knowledge of the thread as a number, for schedule_forget. */
uint64_t schedule_known(void);
/* All that the thread knows beside the memory is this number. */
void schedule_forget(uint64_t label);
/* Ends the execution. */
__attribute__((noreturn, format(printf, 1, 2))) void schedule_violation(const char *format, ...);

/* --- store buffers */

/* True: held back. */
bool schedule_hold(volatile void *address, unsigned size, uint64_t value);
/* The value that the thread itself sees there, if it has written it and the others don't see it yet. */
bool schedule_held(const volatile void *address, unsigned size, uint64_t *value);
/* A fence: all of it becomes visible before the thread continues. */
void schedule_flush(void);
void schedule_flush_all(void);
/* Each processor that holds a store to this region back makes it visible, with all stores before it. */
void schedule_flush_region(const struct model_region *);
