/* Reliable connection (and XRC, whose requester and responder are RC's): a pure state machine.
 *
 * No socket, clock, thread, lock or allocation. One caller at a time: the queue pair's lock. Nothing here blocks.
 * Specification: IBA volume 1, 9.7 (reliable service), 9.9 (responder and requester error behaviour), 10.8. */
#ifndef TRANSPORT_RC_RC_H
#define TRANSPORT_RC_RC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"
#include "base/nanos.h"
#include "transport/owner.h"
#include "transport/rc/congestion.h"
#include "transport/rc/rto.h"
#include "transport/send_queue.h"
#include "transport/settings.h"
#include "wire/op.h"
#include "wire/packet.h"

/* A READ or atomic that the responder has executed or is answering, kept for repeats (IBA 9.4.4, 9.4.5). */
struct responder_resource {
    uint8_t operation; /* enum operation of the request */
    bool answered;     /* in full, at least once: an answer under way is a repeat */
    uint32_t first_psn;
    uint32_t packets; /* of the whole answer */
    uint32_t msn;
    uint32_t srq; /* XRC */
    uint32_t rkey;
    uint32_t length;  /* READ: bytes of the whole answer */
    uint32_t segment; /* payload bytes of each packet of the answer but the last, as when the request came */
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
    uint32_t sent_psn;  /* behind the last that was ever transmitted (a READ: the last of its response) */
    uint32_t packet;    /* index within the work at queue.next of the packet to transmit next */
    uint8_t reads;      /* READs and atomics outstanding */
    uint8_t retries_left;
    uint8_t rnr_left;
    union {
        struct {
            bool draining; /* SQD: start no new work */
            bool rnr_waiting;
            bool stalled; /* the work at queue.next can't be sent; it fails once it is the oldest */
            bool probing; /* the oldest unacknowledged packet is to leave once more, alone */
        };
        uint32_t unusual; /* not 0: one of those */
    };
    bool drained_reported;
    bool repeating; /* a missing response was noticed; noticed once until something is acknowledged */
    bool probed;    /* it did leave once more, with probed_psn, and nothing was acknowledged since */
    uint32_t probed_psn;
    uint32_t mixed_until;   /* position behind the last work that was begun and is no plain READ or WRITE */
    uint16_t packets_first; /* so many works don't wait for being done directly */
    bool packets_begun;     /* some work has been sent as packets, as far as rc_direct knows */
    bool lost;              /* bytes of the oldest READ's answer, after their packet was accepted (foreign_gather) */
    bool shipped;           /* some payload went by reference */
    uint16_t direct_lately; /* so many works ask for an ACK, so that those behind them may be done directly */
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
    /* ack_due and nak_due stand apart: compilers read neighbours with one load, which waits for the store of the one
     * before it, and that for all of the payload's */
    bool ack_due; /* an ACK up to ack_psn not yet pulled */
    uint32_t ack_psn, nak_psn;
    bool nak_due;  /* a NAK not yet pulled; never absorbed */
    bool nak_sent; /* a sequence or RNR NAK is out: silence until expected_psn comes */
    bool ack_late; /* an ACK up to late_psn that was not requested: it waits for the next, or for the owner */
    uint8_t nak_syndrome;
    uint32_t late_psn;
    bool established;                 /* COMM_EST was raised */
    struct responder_resource *saved; /* the owner's, max_dest_rd_atomic entries */
    uint8_t saved_most;               /* entries of `saved`: max_dest_rd_atomic as it was at rc_start_receiving */
    uint8_t saved_size;               /* those in use: max_dest_rd_atomic as it was when nothing was owed, not more */
    uint32_t saved_head, saved_next, saved_tail; /* oldest kept, next to answer, next free */
};

struct rc {
    struct engine_owner *owner;
    struct engine_settings settings;
    bool receiving;    /* RTR or later */
    bool transmitting; /* RTS, SQD */
    bool failed;       /* the error state: everything posted is flushed at once */
    bool ack_waited;   /* a request was let go before the ACK that is due */
    struct requester requester;
    struct responder responder;
};

/* Makes an idle engine. `queue` and `saved` describe memory of the owner, which outlives the engine. */
void rc_initialize(struct rc *, struct engine_owner *, const struct send_queue *queue,
                   struct responder_resource *saved);

/* RTR: from now on packets are accepted, beginning with expected_psn; settings hold, and `saved` has room for
 * max_dest_rd_atomic entries. RTS: from now on work is transmitted. */
void rc_start_receiving(struct rc *, uint32_t expected_psn);
void rc_start_transmitting(struct rc *, uint32_t first_psn);

/* SQD and back: `draining` true starts no new work and raises SQ_DRAINED once all begun work has ended. */
void rc_drain(struct rc *, bool draining);

/* Settings that the owner changes, at any time. */
void rc_configure(struct rc *, const struct engine_settings *);

