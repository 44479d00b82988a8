/* The rules of this process: calls and happenings of all layers above meet them here. */
#ifndef SCRIPT_MEET_H
#define SCRIPT_MEET_H

#include <stdatomic.h>

#include "base/likely.h"
#include "script/decide.h"

/* A bit for each happening (what is no call) that a rule of this process is for. */
extern _Atomic unsigned meet_wanted;

/* Returns true if there is a rule for this happening. It is the only cost of a process without rules. */
static inline bool meet_wants(enum script_call happening)
{
    unsigned wanted = atomic_load_explicit(&meet_wanted, memory_order_relaxed);
    return unlikely(wanted != 0) && wanted >> (happening - SCRIPT_CALLS) & 1;
}

/* From here on the process obeys these rules, whose memory is kept. Once in a process, before others may meet them. */
void meet_begin(struct script *, uint64_t seed);

/* Called after each change of the rules of a process that runs; NULL: not reported. Written before any change. */
extern void (*meet_changed)(void);

/* Adds rules to those of the process, which need not have any. Where all of those were taken back, these are put in
 * their places. 0; ENOSPC: there is no room for so many; ENOMEM; EBUSY: some thread still reads those that were taken
 * back. The layers above put themselves around the calls for that (meet_changed, and the caller of this). One thread at
 * a time, as below. */
int meet_add(const struct script *);

/* Takes all rules back. Their numbers are not used again. */
void meet_clear(void);

/* The number of the rule that is added next. */
unsigned meet_next_place(void);

/* The rules of the process; NULL: it never had any. Those that ended are among them. The thread that adds rules may
 * read them at any time; others between the two calls below, which take no lock and wait for nothing. In between a
 * thread waits for nothing, either. */
const struct script *meet_rules(void);
unsigned meet_read(void);
void meet_read_end(unsigned read); /* what meet_read returned */

/* Returns true if there is a rule for this call or happening. */
bool meet_is_for(enum script_call);

/* Counts the event in the rules, and has a line in the log of their actions. The signal is sent here; delays and all
 * else are the caller's. errno stays. Thread-safe, under any lock. */
struct script_verdict meet_event(struct script_event);

/* Returns true if there are rules that began in this process, and not in one whose fork it is. */
bool meet_is_own(void);

/* Returns true if this process has asked for devices, as each program that uses verbs does. Thread-safe. */
bool meet_is_used(void);

/* Waits so long: no cancellation point. */
void meet_wait(nanos);

#endif
