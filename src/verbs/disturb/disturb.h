/* The one place for what disturbs queue pairs and completion queues: the adverse adapter (adverse/adverse.h), scripts
 * (docs/reference/scripts.md) and the recorder. It gives such an object a table of hooks (verbs/object/disturbance.h),
 * which holds output and data, events and completions back. Other objects have no table, and no other code asks which
 * of the three it is. */
#pragma once

struct context;
struct cq;
struct qp;

/* Gives a queue pair of an adverse process its table. Called before other threads know the queue pair. Does nothing
 * without memory. */
void qp_disturb(struct qp *);

/* Begins the recording of the queue pair's engine if the process is recorded; engines of raw packets are not recorded.
 * Called before the engine is initialized. */
void qp_record(struct qp *);

/* Frees the table and the recording of a queue pair. */
void qp_disturb_end(struct qp *);

/* Decides whether arming the queue raises an event for the entries that it has, as the adverse adapter and a profile
 * want it. Called before other threads know the queue. */
void cq_choose_events(struct cq *);

/* Gives a completion queue its table if behaviours of the adverse adapter or rules of a script are for completions or
 * events, also rules that were added after the queue was made. Does nothing without memory. Takes cq->lock. */
void cq_disturb(struct cq *);

/* Stops the timer of a disturbed queue that is not used any more. Under process->progress. */
void cq_disturb_stop(struct cq *);

/* Frees the table of a queue, before the queue is freed. */
void cq_disturb_end(struct cq *);

/* Takes down the port of a context that is being opened (ADVERSE_LATE_PORT), and brings it up some time later with
 * IBV_EVENT_PORT_ACTIVE for all contexts of the device. Does nothing for a device that the process has opened before,
 * for a port that a user has taken down, and without the behaviour. Under process->control. */
void delayed_port_begin(struct context *);
