/* The token of a simulated run, as a thread sees it: it waits for it, and gives it away. The contract of
 * src/sim/memory.h holds: a thread that has no token touches nothing of the run.
 *
 * All functions are called by the thread that has the token, with all signals blocked, but for those that say
 * otherwise. They make raw system calls only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

#include "sim/memory.h"

#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

extern struct sim_run *token_run; /* NULL: this process is in no run */
extern pid_t token_process;
extern THREAD_LOCAL unsigned token_number;     /* of this thread; SIM_NONE: it is in no run */
extern THREAD_LOCAL ucontext_t *token_context; /* of the call that is caught; NULL: no call is */

/* The number of the first thread until the dynamic linker has set up thread-local variables, when its token_number is
 * lost; then SIM_NONE. All other threads set theirs when they begin. */
extern unsigned token_first;

static inline struct sim_thread *token_thread(void)
{
    return &token_run->threads[token_number];
}

static inline bool token_is_simulated(void)
{
    if (token_number == SIM_NONE)
        token_number = token_first;
    return token_number != SIM_NONE;
}

/* Places in the program that are no system calls. */
enum token_place {
    TOKEN_NO_PLACE = 1000,
#define PLACE(NAME, words) TOKEN_##NAME,
#include "sim/calls.def"
};

enum token_outcome {
    TOKEN_AGAIN,  /* something was done that may end the wait */
    TOKEN_TIME,   /* the deadline has passed */
    TOKEN_SIGNAL, /* a signal is pending that this thread takes */
    TOKEN_WOKEN,
};

/* Waits without the token until this thread is chosen. `key`: of SIM_SLEEPS, else 0. */
enum token_outcome token_wait(enum sim_wait, uint64_t deadline, uint64_t key);

/* A scheduling point: another thread may have the token meanwhile. */
void token_point(void);

/* This thread found nothing and tries again: it runs when another has acted, or a moment later. */
void token_spin(void);

/* A call that began then found nothing. If it has not waited, it is after some in a row the same as token_spin. */
void token_found_nothing(uint64_t since);

/* token_point and token_spin at a place of the program where signals are not blocked. They do nothing without a run. */
void token_point_outside(void);
void token_spin_outside(enum token_place);

/* Something was done that a waiting call may see; or that only memory shows. */
void token_acted(void);
void token_moved(void);

/* Waits until the launcher, or another thread, gives this thread the token. */
void token_await(void);

/* Wakes the launcher, which looks at the run. */
void token_call_launcher(void);

/* The launcher gives the token on after the end of this process, or, with a tid, of this thread. */
void token_leave_at_end(pid_t, pid_t tid);

/* Waits until another process, which was killed, has ended. */
void token_await_end(pid_t);

/* Virtual time after a span; at most a moment before SIM_NEVER. */
uint64_t token_later(uint64_t span);
