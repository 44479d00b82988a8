/* The first error of a queue pair, as its story has it (events/story.h): the failed operation with its
 * numbers. All under qp->lock. An error that can't be kept for want of memory changes nothing else. */
#pragma once

#include "transport/owner.h"

struct qp;
struct receive_queue;
struct traffic_flow;

/* A work request or a receive ended without success. */
void qp_story_send(struct qp *, const struct send_wqe *, enum ibv_wc_status, enum reason);
void qp_story_receive(struct qp *, const struct recv_wqe *, const struct recv_cqe *);

/* A packet was refused; reliable services fail by that, for most reasons. Of one that is too long for its receive the
 * lengths are kept. */
void qp_story_packet(struct qp *, const struct packet *, enum reason);

/* Memory that a peer named was refused. */
void qp_story_memory(struct qp *, uint32_t rkey, uint64_t address, uint32_t length, unsigned access);

/* What is known of memory that this side or a peer named. */
struct story_memory qp_story_look(const struct qp *, uint32_t key, uint64_t address, uint32_t length, unsigned access);

/* The queue pair itself failed. */
void qp_story_fault(struct qp *, enum reason);

/* It is about to fail by that (qp_fail), as this process reports; 0: this one. False: it had failed before, or is
 * reset, so there is nothing to note, or to keep (qp_story_keep). */
bool qp_story_fails(struct qp *, enum reason, int process);

/* It is reset: it has had no error. */
void qp_story_forget(struct qp *);

/* As the times of errors are: exact. */
nanos qp_story_now(void);

/* Puts all records into the story; without one nothing has happened. */
const struct traffic_flow *qp_story_settle(const struct qp *);

/* The queue of its receives: its own, or the shared one; NULL: it has no receives. Under qp->lock. */
struct receive_queue *qp_story_receives(const struct qp *);
