/* An end of a connection on the wire: the messages that make it, keep it when some get lost, and end it (IBA volume 1,
 * 12.9). Pure: time is passed in, messages are pulled out, outcomes are reported by the owner's operations.
 *
 * The owner finds the connection of a message (dispatch.h); a connection checks only its own values. Waiting times are
 * as in Linux's CM. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "base/time_scale.h"
#include "cm/queue_pair/parameters.h"
#include "events/events.h"
#include "wire/cm/cm.h"

enum connection_state {
    CONNECTION_IDLE,
    CONNECTION_REQ_SENT,
    CONNECTION_REQ_RCVD,
    CONNECTION_REP_SENT,
    CONNECTION_REP_RCVD,
    CONNECTION_ESTABLISHED,
    CONNECTION_DREQ_SENT,
    CONNECTION_DREQ_RCVD,
    CONNECTION_TIMEWAIT,
    CONNECTION_STATES
};

/* "REQ sent" and so on. */
const char *connection_state_name(enum connection_state);

enum connection_outcome {
    CONNECTION_ANSWERED,     /* a REP has arrived */
    CONNECTION_REJECTED,     /* status: the reason of the REJ */
    CONNECTION_UNREACHABLE,  /* no answer: status -ETIMEDOUT */
    CONNECTION_COMPLETE,     /* passive: the connection is established */
    CONNECTION_DISCONNECTED, /* status 0, or -ETIMEDOUT: no answer to the DREQ */
    CONNECTION_OVER,         /* its timewait has ended */
};

struct connection;

struct connection_operations {
    /* Called once for each outcome, after the state has changed. `message`: its cause, or NULL. Must not call back into
     * the connection. */
    void (*outcome)(struct connection *, enum connection_outcome, int status, const struct cm_message *message);

    /* Reports an event of events/events.def with its fields. NULL: events are not reported. */
    void (*event)(const struct connection *, enum event, uint64_t a, uint64_t b);

    /* Time that is added to a timewait that begins. NULL: no time. */
    nanos (*linger)(const struct connection *);
};

/* Values of one end, which the messages that make a connection exchange. */
struct connection_end {
    uint32_t communication_id;
    uint32_t qpn;
    uint32_t psn; /* the first PSN of the other end's send queue */
    uint64_t guid;
};

/* The peer has sent a DREQ; a DREP, after which it waits for no answer any more. */
enum { CONNECTION_DREQ_CAME = 1, CONNECTION_DREP_CAME = 2 };

struct connection {
    const struct connection_operations *operations;
    enum connection_state state;
    bool active;      /* this end sent the REQ */
    bool extended;    /* XRC: a REP has the queue pair number in another field */
    bool abandoned;   /* outcomes are no longer reported */
    bool mra_came;    /* an MRA has arrived for the message that was sent last */
    uint16_t pending; /* messages to send: bits of enum pending (connection_pending.h) */
    uint8_t parting;  /* bits: CONNECTION_DREQ_CAME, CONNECTION_DREP_CAME */
    uint8_t retries;  /* how often the message that was sent last may still be repeated */
    uint8_t max_retries;
    struct connection_end local, remote;
    uint64_t transaction;            /* the REQ's */
    uint64_t disconnect_transaction; /* the DREQ's, ours or the peer's */
    uint32_t agent;                  /* upper half of the transactions that begin here */
    /* what the messages that are sent, and repeated, are made of */
    struct cm_req req;               /* active */
    struct cm_parameters parameters; /* of rdma_connect, or of rdma_accept */
    struct cm_ece ece;
    uint8_t target_ack_delay; /* ours */
    struct {
        uint8_t about; /* enum cm_about */
        uint16_t reason;
    } rejection;           /* our REJ */
    uint16_t peers_reason; /* of the peer's REJ that ended the connection; 0: there was no REJ */
    struct {
        uint8_t responder_resources, initiator_depth;
        uint8_t retry_count, rnr_retry_count;
        uint8_t mtu;         /* enum ibv_mtu */
        uint8_t ack_timeout; /* for the queue pair */
    } agreed;                /* what both ends have agreed on */
    nanos timeout;           /* how long to wait for an answer to this end's messages */
    nanos since;             /* when it entered its state */
    nanos deadline;          /* when to call connection_expire; NANOS_NEVER: nothing waits */
};

/* Makes an idle connection. */
void connection_initialize(struct connection *, const struct connection_operations *);

/* Active: sends this REQ, with the parameters' private data and `ece`. The owner has set local, transaction and ece. */
void connection_request(struct connection *, const struct cm_req *, const struct cm_parameters *, nanos now);

/* Passive: takes a REQ. The owner has set local, without the queue pair's number, and target_ack_delay. */
void connection_requested(struct connection *, const struct cm_message *req, nanos now);

/* Passive: sends the REP, with `ece`. EINVAL: the state is not REQ_RCVD. */
int connection_accept(struct connection *, const struct cm_parameters *, nanos now);

/* Active: sends the RTU. EINVAL: the state is not REP_RCVD. */
int connection_confirm(struct connection *, nanos now);

/* Passive: the queue pair has got a packet, which replaces an RTU. EISCONN: already established; else EINVAL: the state
 * is not REP_SENT. */
int connection_establish(struct connection *, nanos now);

/* Sends a REJ with up to 148 bytes of private data. EINVAL: the state is not one from REQ_SENT to REP_RCVD. */
int connection_reject(struct connection *, uint16_t reason, const void *private_data, uint8_t length, nanos now);

/* Sends a DREQ if the connection is established, or a DREP if one is due. */
void connection_disconnect(struct connection *, nanos now);

/* Called when the owner is destroyed: sends the REJ, DREQ or DREP that the state needs, and reports no more outcomes.
 * The connection must exist until it is finished. */
void connection_abandon(struct connection *, nanos now);
bool connection_is_finished(const struct connection *);

/* Repeats a message, gives up, or ends the timewait if the deadline has passed. */
void connection_expire(struct connection *, nanos now);

/* Called when the peer's process has ended: no answer will arrive. */
void connection_bereave(struct connection *, nanos now);

/* Writes the message that the peer needs if the owner's process ends now: a DREQ, DREP or REJ that ends the connection.
 * False: the peer needs no message. Changes nothing. */
bool connection_goodbye(const struct connection *, struct cm_message *);

/* Takes a message for this connection. False: it changed nothing. */
bool connection_receive(struct connection *, const struct cm_message *, nanos now);

/* Takes the next message to send; false: there is no message. */
bool connection_transmit(struct connection *, struct cm_message *);

/* The timeout of a queue pair (4.096 us * 2^n) for packets with this lifetime, and a peer with this delay of
 * acknowledgements (IBA 12.7.34). */
uint8_t connection_ack_timeout(uint8_t ack_delay, uint8_t lifetime);

/* 4.096 us * 2^code, as Linux's CM rounds it: whole milliseconds. */
static inline nanos connection_wait(uint8_t code)
{
    return time_scaled(NANOS_MILLISECOND << (code > 8 ? code - 8 : 0));
}
