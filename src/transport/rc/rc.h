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
    bool responded;    /* in full, at least once: an answer under way is a repeat */
    uint32_t first_psn;
    uint32_t packets; /* of the whole answer */
    uint32_t msn;
    uint32_t srq; /* XRC */
    uint32_t rkey;
    uint32_t length;  /* READ: bytes of the whole answer */
    uint32_t segment; /* payload bytes of each packet of the answer except the last, as set when the request arrived */
    uint64_t address;
    uint64_t original; /* atomic: the value before */
    /* the answer under way: which packets of the whole answer, and the byte of it where they end */
    uint32_t start, next, stop;
    uint32_t until;
};

struct requester {
    struct send_queue queue;
    uint32_t next_psn;  /* of the next new packet */
    uint32_t acked_psn; /* oldest unacknowledged */
    uint32_t sent_psn;  /* after the last that was ever transmitted (a READ: the last of its response) */
    uint32_t packet;    /* index within the work at queue.next of the packet to transmit next */
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
        uint32_t unusual; /* not 0: one of the above */
    };
    bool drained_reported;
    bool repeating; /* a missing response was noticed; once until a packet is acknowledged */
    bool probed;    /* that packet was sent once more, with probed_psn, and nothing was acknowledged since */
    uint32_t probed_psn;
    uint32_t mixed_until;   /* position after the last begun work that is not a plain READ or WRITE */
    uint16_t packets_first; /* number of works that do not wait to be done directly */
    bool packets_begun;     /* some work has been sent as packets, as far as rc_direct knows */
    bool lost;              /* bytes of the oldest READ's answer, after their packet was accepted (foreign_gather) */
    bool shipped;           /* some payload was sent by reference */
    uint16_t direct_lately; /* number of works that ask for an ACK, so that later ones may be done directly */
    struct congestion congestion;
    struct rto rto;
    nanos deadline; /* when the ACK timer or the RNR wait ends; NANOS_NEVER */
    nanos watched;  /* the owner will look by then; sooner deadlines must be reported to it */
};

struct responder {
    uint32_t expected_psn;
    uint32_t msn;
    const struct recv_wqe *receive; /* of the open SEND */
    uint8_t open;                   /* enum operation of the first packet of the open message, or MESSAGE_CLOSED */
    bool lost;                      /* bytes of the open message, after their packet was accepted (foreign_gather) */
    uint32_t received;              /* bytes of the open message so far */
    uint32_t srq;                   /* XRC: of the open message */
    uint32_t write_rkey;            /* of the open WRITE */
    uint32_t write_length;
    uint64_t write_address;
    /* ack_due and nak_due are not neighbours: compilers read neighbours with one load, which would wait for the
     * store of the first one, and that for all stores of the payload */
    bool ack_due; /* an ACK up to ack_psn not yet pulled */
    uint32_t ack_psn, nak_psn;
    bool nak_due;  /* a NAK not yet pulled; never absorbed */
    bool nak_sent; /* a sequence or RNR NAK was sent: silence until expected_psn arrives */
    bool ack_late; /* an unrequested ACK up to late_psn waits for the next one, or for the owner */
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
    bool ack_waited;   /* a request was sent before the ACK that is due */
    struct requester requester;
    struct responder responder;
};

/* Makes an idle engine. `queue` and `saved` describe memory of the owner, which outlives the engine. */
void rc_initialize(struct rc *, struct engine_owner *, const struct send_queue *queue,
                   struct responder_resource *saved);

/* RTR: packets are accepted from now on, beginning with expected_psn; settings hold, and `saved` has room for
 * max_dest_rd_atomic entries. RTS: work is transmitted from now on. */
void rc_start_receiving(struct rc *, uint32_t expected_psn);
void rc_start_transmitting(struct rc *, uint32_t first_psn);

/* SQD and back: `draining` true starts no new work and raises SQ_DRAINED once all begun work has ended. */
void rc_drain(struct rc *, bool draining);

/* Changes the settings, at any time. */
void rc_configure(struct rc *, const struct engine_settings *);

/* Sends unacknowledged packets again, as the way to the peer has changed; no retry is counted. */
void rc_reroute(struct rc *, nanos now);

/* Returns true if begun work could continue on a way whose packets carry at most `segment` bytes, or exactly, if
 * `exact`. */
bool rc_may_move(const struct rc *, uint32_t segment, bool exact);

/* Work is posted by send_queue_reserve and send_queue_commit on requester.queue; then call this once for the batch.
 * In the error state it hands everything to owner->sent as flushed. */
void rc_posted(struct rc *);

