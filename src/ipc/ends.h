/* The ends of connections on this host, in the table of its processes: what each queue pair that is in RTS was given.
 *
 * Places are shared: a later queue pair takes the place of an earlier one, which is then not found. Any process of the
 * directory may write anything there, so a copy counts only if its sum is right and all its fields are possible, and
 * serves messages alone: nothing that a queue pair does depends on it. A writer that ends in the middle leaves a place
 * whose sum is wrong until the next one writes. All functions are thread-safe, and make no system call but to read the
 * clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "ipc/node.h"

/* The attributes that a queue pair got by ibv_modify_qp. */
struct end {
    nanos reached; /* when it came to RTS (CLOCK_MONOTONIC); ends_enter writes it */
    uint32_t number, peer;
    uint32_t sq_psn, rq_psn;
    uint32_t access; /* qp_access_flags */
    uint8_t mtu;     /* enum ibv_mtu */
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint8_t family; /* the IP version of its GIDs: 4 or 6; 0: it has none */
    bool requests, responds;
    uint8_t zeros[6]; /* so that no byte that is summed up is undefined */
};

/* Enters an end that has come to RTS. Of two ends that enter at once, one at least finds the other afterwards. */
void ends_enter(struct node *, const struct end *);

/* Removes the end of this number, if it is there. */
void ends_remove(struct node *, uint32_t number);

/* Copies the end of this number. False: it is not there. */
bool ends_find(const struct node *, uint32_t number, struct end *);

/* Copies the other end of a connection, which came to RTS at `since` or later and names the same two queue pairs.
 * False: there is no such end, or both ends are one queue pair. */
bool ends_meet(const struct node *, const struct end *own, nanos since, struct end *other);
