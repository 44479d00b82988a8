/* Answers to system calls that were caught. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

enum { ANSWER_RESTART = -512 }; /* in place of a result: the program makes the call anew after its signal's handler */

struct caught {
    long number;
    long argument[6];
    ucontext_t *context;
};

/* Each answers one call as its manual page says, by raw system calls that do not wait. The result, or minus an errno.
 */
#define ANSWERED(name, traits) long answer_##name(struct caught *);
#include "sim/calls.def"

/* Catches the calls of this thread from now on, or not. `first`: of the first thread, which has no thread-local
 * variables yet; it calls answer_begin when it has. */
void answer_begin_first(void);
void answer_begin(void);
void answer_pause_catching(void);
void answer_resume_catching(void);

/* Whether an address is in the text of this library. After answer_prepare. */
bool answer_is_own(uintptr_t address);

/* Once in a process: finds the text of this library, whose calls are not caught, and takes SIGSYS. False: the kernel
 * has no syscall user dispatch, or a filter forbids it. */
bool answer_prepare(void);
