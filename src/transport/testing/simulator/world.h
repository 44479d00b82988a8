/* Nodes, their queue pairs, the network between them, and a record of events. One world is one run of one seed. */
#pragma once

#include <stdio.h>

#include "transport/engine/engine.h"
#include "transport/testing/simulator/buffers.h"
#include "transport/testing/simulator/chance.h"
#include "transport/testing/simulator/events.h"
#include "transport/testing/simulator/plan.h"
#include "transport/testing/simulator/watcher.h"

enum {
    TARGET_BYTES = 1 << 15, /* of each endpoint, for the peer's WRITEs and READs */
    COUNTERS = 8,           /* of each endpoint, for the peer's atomics */
    SGE_MAX = 4,
    INLINE_MAX = 64,
    SAVED_MAX = 128,
    WORKS_MAX = 128, /* most works that an endpoint posts in a run */
    RECEIVES_MAX = 4 * WORKS_MAX,
};

enum key {
    KEY_TARGET = 0x11,
    KEY_COUNTERS = 0x12,
    KEY_SHARED = 0x13,       /* the node's counter that everybody adds to */
    KEY_NOBODY = 0x99,       /* never registered */
    KEY_REVOCABLE = 1 << 20, /* plus the number of a work: a key that this SEND invalidates */
};

/* The mistake that a program makes once, on purpose. */
enum fault {
    FAULT_NONE,
    FAULT_LOCAL_KEY,
    FAULT_REMOTE_KEY,
    FAULT_LONGER_THAN_RECEIVE,
    FAULT_LONGER_THAN_ALLOWED,
    FAULT_MISALIGNED,
    FAULTS,
};

/* A work request as the program remembers it. */
struct entry {
    uint8_t opcode, flags;
    bool consumes;  /* a receive of the peer */
    bool delivered; /* the peer has seen it, as a receive */
    bool invalidated;
    bool uncertain; /* it failed, so it may have happened or not */
    enum fault fault;
    uint32_t length;
    uint8_t *content; /* the message, or what a READ or an atomic must bring; NULL: not known */
    struct ibv_sge sge[SGE_MAX];
    uint32_t sge_count;
    uint32_t rkey;
    uint64_t remote;
    uint64_t add;         /* to the node's shared counter */
    uint32_t immediate;   /* or the key */
    uint64_t target_hash; /* of the peer's memory at its arrival, if it consumes a receive */
    uint32_t remote_qp;   /* UD */
    nanos posted;
};

struct posted_receive {
    struct recv_wqe receive; /* its list is `shown` */
    struct ibv_sge sge[SGE_MAX], shown[SGE_MAX];
    bool bad_key;
};

struct endpoint {
    struct engine_owner owner; /* first: the host's operations get it */
    struct world *world;
    enum service service;
    uint32_t index, number, node;
    struct endpoint *peer; /* UD: NULL */
    uint32_t segment, longest;
    uint32_t reference_segment; /* at first; 0: the link can't */
    uint8_t max_rd_atomic;      /* at first, which is the most */
    bool unfetchable;           /* its memory can't be read any more, not even for packets on their way */
    struct engine engine;
    struct responder_resource saved[SAVED_MAX];
    struct engine other; /* XRC: of another process, which executes requests, too (engine_lend) */
    struct responder_resource other_saved[SAVED_MAX];
    bool shared; /* `other` exists */
    bool lent;   /* `other` has the position */
    uint64_t *queue_memory;
    struct buffers buffers;

    /* as a sender */
    struct entry works[WORKS_MAX];
    uint32_t to_post, posted, ended, delivered; /* works; delivered: the receives of all earlier works have ended */
    enum fault fault;
    uint32_t fault_at; /* the work that is wrong */
    bool send_broken;  /* an error ended work; all later work is flushed */
    nanos oldest_since;
    uint8_t model[TARGET_BYTES]; /* the peer's target when all posted work is done */
    uint64_t counter_model[COUNTERS];

    /* as a receiver */
    struct posted_receive *receives[RECEIVES_MAX];
    uint32_t receives_posted, receives_taken, receives_ended;
    bool bad_receive;   /* some receive has a bad key */
    uint32_t last_seen; /* UC: one more than the last message of the peer that arrived */
    _Alignas(8) uint8_t target[TARGET_BYTES];
    uint64_t counters[COUNTERS];

    bool failed;            /* its owner knows of the error state */
    nanos gone_since;       /* it failed or its node died */
    bool draining, drained; /* drained: SQ_DRAINED was raised */
    bool pump_announced, ack_announced;
    uint32_t along;        /* the ACK that is sent along with the present packet */
    uint32_t fresh;        /* the first PSN that had not been sent before that packet */
    nanos watched;         /* when its owner will look at its timers, at the latest */
    nanos timer_announced; /* `watched` plus the owner's lateness */
    nanos last_landing;    /* time of the last packet to it, to keep the order */
};

struct statistics {
    uint64_t events, packets, lost, duplicated, received, lent;
    uint64_t along;                     /* ACKs that were sent along with a request */
    uint64_t changed;                   /* changes of settings during begun work by reference */
    uint64_t ended[IBV_WC_GENERAL_ERR]; /* works, by their status */
};

struct world {
    struct chance chance;
    struct plan plan;
    struct events events;
    nanos now;
    struct endpoint *endpoints;
    uint32_t count;
    bool dead[PLAN_NODES_MAX];
    uint64_t shared[PLAN_NODES_MAX];         /* the counter */
    uint64_t shared_sure[PLAN_NODES_MAX];    /* the sum that was added for certain */
    uint64_t shared_perhaps[PLAN_NODES_MAX]; /* the sum that may have been added */
    uint64_t trace;                          /* a hash of all that happened */
    char complaint[256];                     /* the first thing that was wrong; "" while all is well */
    FILE *log;                               /* or NULL */
    struct watcher *watcher;                 /* or NULL */
    struct statistics statistics;
};

/* Adds an event to the hash, and to the log if there is one. */
void world_note(struct world *, const struct endpoint *, const char *what, uint64_t a, uint64_t b);

/* Notes a fault. Only the first is kept; the run ends with it. */
__attribute__((format(printf, 3, 4))) void world_complain(struct world *, const struct endpoint *, const char *format,
                                                          ...);

/* Notes that the state of the queue pair changes. */
void world_enter(struct endpoint *, enum ibv_qp_state from, enum ibv_qp_state to);

/* Lets the endpoint's owner look at the timers at this time, or somewhat later. */
void world_watch(struct endpoint *, nanos deadline);

/* Makes a world; `watcher` may be NULL. */
void world_make(struct world *, uint64_t seed, struct watcher *);
void world_run(struct world *);
void world_free(struct world *);

static inline bool world_is_dead(const struct endpoint *endpoint)
{
    return endpoint->world->dead[endpoint->node];
}

static inline struct watched world_watched(const struct endpoint *endpoint)
{
    return (struct watched){endpoint->world->now, endpoint->index, endpoint->number, endpoint->service};
}
