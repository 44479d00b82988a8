/* The rules of this process: the layers above ask here about each call and happening. */
#pragma once

#include <stdatomic.h>

#include "base/likely.h"
#include "script/decide.h"

/* A bit for each happening (other than a call) that a rule of this process is for. */
extern _Atomic unsigned rules_wanted;

/* Returns true if a rule is for this happening. A process without rules has no other cost of scripts. */
static inline bool rules_wants(enum script_call happening)
{
    unsigned wanted = atomic_load_explicit(&rules_wanted, memory_order_relaxed);
    return unlikely(wanted != 0) && wanted >> (happening - SCRIPT_CALLS) & 1;
}

/* True: a rule of this process asks from which place of the program a call is made. */
extern atomic_bool rules_callers;

static inline bool rules_want_callers(void)
{
    return atomic_load_explicit(&rules_callers, memory_order_relaxed);
}

/* Makes the process obey these rules, whose memory is kept. Once in a process, before other threads meet them. */
void rules_begin(struct script *, uint64_t seed);

/* The function to call after each change of the rules of a running process; or NULL. Written before any change. */
extern void (*rules_changed)(void);

/* Adds rules to the rules of the process, if it has some; if all of them were taken back, the new rules replace them.
 * Returns 0; ENOSPC: too many; ENOMEM; EBUSY: some thread still reads rules that were taken back. rules_changed and the
 * caller put the layers around the calls. One thread at a time, as below. */
int rules_add(const struct script *);

/* Takes all rules back. Their numbers are not used again. */
void rules_clear(void);

/* The number of the rule that is added next. */
unsigned rules_next_place(void);

/* The rules of the process, also those taken back; NULL: it never had any. The thread that adds rules may read them
 * at any time; others between the two calls below, which take no lock and never wait. In between a thread must not
 * wait. */
const struct script *rules_all(void);
unsigned rules_read(void);
void rules_read_end(unsigned read); /* what rules_read returned */

/* Returns true if a rule is for this call or happening. */
bool rules_is_for(enum script_call);

/* Counts the event in the rules, and logs their actions. Sends the signal and stops the process; the caller does delays
 * and all else. errno is kept. Thread-safe, under any lock. */
struct script_verdict rules_apply(struct script_event);

/* Returns true if this process began the rules, and is not a child of the fork of a process that did. */
bool rules_is_own(void);

/* Notes that this process uses verbs: it has asked for devices, or its rules have met something. Thread-safe, as the
 * next function. */
void rules_use(void);
bool rules_is_used(void);

/* Waits for this time. Not a cancellation point. */
void rules_wait(nanos);
