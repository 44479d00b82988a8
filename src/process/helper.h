/* The helper thread makes progress while no thread polls, and keeps the deadlines. Three states:
 * - asleep: no thread has promised to look; senders ring the doorbell, which wakes the helper
 * - working: the helper looks, and continues for some microseconds after the last work, then asleep
 * - polled: pollers are hot: doorbells are off, the helper only checks now and then that they still poll
 *
 * A poller claims `polled` after many rounds, and gives it back when it arms a CQ (poller_handover), because it is
 * about to block. The helper checks: first soon, then ever more rarely while the program keeps calling verbs. So an
 * idle process sleeps for ever, a hot process does not meet its helper, and a poller that just stops costs its peers
 * one tick, and needs more rounds for its next claim. */
#pragma once

#include <stdbool.h>

#include "base/nanos.h"

struct process;

/* Starts the helper. 0 or errno. */
int helper_start(struct process *);

/* Stops all work of the helper for this time. Thread-safe. */
void helper_freeze(struct process *, nanos);

/* Reports an event after which the program may wait for ever: a look for hangs (look_for_hangs of the process's
 * parts) is due after some seconds, and again as long as the last look found something that is not reported yet. A
 * process in which nothing happens and nothing waits sets no timer; neither does a process without a log.
 * Thread-safe; costs a load while a look is due. */
void helper_watch(struct process *);

/* Ends the helper; true: it has ended. The caller holds no lock that the helper takes. False after some seconds: the
 * helper gets no processor, or nothing can wake it, since the program has closed our descriptors (closefrom(3)); its
 * memory must stay. */
bool helper_stop(struct process *);

/* Returns true if the helper has ended, after helper_stop returned false. The first call waits some seconds more for
 * one that gets no processor, and later ones do not wait. Under the lock of joining. */
bool helper_ends_late(struct process *);

/* Ends the helper, which leaves the host first. Does not wait without end: exit may have been called in a signal
 * handler, and the interrupted thread's locks are never released then. */
void helper_leave(struct process *);

/* Ends the helper as helper_leave does, after helper_stop has waited. */
void helper_leave_late(struct process *);
