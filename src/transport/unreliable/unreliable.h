/* The common part of all services but RC and XRC, the first member of each (`common`). UC, UD and raw packets: work
 * ends once it was transmitted, and a faulty packet is no error of the queue pair. Pure, as rc.h says. */
#pragma once

#include "transport/owner.h"
#include "transport/settings.h"

struct unreliable {
    struct engine_owner *owner;
    struct engine_settings settings;
    bool receiving, transmitting, failed;
    bool send_error;         /* SQE, the send side only */
    struct send_queue queue; /* between head and next: transmitted, not yet ended */
    bool begun;              /* a part of the work at queue.next was transmitted */
    bool draining, drained_reported;
};

/* The functions that differ between these services. Each gets the common part of its engine. */
struct unreliable_operations {
    /* Write the values of an idle engine that are not 0, and the PSNs at RTR and RTS. NULL: the service has no such
     * values. */
    void (*initialize)(struct unreliable *);
    void (*start_receiving)(struct unreliable *, uint32_t expected_psn);
    void (*start_transmitting)(struct unreliable *, uint32_t first_psn);

    /* Flushes a batch that was posted to an engine in the error state or in SQE. */
    void (*posted)(struct unreliable *);

    /* Takes one packet from the network. The packet and its payload are not kept. Raw packets: NULL. */
    void (*receive)(struct unreliable *, const struct packet *, nanos now);

    /* Returns the next packet to send, or false. Work ends at the call after the one that returned its last packet,
     * since the caller is done with that then: so it is called until it returns false. Raw packets: NULL. */
    bool (*transmit)(struct unreliable *, struct packet *out, struct iovec *pieces, nanos now);

    /* Reports that the last packet was not sent: the memory of its payload is gone. Raw packets: NULL. */
    void (*unreadable)(struct unreliable *);

    /* Moves to the error state for the owner: everything outstanding is flushed. Does not call owner->failed. */
    void (*flush)(struct unreliable *);

    /* The receive that a message has taken and has not ended; or NULL. The operation is NULL if messages are one
     * packet. */
    const struct recv_wqe *(*open_receive)(const struct unreliable *);

    /* Do what engine_expire (of a peer that is silent), engine_watch and engine_deadline do. NULL: the service has no
     * timers. */
    void (*expire)(struct unreliable *, nanos now);
    nanos (*watch)(struct unreliable *);
    nanos (*deadline)(const struct unreliable *);

    /* Returns true if transmitting would give output. NULL: unreliable_has_output knows it. */
    bool (*has_output)(const struct unreliable *);

    /* Raises SQ_DRAINED if the send queue is drained, after a change of `draining`. NULL: unreliable_drain does it. */
    void (*drained)(struct unreliable *);
};

extern const struct unreliable_operations uc_operations, ud_operations, raw_operations, srd_operations;

/* Makes an idle common part. `queue` describes memory of the owner, which outlives the engine. */
void unreliable_initialize(struct unreliable *, struct engine_owner *, const struct send_queue *queue);

/* Ends the work that was transmitted, whose memory is the program's again. */
void unreliable_settle(struct unreliable *);

/* Does what engine_drain does. */
void unreliable_drain(struct unreliable *, bool draining);

/* Implements the operation `posted`. */
void unreliable_posted(struct unreliable *);

/* Returns true if work may be transmitted now; in SQD, if it has begun. */
static inline bool unreliable_is_ready(const struct unreliable *common)
{
    bool open = common->transmitting && !common->failed && !common->send_error;
    return open && common->queue.next != common->queue.tail && (common->begun || !common->draining);
}

/* Returns true if transmitting would give output. May be true too often, never false wrongly. */
static inline bool unreliable_has_output(const struct unreliable *common)
{
    return common->queue.head != common->queue.next || unreliable_is_ready(common);
}

/* SQE: moves the send side alone to error with the oldest work (IBA 10.3.1 "Send Queue Error"). */
void unreliable_refuse(struct unreliable *, enum ibv_wc_status, enum reason);
/* Ends the next work, which can't be sent for this reason, or is scripted. True: it ended with success, and later work
 * may be sent. */
bool unreliable_end(struct unreliable *, const struct send_wqe *, enum ibv_wc_status, enum reason);

/* Reports that the last packet was not sent, as the memory of its payload is gone. Earlier work ended when the packet
 * was built. */
void unreliable_unreadable(struct unreliable *);

/* Moves to the error state for the owner: flushes the send queue, and does not call owner->failed. */
void unreliable_flush(struct unreliable *);

/* Ends a receive with an error of this end, and fails the engine. */
void unreliable_fail_receive(struct unreliable *, const struct recv_wqe *, enum ibv_wc_status, enum reason,
                             const struct packet *);
