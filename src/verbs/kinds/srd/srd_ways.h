/* The ways of an SRD queue pair's packets, as it has found them: to processes of this host, and back to the addresses
 * of senders. Each packet names its receiver anew, so a few ways are kept. All under qp->lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/grh.h"

struct link;
struct peer;
struct qp;

/* The way of answers to an address. */
struct srd_way {
    uint8_t gid[16];
    uint8_t grh[GRH_LENGTH]; /* of an answer, without its length */
    unsigned changes;        /* device_changes before `grh` and `local` were found out */
    bool local;              /* the address belongs to this host */
    bool known;
    struct link *link; /* to another host; NULL: there is none yet */
};

/* Makes room for the ways of a new queue pair. 0 or ENOMEM. */
int srd_ways_make(struct qp *);

/* The process that has this number, as node_find finds it; NULL: none has. It stays until the next call. */
struct peer *srd_ways_peer(struct qp *, uint32_t number);

/* The way to this address. It stays until the next call. */
const struct srd_way *srd_ways_find(struct qp *, const uint8_t gid[16]);

/* Gives all ways up. */
void srd_ways_close(struct qp *);

/* Gives up the ways and their room. Nobody else knows the queue pair. */
void srd_ways_free(struct qp *);
