/* Litmus tests of what an adapter may do: two or three queue pairs of one process, and threads that look at memory. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "loopback.h"

/* The objects of a test: at the requester r, at the target x and y, all 0 at the beginning of a trial. The queue pairs
 * of `back` end where the pairs of `forth` begin. */
struct litmus {
    struct loopback ends;
    struct ibv_qp *more[2]; /* a second pair, connected with each other */
    struct ibv_comp_channel *channel;
    struct ibv_cq *armed; /* of `channel` */
    struct ibv_qp *on_armed, *to_armed;
    volatile uint64_t *r, *x, *y, *wide; /* WIDE bytes */
    volatile uint64_t *wide_source;
    struct ibv_context *early; /* opened before the others, for the state of its port */
    bool was_down, stays_down; /* the port, when it was opened; and for ever */
    struct litmus_srd *srd;    /* in place of all others, in the program of SRD */
};

enum { LITMUS_WIDE = 256 };

void litmus_open(struct litmus *);

/* Puts the memory of a trial in order. */
void litmus_begin_trial(struct litmus *);

/* Sees whether the port is down, and waits until it is up. Before all other objects. */
void litmus_open_early(struct litmus *);
void litmus_close(struct litmus *);

/* Work of one element, of the first pair unless a queue pair is given. */
enum { SIGNALLED = IBV_SEND_SIGNALED, FENCED = IBV_SEND_FENCE };
void litmus_post(struct ibv_qp *, struct litmus *, enum ibv_wr_opcode, volatile uint64_t *local,
                 volatile uint64_t *remote, unsigned length, unsigned flags);
void litmus_receive(struct ibv_qp *, struct litmus *, volatile uint64_t *into, unsigned length);

/* Polls until `count` completions arrived, all of them successful. */
void litmus_poll(struct ibv_cq *, unsigned count);

/* Each row of the table: the outcome that it is about was seen. */
#define LITMUS(name, verdict, behaviour, outcome) bool litmus_##name(struct litmus *);
#include "litmus.def"
#define LITMUS(name, verdict, behaviour, outcome) bool litmus_##name(struct litmus *);
#include "litmus_srd.def"
