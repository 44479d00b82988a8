/* Receive queues and SRQs in memory: mlx5dv_init_obj(3). The program writes receives and counts them, modulo 2^16, in
 * a record, and rings no doorbell: they are entered into the queue when a message needs one. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "verbs/queue/receive_queue.h"

struct tag_places;

struct receive_ring_form {
    uint8_t *memory;
    uint32_t count, stride;   /* a power of two of receives, of so many bytes */
    _Atomic uint32_t *record; /* big-endian */
    bool linked;              /* an SRQ: each names the next */
    bool owned;               /* `memory` is freed with the queue */
    size_t size;              /* of the memory then */
    struct tag_places *tags;  /* of an SRQ with tag matching, freed with it; otherwise NULL */
};

/* Lets the queue have its receives from memory of this form. 0 or an errno; then the memory is the caller's. */
int receive_ring_feed(struct receive_queue *, const struct receive_ring_form *);

/* The form of a queue; NULL: it has another source, or none. */
const struct receive_ring_form *receive_ring_of(struct receive_queue *);
