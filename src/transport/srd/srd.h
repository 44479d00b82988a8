/* Scalable reliable datagrams, the queue pairs of EFA: each work request names its receiver, messages arrive at most
 * once and in any order, and an error ends one message and not the queue pair (efadv(7); amzn-drivers, SRD.txt). Nobody
 * has published the packets of EFA, so they are softverbs' own (docs/reference/srd.md). Pure, as rc.h says.
 *
 * A *flow* is all that the queue pair sends to one receiver. Its packets have numbers, and at most SRD_WINDOW of them
 * wait for an answer. An answer ends its packet alone: with success, or with a status of EFA. So one packet holds up no
 * other one; each says by itself where its bytes belong. A message whose receiver had no receive takes a new number for
 * each try, since the receiver keeps the answer to the old one: a late copy can't be accepted any more.
 *
 * A *source* is what the receiver knows of a flow: the answers that it gave, so that no packet is executed twice. It is
 * made by HELLO and WELCOME, which need a round trip: nobody fills the table under false addresses, and a receiver that
 * has forgotten a flow finds out, and never takes an old packet for a new one.
 *
 * The engine has no memory but what the owner gives it (owner_operations.room), so tables grow with the number of
 * peers. The functions of this service are srd_operations. */
#pragma once

#include <sys/queue.h>

#include "base/hash.h"
#include "transport/unreliable/unreliable.h"
#include "wire/srd.h"

enum {
    SRD_WINDOW = 64,    /* numbers of a flow that may wait for an answer */
    SRD_LEVELS = 12,    /* of waits: SRD_WAIT << level */
    SRD_SENT_LEVEL = 4, /* the wait for an answer to a packet that was sent once */
    SRD_TRIES = 7,      /* of repeats without an answer, before the peer counts as silent */
    SRD_LATE_MOST = 3,  /* waits of what the owner holds back */
    SRD_BUSY_LEVEL = 6, /* the longest wait for a receive of the receiver */
    SRD_FLIGHTS = 4096, /* packets of a queue pair that may wait for an answer */
    SRD_PEERS = 16384,  /* flows, and sources, that a queue pair knows at most */
    SRD_READS = 64,     /* responses to READs that wait for room */
    SRD_GREETED = 256,  /* sources that have sent nothing but HELLO */
    SRD_RECENT = 8,     /* sources that are found without their key */
};
#define SRD_WAIT (1000 * 1000) /* nanoseconds */
/* Nanoseconds from a packet, by its repeats, to the end of its work. */
#define SRD_SILENCE ((nanos)SRD_WAIT * ((1 << (SRD_SENT_LEVEL + SRD_TRIES + 1)) - (1 << SRD_SENT_LEVEL)))

struct srd_flow;

/* The reasons why a flight waits. */
enum srd_wait {
    SRD_FREE,
    SRD_SENT,  /* the answer to a packet */
    SRD_AGAIN, /* its turn to be sent again, or after others of its flow */
    SRD_LATE,  /* the time until which the owner holds it back: it was not sent yet */
    SRD_HELLO, /* of a flow: WELCOME */
    SRD_HELD,  /* of a flow: room in the link */
    SRD_BUSY,  /* of a flow: a receive of the receiver */
};

/* A packet, or a flow, that waits. */
struct srd_flight {
    TAILQ_ENTRY(srd_flight) entry; /* of a level, of flow->again, or of the free ones */
    struct srd_flow *flow;
    nanos deadline;
    uint32_t work; /* its position in the send queue */
    uint32_t offset, length;
    uint32_t number;
    uint8_t wait;  /* enum srd_wait */
    uint8_t level; /* the list that it waits in */
    uint8_t tries; /* repeats without an answer */
};
TAILQ_HEAD(srd_flights, srd_flight);

/* Work of the send queue, by positions. */
struct srd_works {
    uint32_t first, last;
    bool any;
};

/* The list of flows that have a packet to send. */
enum srd_ready { SRD_UNREADY, SRD_READY, SRD_RETRANSMITS };

/* A flow of this queue pair to another one. */
struct srd_flow {
    struct hash_entry by_receiver, by_epoch;
    TAILQ_ENTRY(srd_flow) entry; /* of the ready ones */
    uint64_t route;              /* the receiver: its address, as the owner numbers it, and its queue pair */
    uint32_t receiver;
    uint32_t epoch, cookie;
    uint32_t next, floor;                  /* numbers */
    struct srd_flight *at[SRD_WINDOW];     /* what waits for an answer, by number */
    struct srd_flights again;              /* what is to be sent again, or was held back */
    struct srd_works fresh;                /* work with packets that were never sent */
    struct srd_works busy;                 /* work whose receiver had no receive */
    struct srd_flight greeting, busy_wait; /* SRD_HELLO or SRD_HELD; SRD_BUSY */
    uint8_t ready;                         /* enum srd_ready */
    uint8_t busy_level;                    /* of the next wait for a receive */
    bool open, greets, used;
    bool moved; /* while holes of the send queue are closed: it knows the new places */
    bool heard; /* the receiver has answered something */
};
TAILQ_HEAD(srd_ready_flows, srd_flow);

