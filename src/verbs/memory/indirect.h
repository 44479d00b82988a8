/* Indirect memory keys: regions that are pieces of other regions, one after the other. The program names them from
 * address 0 on. Work of a queue pair gives such a key its pieces, and takes them away.
 *
 * The bytes of such a region have addresses that are never mapped; like a GPU's memory, they are copied by functions
 * (wire/foreign/foreign.h), which look up the pieces. So gathers, scatters and the requests of peers need not know of
 * pieces, and only the helper moves data while an indirect key exists. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "diag/diag.h"
#include "verbs/memory/rkeys.h"
#include "wire/foreign/foreign.h"

struct process;

enum { INDIRECT_BYTES = UINT32_MAX }; /* the longest region */

struct indirect_piece {
    uint64_t address; /* in the region of the key */
    uint32_t bytes,
        skip; /* of each round: `bytes` belong to the region, and the next round begins `skip` behind them */
    uint32_t key;
    uint32_t unused;
};

/* The pieces of one round, repeated. */
struct indirect_layout {
    uint32_t count, rounds;
    const struct indirect_piece *pieces;
};

struct indirect {
    struct foreign foreign; /* its device is this struct */
    struct rkey_table *keys;
    struct region *region; /* its length and access are 0 while the key has no pieces */
    struct lock lock;      /* guards all below */
    bool may_be_invalidated_by_peer;
    uint32_t most, count, rounds;
    struct indirect_piece pieces[]; /* room for `most` */
};

/* Prepares the functions that copy. False: no memory. Under no lock. */
bool indirect_begin(struct indirect *);

/* The length of all rounds; UINT64_MAX: more than INDIRECT_BYTES. */
uint64_t indirect_length(const struct indirect_layout *);

/* Finds the key; NULL: it is none of an indirect region. Under qp->lock, which keeps the region. */
struct indirect *indirect_find(const struct rkey_table *, uint32_t key);

/* Gives the key these pieces and rights, which the caller has checked with indirect_length and `most`. */
void indirect_configure(struct indirect *, const struct indirect_layout *, unsigned access);

/* Takes the pieces away. REASON_INVALIDATE_KEY: the key belongs to another protection domain, or a peer may not. */
enum reason indirect_invalidate(struct indirect *, const struct pd *, bool by_peer);
