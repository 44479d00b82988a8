/* Signals of a simulated program. The library's handler of SIGSYS runs with all signals blocked, so a signal of the
 * program stays pending until the call that was caught returns. SIGSYS, SIGSEGV and the signal that stops loops are the
 * library's: the program can block none of them (a trap while SIGSYS is blocked kills the process), and its handlers of
 * them are kept here. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "answer.h"

enum { SIGNALS_STOP = 63 }; /* by the launcher, to a thread that has run for long without a call */

/* The kernel's struct sigaction. */
struct signals_action {
    void *handler;
    uint64_t flags;
    void *restorer;
    uint64_t mask;
};

/* Blocks all signals and returns those that were blocked; and the opposite. Anywhere. */
uint64_t signals_block(void);
void signals_restore(uint64_t before);

/* Whether a signal is pending that this thread takes when the call that was caught returns. */
bool signals_interrupt(void);

/* How a call that was interrupted ends: ANSWER_RESTART, or -EINTR where a handler was set without SA_RESTART. */
long signals_ended(void);

/* The mask of signals that a call sets for as long as it waits (ppoll(2)); NULL: it sets none. Between these, the
 * program's mask is that one. The end gives the call's result: where a signal interrupts it, its handler runs under the
 * call's mask, as it may be blocked in the program's. */
uint64_t signals_begin_mask(struct caught *, const uint64_t *mask);
long signals_end_mask(struct caught *, const uint64_t *mask, uint64_t before, long result);

/* Marks the waiting threads of a process, or with 0 or less all, so that they look at their signals. */
void signals_sent(pid_t);

/* Lets the library's signals through, in this thread. */
void signals_admit(void);

/* Sets a handler of the library's, which runs with all signals blocked; that of SIGSYS may have faults. */
void signals_install(int signal, void (*handler)(int, siginfo_t *, void *));

/* Does what the program's own action for one of the library's signals says: the fault, or the sender, is another's. */
void signals_pass_fault(int signal, siginfo_t *, void *context);
