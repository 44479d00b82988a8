/* Which queue pairs talk with each other. A packet names the queue pair that receives it; a datagram or softverbs'
 * comment names the sender, or it follows from the answers: an answer to a packet has its PSN. */
#pragma once

#include "draw/records.h"

/* All packets from one queue pair to another. */
struct flow {
    uint32_t source, destination; /* addresses */
    uint32_t from, qp;            /* queue pairs; LOOKUP_NONE: not known */
    uint32_t pair;
    uint8_t side;         /* the side of the pair where it begins */
    bool heard;           /* the capture has packets of it as its receiver saw them */
    uint32_t peer;        /* the flow in the other direction; LOOKUP_NONE: no flow */
    uint32_t best, votes; /* the flow that most answers point to, while `from` is not known */
    uint32_t mtu;         /* the payload of a packet that others of its message follow; 0: not known */
};

struct pair {
    uint32_t address[2], qp[2], process[2]; /* process: a string; 0: not known */
};

struct flows {
    struct flow *list;
    size_t count, room;
    uint32_t *of; /* the flow of each record */
    struct pair *pairs;
    size_t pair_count, pair_room;
};

void flows_find(struct flows *, const struct records *);
void flows_free(struct flows *);
