/* One end of a connection on the wire: the messages that make it, keep it when some get lost, and end it (IBA volume 1,
 * 12.9). Pure: time is passed in, messages are pulled out, outcomes go to the owner's operations.
 *
 * Which connection a message belongs to is for the owner to find out (dispatch.h); a connection checks only what it can
 * see of itself. Waiting times are those of Linux's CM. */
#ifndef CM_CONNECTION_H
#define CM_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "base/time_scale.h"
#include "cm/parameters.h"
#include "events/events.h"
#include "wire/cm.h"

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
    CONNECTION_ANSWERED,     /* a REP came */
    CONNECTION_REJECTED,     /* status: the reason of the REJ */
    CONNECTION_UNREACHABLE,  /* no answer: status -ETIMEDOUT */
    CONNECTION_COMPLETE,     /* the passive side learned that it is established */
    CONNECTION_DISCONNECTED, /* status 0, or -ETIMEDOUT when no answer to the DREQ came */
    CONNECTION_OVER,         /* its timewait has ended */
};

struct connection;

struct connection_operations {
    /* Called once for each outcome, in the state behind it. `message`: its cause, or NULL. Must not call back into the
     * connection. */
    void (*outcome)(struct connection *, enum connection_outcome, int status, const struct cm_message *message);

    /* Something happened that events/events.def has a line for, with its fields. NULL: events are not reported. */
    void (*event)(const struct connection *, enum event, uint64_t a, uint64_t b);

    /* By how much the timewait that begins is longer than it must be. NULL: by nothing. */
    nanos (*linger)(const struct connection *);
};

/* The facts that both ends have of each other when a connection begins. */
struct connection_end {
    uint32_t communication_id;
    uint32_t qpn;
    uint32_t psn; /* where the other's send queue begins */
    uint64_t guid;
};

/* A DREQ; a DREP, after which the peer asks for no answer any more. */
enum { CONNECTION_DREQ_CAME = 1, CONNECTION_DREP_CAME = 2 };

struct connection {
    const struct connection_operations *operations;
    enum connection_state state;
    bool active;      /* this end sent the REQ */
    bool extended;    /* XRC: a REP has the queue pair number in another field */
    bool abandoned;   /* outcomes are not reported any more */
    bool mra_came;    /* for the message that is out; others don't count */
    uint16_t pending; /* messages to send: bits of enum pending in connection.c */
    uint8_t parting;  /* what the peer has sent of it: CONNECTION_DREQ_CAME, CONNECTION_DREP_CAME */
    uint8_t repeats;  /* of the message that is out, that are left */
    uint8_t max_repeats;
    struct connection_end local, remote;
    uint64_t transaction;            /* of the REQ */
    uint64_t disconnect_transaction; /* of the DREQ, ours or the peer's */
    uint32_t agent;                  /* upper half of the transactions that begin here */
    /* the messages that are sent, and sent again */
    struct cm_req req;               /* active */
    struct cm_parameters parameters; /* of CONNECT, or of ACCEPT */
    struct cm_ece ece;
    uint8_t target_ack_delay; /* ours */
    struct {
        uint8_t about; /* enum cm_about */
        uint16_t reason;
    } rejection;           /* ours */
    uint16_t peers_reason; /* of the peer's REJ, by which the connection ended; 0: none came */
    /* the values that both have agreed on */
    uint8_t responder_resources, initiator_depth;
    uint8_t retry_count, rnr_retry_count;
    uint8_t mtu;         /* enum ibv_mtu */
    uint8_t ack_timeout; /* for the queue pair */
    nanos patience;      /* for an answer to this end's messages */
    nanos since;         /* when it entered its state */
    nanos deadline;      /* when to call connection_expire; NANOS_NEVER: nothing waits */
};

/* Makes an idle one. */
void connection_initialize(struct connection *, const struct connection_operations *);

/* Active: sends this REQ, with the parameters' private data and `ece`. The owner has set local, transaction and ece. */
void connection_request(struct connection *, const struct cm_req *, const struct cm_parameters *, nanos now);

/* Passive: a REQ has come. The owner has set local (but for the queue pair's number) and target_ack_delay. */
void connection_requested(struct connection *, const struct cm_message *req, nanos now);

/* Passive: sends the REP, with `ece`. Only in REQ_RCVD: EINVAL. */
int connection_accept(struct connection *, const struct cm_parameters *, nanos now);

/* Active: sends the RTU. Only in REP_RCVD: EINVAL. */
int connection_confirm(struct connection *, nanos now);

/* The passive end's queue pair has got a packet: as good as an RTU. EISCONN when it is established, else EINVAL but in
 * REP_SENT. */
int connection_establish(struct connection *, nanos now);

/* Sends a REJ with up to 148 bytes of private data. Only before the end is established: EINVAL. */
int connection_reject(struct connection *, uint16_t reason, const void *private_data, uint8_t length, nanos now);

/* Sends a DREQ when established, the DREP that is due, or nothing. */
void connection_disconnect(struct connection *, nanos now);

/* The owner goes: says goodbye as the state demands. No more outcomes. The connection is needed until it is finished.
 */
void connection_abandon(struct connection *, nanos now);
bool connection_is_finished(const struct connection *);

/* Time passes: sends again, gives up, or ends the timewait when the deadline has passed. */
void connection_expire(struct connection *, nanos now);

/* The peer's process has ended, so that no answer will come any more. */
void connection_bereave(struct connection *, nanos now);

/* The message that the peer needs if the owner's process ends at this moment: a DREQ, DREP or REJ that ends the
 * connection. False: none. Changes nothing. */
bool connection_goodbye(const struct connection *, struct cm_message *);

/* A message for this connection. False: it changed nothing. */
bool connection_receive(struct connection *, const struct cm_message *, nanos now);

/* The next message to send; false: none. */
bool connection_transmit(struct connection *, struct cm_message *);

/* The timeout of a queue pair (4.096 us * 2^n) for packets that live so long, and a peer that takes so long to
 * acknowledge (IBA 12.7.34). */
uint8_t connection_ack_timeout(uint8_t ack_delay, uint8_t lifetime);

/* 4.096 us * 2^code, as Linux's CM rounds it: whole milliseconds. */
static inline nanos connection_wait(uint8_t code)
{
    return time_scaled(NANOS_MILLISECOND << (code > 8 ? code - 8 : 0));
}

#endif
