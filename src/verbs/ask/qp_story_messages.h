/* The messages of an SRD queue pair that failed, or that it refused: an error ends one message there, so there may be
 * several (events/story.h). All under qp->lock. Without memory the messages are missing. */
#pragma once

#include "transport/owner.h"

struct qp;
struct story;
struct story_message;

/* Notes that a message of this end failed. `about` has the receiver, and the completion's vendor_err. */
void qp_story_message_failed(struct qp *, const struct send_wqe *, enum ibv_wc_status, enum reason,
                             const struct story_message *about);

/* Notes that this end refused the message of a packet for this reason. */
void qp_story_message_refused(struct qp *, const struct packet *, enum reason);

/* Adds the receive that ended with the message that was refused last. */
void qp_story_message_receive(struct qp *, const struct recv_wqe *, const struct recv_cqe *);

/* How many messages failed since the reset. */
uint32_t qp_story_messages_count(const struct story *);

/* Forgets all, as the queue pair is reset. */
void qp_story_messages_forget(struct qp *);
