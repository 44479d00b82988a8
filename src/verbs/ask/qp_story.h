/* The first error of a queue pair, as its story has it (events/story.h): the failed operation with its numbers. All
 * under qp->lock. Without memory for an error, only the error is missing. */
#pragma once

#include "transport/owner.h"

struct qp;
struct receive_queue;
struct story;
struct story_error;
struct traffic_flow;

/* Note that a work request or a receive ended without success. */
void qp_story_send(struct qp *, const struct send_wqe *, enum ibv_wc_status, enum reason);
void qp_story_receive(struct qp *, const struct recv_wqe *, const struct recv_cqe *);

/* Notes a packet that was refused; reliable services fail by that, for most reasons. Keeps the lengths of a packet that
 * is too long for its receive. */
void qp_story_packet(struct qp *, const struct packet *, enum reason);

/* Notes that memory was refused which a peer named. */
void qp_story_memory(struct qp *, uint32_t rkey, uint64_t address, uint32_t length, unsigned access);

/* Put the numbers of a work request, a request of a peer or a receive that ended into an error. */
void qp_story_describe_send(struct qp *, struct story_error *, const struct send_wqe *);
void qp_story_describe_packet(const struct qp *, struct story_error *, const struct packet *);
void qp_story_describe_receive(struct qp *, struct story_error *, const struct recv_wqe *, enum ibv_wc_status);

/* Returns what is known of memory that this side or a peer named. */
struct story_memory qp_story_look(const struct qp *, uint32_t key, uint64_t address, uint32_t length, unsigned access);

/* Notes that the queue pair itself failed. */
void qp_story_fault(struct qp *, enum reason);

/* Notes that the queue pair is about to fail for this reason (qp_fail), which `process` reports; 0: this process.
 * False: it had failed before, or is reset, so there is nothing to note, or to keep (qp_story_keep). */
bool qp_story_fails(struct qp *, enum reason, int process);

/* Forgets the error, as the queue pair is reset. */
void qp_story_forget(struct qp *);

/* Returns the exact time, as errors have it. */
nanos qp_story_now(void);

/* Puts all records into the story. Returns the flow, which has no story if nothing has happened. */
const struct traffic_flow *qp_story_settle(const struct qp *);

/* Returns when the newest work ended, by a settled story; 0: no record of that is left. `at` as for story_record. */
nanos qp_story_last_ended(const struct story *, uint32_t at);

/* Returns the queue of its receives, which may be an SRQ's; NULL: it has no receives. Under qp->lock. */
struct receive_queue *qp_story_receives(const struct qp *);