/* A flow of another queue pair to this one. */
struct srd_source {
    struct hash_entry entry;
    TAILQ_ENTRY(srd_source) due_entry;
    TAILQ_ENTRY(srd_source) age_entry; /* of those that have sent data, or of those that have not */
    uint8_t gid[16];
    uint32_t number, epoch, cookie;
    uint32_t floor;
    uint64_t due, reading;        /* answers to be sent, and responses to READs that wait, by number */
    uint8_t statuses[SRD_WINDOW]; /* enum srd_status, by number */
    uint32_t reads;               /* responses that wait */
    bool queued, held;            /* in the list of due ones; in the list without room */
    bool known;                   /* has sent data */
};
TAILQ_HEAD(srd_sources, srd_source);

/* A response to a READ that waits. */
struct srd_read {
    TAILQ_ENTRY(srd_read) entry; /* of those that wait, of those without room, or of the free ones */
    struct srd_source *source;
    uint32_t number, rkey, length;
    uint64_t address;
};
TAILQ_HEAD(srd_reads, srd_read);

struct srd_requester {
    struct hash receivers, epochs;
    uint32_t flow_count, flight_count, flow_hand;
    struct srd_ready_flows ready, retransmits; /* the latter need no new flight */
    struct srd_flights free, levels[SRD_LEVELS];
    struct srd_flight *last; /* of the packet that was transmitted last */
    bool memory_lacks;       /* for further flights, since the last one was freed */
    bool held;               /* perhaps a flow waits for room */
    uint32_t ended;          /* work, since the reset */
    uint32_t holes;          /* ended work after the queue's head */
    nanos watched;           /* the owner looks at the timers then */
};

struct srd_responder {
    struct hash sources;
    struct srd_source *recent[SRD_RECENT]; /* some that sent lately, by epoch */
    uint64_t secret;                       /* of their keys; 0: there was no source yet */
    uint32_t count, greeted;
    struct srd_sources due, held, known, strange, spare; /* held: due ones whose link had no room */
    struct srd_reads reads, held_reads, free_reads;
    bool has_reads;               /* the owner has given memory for SRD_READS */
    uint32_t read_count;          /* of reads and held_reads */
    uint8_t response[SRD_WINDOW]; /* the payload of the last answer */
};

/* Most queue pairs are no SRD, and need no room for this. */
struct srd_state {
    struct srd_requester requester;
    struct srd_responder responder;
};

struct srd {
    struct unreliable common;
    uint64_t random;
    struct srd_requester *requester; /* of a struct srd_state, which is the first memory that the owner gives */
    struct srd_responder *responder;
};

enum { ENGINE_WAITING = 4 };

/* The messages for one receiver that have not ended. */
struct engine_waiting {
    const struct send_wqe *oldest;
    uint32_t count;
    bool unready; /* the receiver had no receive for some of them */
};

struct engine_messages {
    struct engine_waiting waiting[ENGINE_WAITING]; /* of the receivers of the oldest messages */
    uint32_t receivers;                            /* of `waiting` */
    uint32_t ended;                                /* messages that have ended since the reset */
};

/* Where the next packet goes: to the address handle of a work request, or back to a source. */
struct engine_target {
    const void *address; /* send_wqe.address; NULL: the packet is an answer */
    const uint8_t *gid;  /* of the source */
    uint32_t number;     /* the receiver's queue pair */
};

/* Finds the next packet's target; engine_transmit returns that packet. False: there is no packet. */
bool srd_next(struct srd *, struct engine_target *);

/* Do what the operations `receive`, `transmit` and `has_output` do. */
void srd_take(struct srd *, const struct packet *, nanos now);
bool srd_write(struct srd *, struct packet *out, struct iovec *pieces, nanos now);
bool srd_owes(const struct srd *);

/* Lets the next packet wait until srd_retry, as its link has no room; its flow waits a moment at most. */
void srd_hold(struct srd *, nanos now);

/* The next packet's receiver is not on this host: ends all work for it as refused. An answer is lost. */
void srd_nobody(struct srd *);

/* Ends the work that names this address handle, which is about to be destroyed. Work that SQD holds back names none
 * from then on, and ends in its turn. */
void srd_forget_address(struct srd *, const void *address);

/* Lets packets that srd_hold has put aside try again. */
void srd_retry(struct srd *);

/* Does what engine_describe does (engine/engine.h). */
void srd_describe(const struct srd *, struct engine_messages *);

/* Does what engine_first_room does. */
size_t srd_first_room(void);
