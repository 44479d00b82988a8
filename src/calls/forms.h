/* Mistakes in queues in memory (mlx5dv_init_obj(3)), which no call shows: the library finds them when it takes the
 * work, and tells the checker. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

enum calls_form_kind {
    CALLS_FORM_UNITS,   /* the number of units does not fit the operation: `found` of them */
    CALLS_FORM_OVERRUN, /* work was written over work that has not ended: `found` blocks ahead, `wanted` in the ring */
    CALLS_FORM_NUMBER,  /* it names the queue pair `found` */
    CALLS_FORM_OPERATION, /* the queue pair has no such operation: `found` */
    CALLS_FORM_INDEX,     /* it has the index `found`, and `wanted` is its place */
    CALLS_FORM_UNFENCED,  /* it sends what the READ or atomic with the index `found` brings */
    CALLS_FORM_CONSUMED,  /* more entries were consumed than written: `found`, `wanted` */
};

struct calls_form_mistake {
    enum calls_form_kind kind;
    const void *object; /* the queue pair, or completion queue, as the program has it */
    uint16_t index;     /* of the work request */
    uint32_t found, wanted;
};

/* The function that is told of each mistake, under no lock, by a thread of the library; NULL: nobody asks. Written
 * before the program runs. */
extern void (*calls_form_mistaken)(const struct calls_form_mistake *);