/* The way to the peer is another: what was sent and not acknowledged is sent again, and no retry is counted. */
void rc_reroute(struct rc *, nanos now);

/* Returns true if begun work could go on by a way whose packets carry at most `segment` bytes, all of them so many
 * where `exact`. */
bool rc_may_move(const struct rc *, uint32_t segment, bool exact);

/* Work is posted by send_queue_reserve and send_queue_commit on requester.queue; then call this once for the batch.
 * In the error state it hands everything to owner->sent as flushed. */
void rc_posted(struct rc *);

/* Takes one packet from the network. The packet and its payload are not kept. */
void rc_receive(struct rc *, const struct packet *, nanos now);

/* The next packet to send: answers before requests. False: nothing now. `pieces` is where out->payload.pieces points,
 * room for PAYLOAD_PIECES_MAX. Of *out only what the operation has, the BTH and the payload are written. The caller
 * must be able to send each packet that it gets; back-pressure is not calling. */
bool rc_transmit(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

/* The same where nothing is owed, but perhaps an ACK that may go along, and a message of one packet is next that never
 * left before: most packets, the fastest way. False: nothing was done, and rc_transmit knows whether there is
 * something. */
bool rc_transmit_single(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

/* Where settings.acks_along, each call that gave a request is followed by this: an ACK that was not requested goes
 * along with it, and is no separate packet. It is a number that the owner carries to the peer's rc_receive_along, which
 * takes it before the packet; 0: there is none. A number that arrives may be nonsense. */
static inline uint32_t rc_take_along(struct rc *);
/* That request did not leave. */
void rc_take_back_along(struct rc *, uint32_t along);
void rc_receive_along(struct rc *, uint32_t along, nanos now);

/* The packet that rc_transmit gave just now was not sent: the memory of its payload is gone. The work request fails in
 * its turn; for the answer to a READ the peer gets a NAK. */
void rc_unreadable(struct rc *, const struct packet *);

/* Returns true if rc_transmit would give output. May be true too often, never false wrongly. */
bool rc_has_output(const struct rc *);

/* The same at once, and true more often: if there is posted work that was not sent, or an answer is owed. */
static inline bool rc_may_have_output(const struct rc *rc)
{
    const struct requester *requester = &rc->requester;
    const struct responder *responder = &rc->responder;
    return requester->queue.next != requester->queue.tail || responder->ack_due || responder->nak_due ||
           responder->saved_next != responder->saved_tail || requester->probing;
}

/* Inside a host messages need not ask for an ACK (ack_mask): a request that was taken without is acknowledged with the
 * next that does, along with a request, or when the owner says so by engine_acknowledge_late. */
static inline bool rc_owes_late(const struct rc *rc)
{
    return rc->responder.ack_late;
}

enum { RC_ALONG = 1 << 24 }; /* and the PSN */

static inline uint32_t rc_take_along(struct rc *rc)
{
    struct responder *responder = &rc->responder;
    if (likely(!responder->ack_late))
        return 0;
    responder->ack_late = false;
    return RC_ALONG | responder->late_psn;
}

/* Returns true if all of it is an ACK, which may wait a moment for a request to go with. */
bool rc_owes_but_an_ack(const struct rc *);

/* Returns true if all that rc_transmit might give is an ACK, which need not wait for a request. Then the owner
 * makes the packet by the short way (engine_transmit_ack). */
static inline bool rc_owes_one_ack(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    return responder->ack_due && !responder->nak_due && responder->saved_next == responder->saved_tail &&
           rc->requester.queue.next == rc->requester.queue.tail && !rc->requester.probing && !rc->settings.first_window;
}

/* When the next deadline of this engine is; NANOS_NEVER when nothing waits. */
static inline nanos rc_deadline(const struct rc *rc)
{
    nanos early = rc->requester.rto.deadline;
    return early < rc->requester.deadline ? early : rc->requester.deadline;
}

/* The owner looks at the timers, after rc_expire where that was due: when to look again. owner->watch reports deadlines
 * that become sooner than that, and only those, so no other call needs this one after it. */
nanos rc_watch(struct rc *);

/* Time passes: retransmits or gives up when the deadline has passed. */
void rc_expire(struct rc *, nanos now);

/* The network says that packets of ours are meeting congestion (a CNP has come). */
void rc_notified(struct rc *);

/* The link knows that a live peer has not consumed the packets yet, or the time-out is another: starts the period anew
 * without counting a retry. Does nothing during an RNR wait. */
void rc_postpone(struct rc *, nanos now);

/* To the error state by the owner's wish: everything outstanding is flushed. Does not call owner->failed. */
void rc_flush(struct rc *);

/* To the state after rc_initialize, but with its settings: nothing is completed, everything is forgotten. */
void rc_reset(struct rc *);

#endif
