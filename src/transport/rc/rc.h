/* Reliable connection (and XRC, whose requester and responder are RC's): a pure state machine.
 *
 * No socket, clock, thread, lock or allocation. One caller at a time: the queue pair's lock. Nothing here blocks.
 * Specification: IBA volume 1, 9.7 (reliable service), 9.9 (responder and requester error behaviour), 10.8. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"
#include "base/nanos.h"
#include "transport/owner.h"
#include "transport/rc/timing/congestion.h"
#include "transport/rc/timing/rto.h"
#include "transport/send_queue.h"
#include "transport/settings.h"
#include "wire/op.h"
#include "wire/packet.h"

/* A READ or atomic that the responder has executed or is answering, kept for repeats (IBA 9.4.4, 9.4.5). */
struct responder_resource {
    uint8_t operation; /* enum operation of the request */
    bool responded;    /* in full, at least once: an answer that is being sent is a repeat */
    uint32_t first_psn;
    uint32_t packets; /* of the whole answer */
    uint32_t msn;
    uint32_t srq; /* XRC */
    uint32_t rkey;
    uint32_t length;  /* READ: bytes of the whole answer */
    uint32_t segment; /* payload bytes of each packet of the answer except the last, as set when the request arrived */
    uint64_t address;
    uint64_t original; /* atomic: the value before */
    /* the answer that is being sent: which packets of the whole answer, and the byte of it at which they end */
    uint32_t start, next, stop;
    uint32_t until;
};

struct requester {
    struct send_queue queue;
    uint32_t next_psn;  /* of the next new packet */
    uint32_t acked_psn; /* oldest unacknowledged */
    uint32_t sent_psn;  /* after the last that was ever transmitted (a READ: the last of its response) */
    uint32_t packet;    /* index of the packet to transmit next, within the work at queue.next */
    uint8_t reads;      /* READs and atomics outstanding */
    uint8_t retries_left;
    uint8_t rnr_left;
    union {
        struct {
            bool draining; /* SQD: start no new work */
            bool rnr_waiting;
            bool stalled; /* the work at queue.next can't be sent; it fails once it is the oldest */
            bool probing; /* the oldest unacknowledged packet must be sent once more, alone */
        };
        uint32_t unusual; /* not 0: one of these four is true */
    };
    bool drained_reported;
    bool repeating; /* a missing response was requested again, and nothing was acknowledged since */
    bool probed;    /* the packet with probed_psn was sent once more, alone, and nothing was acknowledged since */
    uint32_t probed_psn;
    uint32_t mixed_until;   /* while queue.head is before this position, no work waits to be done directly */
    uint16_t packets_first; /* number of next works that do not wait to be done directly */
    bool packets_begun;     /* some work has been sent as packets, as far as rc_direct knows */
    bool lost;              /* bytes of the oldest READ's answer were lost after they were accepted (foreign_gather) */
    bool shipped;           /* some payload was sent by reference */
    uint16_t direct_lately; /* number of next works that ask for an ACK, so that later ones may be done directly */
    struct congestion congestion;
    struct rto rto;
    nanos deadline; /* when the ACK timer or the RNR wait ends; NANOS_NEVER: neither runs */
    nanos watched;  /* the owner looks at the timers by then; a sooner deadline must be reported to it */
};

struct responder {
    uint32_t expected_psn;
    uint32_t msn;
    const struct recv_wqe *receive; /* of the open SEND */
    uint8_t open;                   /* enum operation of the first packet of the open message, or MESSAGE_CLOSED */
    bool lost;                      /* bytes of the open message were lost after they were accepted (foreign_gather) */
    uint32_t received;              /* bytes of the open message so far */
    uint32_t srq;                   /* XRC: of the open message */
    uint32_t write_rkey;            /* of the open WRITE */
    uint32_t write_length;
    uint64_t write_address;
    /* ack_due and nak_due are not neighbours: compilers read neighbours with one load, which would wait for the store
     * of ack_due, and that store for all stores of the payload */
    bool ack_due; /* an ACK up to ack_psn is owed */
    uint32_t ack_psn, nak_psn;
    bool nak_due;  /* a NAK is owed; no ACK replaces it */
    bool nak_sent; /* a sequence or RNR NAK was sent: silence until expected_psn arrives */
    bool ack_late; /* an unrequested ACK up to late_psn waits for the next ACK, or for the owner */
    uint8_t nak_syndrome;
    uint32_t late_psn;
    bool established;                 /* COMM_EST was raised */
    struct responder_resource *saved; /* the owner's, max_dest_rd_atomic entries */
    uint8_t saved_most;               /* entries of `saved`: max_dest_rd_atomic as it was at rc_start_receiving */
    uint8_t saved_size;               /* entries in use: at most max_dest_rd_atomic as it was when nothing was owed */
    uint32_t saved_head, saved_next, saved_tail; /* oldest kept, next to answer, next free */
};

