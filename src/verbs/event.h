/* Events that a person provokes: what `softverbs event` asks of this process. docs/events.md says what each does. */
#ifndef VERBS_EVENT_H
#define VERBS_EVENT_H

#include <stdio.h>

#include "verbs/object.h"

/* The name and meaning of the n-th event; NULL behind the last. */
const char *event_name(unsigned n);
const char *event_meaning(unsigned n);

/* Does what "NAME DEVICE" asks, and writes a JSON object: how many contexts were told in "contexts", or "busy": true
 * when the process must be asked again. Under process->progress; blocks on nothing. */
void event_answer(struct process *, const char *request, FILE *out);

/* The host is lost (node_is_lost): all devices of the process fail, and their contexts are told. False: somebody holds
 * process->control; ask again. Not under process->progress. */
bool event_fail_devices(struct process *);

/* The device's port as others left it, for a context that is being opened. */
void event_learn_port(struct process *, const struct device *);

bool event_port_is_down(const struct process *, const struct device *);

/* The same for a queue pair: what it sends is lost, and so is what comes for it. */
static inline bool qp_port_is_down(const struct qp *qp)
{
    return __builtin_expect(atomic_load_explicit(&qp->process->ports_down, memory_order_relaxed) & qp->port, 0);
}

#endif
