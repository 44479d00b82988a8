/* The functions of a queue pair that the transport calls: receives, memory, completions, events. All under qp->lock.
 * The inside of a work queue has another table, which shares some of these functions. */
#pragma once

#include "transport/owner.h"

struct qp;

/* The functions of struct owner_operations (transport/owner.h). */
void qp_owner_sent(struct engine_owner *, const struct send_wqe *, enum ibv_wc_status, enum reason);
void qp_owner_sent_unordered(struct engine_owner *, const struct send_wqe *, enum ibv_wc_status, enum reason);
const struct recv_wqe *qp_owner_take_receive(struct engine_owner *, const struct packet *, uint64_t least);
void qp_owner_return_receive(struct engine_owner *, const struct recv_wqe *);
void qp_owner_received(struct engine_owner *, const struct recv_wqe *, const struct recv_cqe *);
void qp_owner_received_unordered(struct engine_owner *, const struct recv_wqe *, const struct recv_cqe *);
owner_memory qp_owner_local_memory, qp_owner_receive_memory;
enum reason qp_owner_remote_memory(struct engine_owner *, uint32_t rkey, uint64_t address, uint32_t length,
                                   unsigned access, struct iovec *);
bool qp_owner_change(struct engine_owner *, const struct packet *, void *memory, uint64_t *found);
enum reason qp_owner_invalidate(struct engine_owner *, uint32_t rkey);
enum ibv_wc_status qp_owner_local_operation(struct engine_owner *, const struct send_wqe *, enum reason *);
/* The engine has failed; `sqe`: only its send side. */
void qp_owner_failed(struct engine_owner *, bool sqe);
void qp_owner_event(struct engine_owner *, enum ibv_event_type);
void qp_owner_dropped(struct engine_owner *, const struct packet *, enum reason);
void qp_owner_note(struct engine_owner *, enum event, uint64_t a, uint64_t b);
void qp_owner_watch(struct engine_owner *, nanos deadline);

/* Adds the end of a receive, whose completion the caller makes, to the story. Under qp->lock. */
void qp_owner_note_received(struct qp *, const struct recv_wqe *, const struct recv_cqe *);

/* The common entries of all tables. */
#define QP_OWNER_COMMON                                                                                                \
    .return_receive = qp_owner_return_receive, .local_memory = qp_owner_local_memory,                                  \
    .receive_memory = qp_owner_receive_memory, .remote_memory = qp_owner_remote_memory, .change = qp_owner_change,     \
    .invalidate = qp_owner_invalidate, .local_operation = qp_owner_local_operation, .event = qp_owner_event,           \
    .note = qp_owner_note, .watch = qp_owner_watch

/* The table for queue pairs with their own receives, or with an SRQ of the basic type. */
extern const struct owner_operations qp_owner_operations;
