/* The effect of each fault: one row a case. The rows are in error_matrix.def; this is the language in which they are
 * written. */
#pragma once

#include "diag/diag.h"
#include "pair.h"

/* The objects of a row: a connected pair, what will be posted at the near end, and what waits for it at the far one. */
struct scene {
    struct pair pair;
    struct send send;
    struct receive receive;
    bool post_receive;
    bool bad_receive;       /* a message that takes the receive fails */
    int other_pd, other_mr; /* at whichever end the fault needed them */
};

/* `wish` changes what the pair shall be like before it is made; `spoil` changes the scene before anything is posted. */
struct fault {
    const char *sentence;
    void (*wish)(struct wishes *);
    void (*spoil)(struct scene *);
};

enum fault_name {
#define FAULT(name, wish, spoil, sentence) FAULT_##name,
#include "error_faults.def"
#undef FAULT
    FAULTS
};

extern const struct fault faults[FAULTS];

enum operation_name {
    OPERATION_SEND,
    OPERATION_SEND_IMM,
    OPERATION_SEND_INV,
    OPERATION_WRITE,
    OPERATION_WRITE_IMM,
    OPERATION_READ,
    OPERATION_COMPARE_SWAP,
    OPERATION_FETCH_ADD,
    OPERATION_ATOMIC_WRITE,
    OPERATIONS
};

enum { STATUS_NOTHING = -1, EVENT_NONE = -1, STATE_GONE = IBV_QPS_UNKNOWN };

struct row {
    enum ibv_qp_type type;
    enum operation_name operation;
    enum fault_name fault;
    int requester,
        responder; /* status of the work request and of the receive that waits; STATUS_NOTHING: it still waits */
    int requester_state, responder_state;           /* enum ibv_qp_state, STATE_GONE */
    enum reason requester_reason, responder_reason; /* vendor_err of the two; REASON_NONE without error */
    int event;                                      /* asynchronous, at the responder; EVENT_NONE */
};

extern const struct row rows[];
extern const size_t row_count;

/* Names as they are written in the table. */
const char *name_of_type(enum ibv_qp_type);
const char *name_of_operation(enum operation_name);
const char *name_of_fault(enum fault_name);
const char *name_of_status(int);
const char *name_of_state(int);
const char *name_of_event(int);

/* Plays the row; fails the case when anything is not as it says. */
void row_play(const void *row);
