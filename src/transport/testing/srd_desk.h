/* Some SRD engines on one desk, for tests: a network that loses, doubles and overtakes, memory that knows who wrote it,
 * and a log of all ends. Time is a number. */
#pragma once

#include "transport/engine/engine.h"
#include "transport/testing/simulator/chance.h"

enum {
    DESK_NODES = 3,
    DESK_WORKS = 512, /* a node posts this many at most */
    DESK_QUEUE = 64,
    DESK_RECEIVES = 64,
    DESK_SLOT = 1024,   /* bytes that each work request may touch, at its own place */
    DESK_MESSAGE = 256, /* max_message */
    DESK_SEGMENT = 100,
    DESK_FLYING = 512, /* packets in the network */
    DESK_BLOCKS = 512,
    DESK_KEY = 0x100,
    DESK_QKEY = 0x11,
    DESK_ENDED = 1 << 7,   /* in the log of a work request: it ended, with this status */
    DESK_FORGOTTEN = 0x7f, /* in place of a status: the engine was reset */
};

struct desk;

struct desk_node {
    struct engine_owner owner;
    struct engine engine;
    struct desk *desk;
    uint32_t number, route;
    bool absent;     /* no queue pair of its number exists: its host answers so */
    bool deaf;       /* no packet reaches it */
    bool knows_none; /* it has no address handle of others */
    bool withdrawn;  /* its memory regions are gone */
    bool slow;       /* it lives, and takes nothing */
    bool closed;     /* the link to it has no room */
    uint32_t late;   /* of 1,000 new packets so many are held back */
    nanos refused;   /* when its host has answered that no program takes packets there; or 0 */
    _Alignas(8) uint8_t queue[DESK_QUEUE * (sizeof(struct send_wqe) + 2 * sizeof(struct ibv_sge))];
    uint8_t local[DESK_WORKS * DESK_SLOT];               /* what its own work reads, or READs fill */
    uint8_t remote[DESK_NODES * DESK_WORKS * DESK_SLOT]; /* what others' WRITEs fill, or READs read */
    struct recv_wqe receives[DESK_RECEIVES];
    struct ibv_sge receive_sges[DESK_RECEIVES];
    uint8_t received[DESK_RECEIVES][DESK_MESSAGE];
    uint32_t posted, taken;                   /* receives */
    uint32_t works;                           /* posted */
    uint32_t lengths[DESK_WORKS];             /* of these */
    uint8_t ends[DESK_WORKS];                 /* DESK_ENDED | enum ibv_wc_status */
    uint16_t reasons[DESK_WORKS];             /* of these ends */
    uint32_t order[DESK_WORKS];               /* the works in the order of their ends */
    uint8_t arrivals[DESK_NODES][DESK_WORKS]; /* how often each message of each node arrived */
    uint32_t ended, arrived, dropped, drained;
    uint32_t busy_sent, busy_received, timeouts, retransmits; /* events */
    enum reason last_drop;
    nanos told; /* when the engine wants to be called */
    void *blocks[DESK_BLOCKS];
    unsigned block_count, blocks_most; /* memory lacks with this many */
};

struct desk_packet {
    struct packet packet;
    uint8_t bytes[DESK_MESSAGE];
    struct iovec piece;
    unsigned from, to;
    nanos late; /* it arrives then, or later */
    bool flies;
};

struct desk {
    struct desk_node nodes[DESK_NODES];
    struct desk_packet flying[DESK_FLYING];
    unsigned flying_count;
    uint16_t places[DESK_FLYING]; /* of `flying`: those that fly first, and the others after them */
    uint16_t ranks[DESK_FLYING];  /* where each is among `places` */
    nanos latest;                 /* when the last late packet arrives */
    struct chance chance;
    struct chance seeds; /* of engines: no two lives of a node have the same, whoever sets `chance` */
    nanos now;
    uint64_t wrong;   /* what must never happen */
    const char *what; /* the first of it */
    bool short_of_memory;
    bool last_lies; /* the packets of the last node are forged: what it sends and gets means nothing */
};

struct desk *desk_make(uint64_t seed);
void desk_free(struct desk *);

/* Resets the engine of a node, and starts it again: it forgets its work and its peers. */
void desk_reset(struct desk *, unsigned node);

/* Kills the process of a node, with its engine and its receives; another one has its number, and absent says whether it
 * is there yet. */
void desk_kill(struct desk *, unsigned node);

/* The path from one node to another changes: packets that are under way take this long. */
void desk_change_path(struct desk *, unsigned from, unsigned to, nanos late);

/* Sets rnr_retry of a node. */
void desk_retry(struct desk_node *, uint8_t rnr_retry);

/* Posts work of this length to node `to`; its number counts from 0. UINT32_MAX: the queue is full. The slot of the
 * number is its place in `local` of the one and in `remote` of the other node. */
uint32_t desk_post(struct desk *, unsigned from, unsigned to, enum ibv_wr_opcode, uint32_t length);
/* The work that the node posted last, which may still be changed. */
struct send_wqe *desk_work(struct desk *, unsigned node);
/* Posts a receive of this length; false: there are DESK_RECEIVES. */
bool desk_post_receive(struct desk *, unsigned node, uint32_t length);

/* Lets the node send all that it has. */
void desk_transmit(struct desk *, unsigned node);
/* Delivers one of the packets on their way, by chance; false: there is none. */
bool desk_deliver(struct desk *);
/* Takes this one away. */
void desk_land(struct desk *, struct desk_packet *);
/* Loses one, or doubles one. */
void desk_lose(struct desk *);
void desk_double(struct desk *);
/* Moves time to the next deadline of a node, and lets it act, or to the arrival of a late packet; false: nobody waits.
 */
bool desk_wait(struct desk *);
/* Sends, delivers and waits until nothing happens any more. */
void desk_settle(struct desk *);

/* The bytes that work number `work` of a node carries. */
uint8_t desk_byte(unsigned node, uint32_t work, uint32_t at);
/* Returns true if the memory has these bytes of the work. */
bool desk_has(const uint8_t *memory, unsigned node, uint32_t work, uint32_t length);