struct rc {
    struct engine_owner *owner;
    struct engine_settings settings;
    bool receiving;    /* RTR or later */
    bool transmitting; /* RTS, SQD */
    bool failed;       /* the error state: everything posted is flushed at once */
    bool ack_waited;   /* the ACK that is due has let a request pass */
    struct requester requester;
    struct responder responder;
};

/* Each function below that has no comment is the part for RC and XRC of the engine_ function with the same name, and
 * has its contract (engine/engine.h). */
void rc_initialize(struct rc *, struct engine_owner *, const struct send_queue *queue,
                   struct responder_resource *saved);
void rc_start_receiving(struct rc *, uint32_t expected_psn);
void rc_start_transmitting(struct rc *, uint32_t first_psn);
void rc_drain(struct rc *, bool draining);
void rc_configure(struct rc *, const struct engine_settings *);
bool rc_may_move(const struct rc *, uint32_t segment, bool exact);

/* Does what PEER_MOVED says: sends unacknowledged packets again, and counts no retry. */
void rc_reroute(struct rc *, nanos now);

void rc_posted(struct rc *);
void rc_receive(struct rc *, const struct packet *, nanos now);
bool rc_transmit(struct rc *, struct packet *out, struct iovec *pieces, nanos now);
bool rc_transmit_single(struct rc *, struct packet *out, struct iovec *pieces, nanos now);
void rc_take_back_along(struct rc *, uint32_t along);
void rc_receive_along(struct rc *, uint32_t along, nanos now);
void rc_unreadable(struct rc *, const struct packet *);
bool rc_has_output(const struct rc *);

static inline bool rc_may_have_output(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    const struct responder *responder = &rc->responder;
    return requester->queue.next != requester->queue.tail || responder->ack_due || responder->nak_due ||
           responder->saved_next != responder->saved_tail || requester->probing;
}

static inline bool rc_ends_by_rnr(const struct rc *rc)
{
    enum { FOR_EVER = 7 };
    const struct requester *requester = &rc->requester;
    return rc->settings.rnr_retry != FOR_EVER && !requester->rnr_left && !requester->rnr_waiting && !rc->failed;
}

static inline bool rc_owes_late(const struct rc *rc)
{
    return rc->responder.ack_late;
}

enum { RC_ALONG = 1 << 24 }; /* of rc_take_along's number, with the PSN */

static inline uint32_t rc_take_along(struct rc *rc)
{
    struct responder *responder = &rc->responder;
    if (likely(!responder->ack_late))
        return 0;
    responder->ack_late = false;
    return RC_ALONG | responder->late_psn;
}

bool rc_owes_but_an_ack(const struct rc *);

static inline bool rc_owes_one_ack(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    return responder->ack_due && !responder->nak_due && responder->saved_next == responder->saved_tail &&
           rc->requester.queue.next == rc->requester.queue.tail && !rc->requester.probing && !rc->settings.first_window;
}

static inline nanos rc_deadline(const struct rc *rc)
{
    nanos early = rc->requester.rto.deadline;
    return early < rc->requester.deadline ? early : rc->requester.deadline;
}

nanos rc_watch(struct rc *);

/* Does what PEER_SILENT says: retransmits or gives up when a deadline has passed. */
void rc_expire(struct rc *, nanos now);

/* Takes a CNP: packets of ours meet congestion. */
void rc_notified(struct rc *);

/* Does what PEER_SLOW says: starts the period anew, and counts no retry. Does nothing during an RNR wait. */
void rc_postpone(struct rc *, nanos now);

void rc_flush(struct rc *);
void rc_reset(struct rc *);