/* Takes one packet from the network. The packet and its payload are not kept. */
void rc_receive(struct rc *, const struct packet *, nanos now);

/* Returns the next packet to send: answers before requests. False: nothing now. out->payload.pieces points to
 * `pieces`, which has room for PAYLOAD_PIECES_MAX. Only the operation's fields, the BTH and the payload of *out are
 * written. The caller must be able to send each packet that it gets; back-pressure is not calling. */
bool rc_transmit(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

/* The fastest way for most packets: returns the next packet if it is a new message of one packet, and nothing is
 * owed, except perhaps an ACK that may be sent along. False: nothing was done; call rc_transmit. */
bool rc_transmit_single(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

/* Takes an unrequested ACK that is sent along with a request, and not as a separate packet: with
 * settings.acks_along, called after each call that returned a request. The number is for the peer's
 * rc_receive_along, which takes it before the packet; 0: no ACK. A number that arrives may be nonsense. */
static inline uint32_t rc_take_along(struct rc *);
/* Takes the ACK back, as the request did not leave. */
void rc_take_back_along(struct rc *, uint32_t along);
void rc_receive_along(struct rc *, uint32_t along, nanos now);

/* Reports that the last packet of rc_transmit was not sent, as the memory of its payload is gone. The work request
 * fails in its turn; for a READ's answer the peer gets a NAK. */
void rc_unreadable(struct rc *, const struct packet *);

/* Returns true if rc_transmit would give output. May be true too often, never false wrongly. */
bool rc_has_output(const struct rc *);

/* A faster form of rc_has_output that is true more often: if posted work was not sent, or an answer is owed. */
static inline bool rc_may_have_output(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    const struct responder *responder = &rc->responder;
    return requester->queue.next != requester->queue.tail || responder->ack_due || responder->nak_due ||
           responder->saved_next != responder->saved_tail || requester->probing;
}

/* Returns true if an RNR NAK ends the oldest request, as it was repeated often enough. */
static inline bool rc_ends_by_rnr(const struct rc *rc)
{
    enum { FOR_EVER = 7 };
    const struct requester *requester = &rc->requester;
    return rc->settings.rnr_retry != FOR_EVER && !requester->rnr_left && !requester->rnr_waiting && !rc->failed;
}

/* Returns true if a request was taken that asked for no ACK, as messages inside a host need not (ack_mask): it is
 * acknowledged with the next one that asks, along with a request, or by engine_acknowledge_late. */
static inline bool rc_owes_late(const struct rc *rc)
{
    return rc->responder.ack_late;
}

enum { RC_ALONG = 1 << 24 }; /* plus the PSN */

static inline uint32_t rc_take_along(struct rc *rc)
{
    struct responder *responder = &rc->responder;
    if (likely(!responder->ack_late))
        return 0;
    responder->ack_late = false;
    return RC_ALONG | responder->late_psn;
}

/* Returns true if the only output is an ACK, which may wait a moment to be sent along with a request. */
bool rc_owes_but_an_ack(const struct rc *);

/* Returns true if the only possible output is an ACK, which need not wait for a request. Then the owner makes the
 * packet with engine_transmit_ack. */
static inline bool rc_owes_one_ack(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    return responder->ack_due && !responder->nak_due && responder->saved_next == responder->saved_tail &&
           rc->requester.queue.next == rc->requester.queue.tail && !rc->requester.probing && !rc->settings.first_window;
}

/* The next deadline of this engine; NANOS_NEVER when nothing waits. */
static inline nanos rc_deadline(const struct rc *rc)
{
    nanos early = rc->requester.rto.deadline;
    return early < rc->requester.deadline ? early : rc->requester.deadline;
}

/* Returns when the owner, which looks at the timers, must look again. Called after rc_expire if that was due.
 * owner->watch reports only deadlines that become sooner than that, so this need not be called after other calls. */
nanos rc_watch(struct rc *);

/* Retransmits or gives up when the deadline has passed. */
void rc_expire(struct rc *, nanos now);

/* Reacts to a CNP: packets of ours meet congestion. */
void rc_notified(struct rc *);

/* Starts the period anew without counting a retry, as a live peer has not consumed the packets yet, or the time-out
 * has changed. Does nothing during an RNR wait. */
void rc_postpone(struct rc *, nanos now);

/* Moves the engine to the error state for the owner: everything outstanding is flushed. Does not call owner->failed. */
void rc_flush(struct rc *);

/* Returns to the state after rc_initialize, but with its settings: all work is forgotten, and not completed. */
void rc_reset(struct rc *);
