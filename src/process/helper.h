/* The helper thread: progress, while no thread polls, and the deadlines. It works only then. Three states:
 * - asleep: no thread has promised to look; senders ring the doorbell, which wakes the helper
 * - working: the helper looks, and goes on for some microseconds after the last work, then asleep
 * - polled: pollers are hot: doorbells are off, the helper only checks once in a while that they still poll
 *
 * A poller claims `polled` after many rounds, and gives it back when it arms a CQ (poller_handover), because it is
 * about to block. The helper looks after it: first soon, then ever more rarely while the program keeps calling verbs.
 * So an idle process sleeps for ever, a hot one is left alone by its helper, and a poller that just stops costs its
 * peers one tick and is believed less readily the next time. */
#ifndef PROCESS_HELPER_H
#define PROCESS_HELPER_H

#include <stdbool.h>

#include "base/nanos.h"

struct process;

/* 0 or errno. */
int helper_start(struct process *);

/* For so long it does nothing. Thread-safe. */
void helper_freeze(struct process *, nanos);

/* Something has happened, after which the program may wait for ever: a look at that (look_for_hangs of the process's
 * parts) is due after some seconds, and again as long as the last one found something that it has not reported yet. A
 * process in which nothing happens and nothing waits sets no timer, nor does one that keeps no log. Thread-safe;
 * costs a load while a look is due. */
void helper_watch(struct process *);

/* Returns when it has ended, true. Without any lock that it takes. False after some seconds: it still sleeps and
 * nothing can wake it, since the program has closed our descriptors (closefrom(3)); so what it uses must stay. */
bool helper_stop(struct process *);

/* Returns true if it has ended, after helper_stop returned false. Waits for nothing. */
bool helper_has_ended(struct process *);

/* The same, but the helper leaves the host first, and is not waited for without end: exit may have been called in a
 * signal handler, and what the interrupted thread holds is never given back. */
void helper_leave(struct process *);

/* The same for one that helper_stop has waited for. */
void helper_leave_late(struct process *);

#endif
