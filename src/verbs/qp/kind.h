/* The differences of the types of queue pairs. Each type has one constant, in a file or folder of kinds/, and one line
 * in the list kinds/kinds.def. All other files ask the constant, and never for the type itself. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "calls/qp_types.h"
#include "diag/diag.h"

struct context;
struct endpoint_operations;
struct owner_operations;
struct qp;
struct send_queue;

enum { QP_STATES = IBV_QPS_ERR + 1 };

/* A transition of a type. `required` and `optional` are masks of enum ibv_qp_attr_mask; a bit in neither is refused. */
struct qp_transition {
    bool allowed;
    int required, optional;
};

/* A type of queue pairs. Hooks are NULL if the type has nothing to add. */
struct qp_kind {
    enum ibv_qp_type type;
    const char *name;      /* "RC", for logs and JSON */
    uint8_t service;       /* enum service of its packets, or TRAFFIC_NO_SERVICE */
    uint32_t traits;       /* as calls/qp_types.def has them */
    uint32_t opcodes;      /* that ibv_post_send takes: 1 << enum ibv_wr_opcode */
    uint32_t send_flags;   /* enum ibv_send_flags */
    uint64_t builders;     /* enum ibv_qp_create_send_ops_flags */
    uint32_t create_flags; /* enum ibv_qp_create_flags */
    uint32_t init_mask;    /* enum ibv_qp_init_attr_mask: attributes that only this type may have */
    int ignored; /* enum ibv_qp_attr_mask: programs set them, but only the other half of a connection has them */

    /* The transitions, by the states from and to. IBV_QP_STATE itself, and the transitions to RESET and ERR, are the
     * same for all types and not in the table. */
    const struct qp_transition (*transitions)[QP_STATES];

    const struct owner_operations *owner;       /* the functions that its engine calls */
    const struct endpoint_operations *endpoint; /* the functions that the loop calls */

    /* Checks the attributes: 0, or the errno of a refusal (events/refusal.h). */
    int (*refuse)(const struct context *, const struct ibv_qp_init_attr_ex *);
    /* Takes over attributes that only this type has. 0 or ENOMEM. */
    int (*fill)(struct qp *, const struct ibv_qp_init_attr_ex *);
    /* Replaces engine_initialize. */
    void (*initialize_engine)(struct qp *, const struct send_queue *);
    /* Makes the program's handle of a new QP_SHARED queue pair. NULL and errno; then the queue pair is gone. */
    struct ibv_qp *(*hand_out)(struct qp *, const struct ibv_qp_init_attr_ex *);
    /* Destroys such a handle (ibv_destroy_qp(3)). 0 or an errno. */
    int (*close)(struct qp *);
    /* Frees what `fill` and the hooks below have made. */
    void (*release)(struct qp *);

    /* The hooks below are called under qp->lock. */

    /* Sends the engine's output as long as the link has room; qp_transmit_guarded itself does that for QP_RELIABLE. */
    void (*transmit)(struct qp *, nanos now);
    /* Replaces the flush of receives when the queue pair is in error. */
    void (*flush_receives)(struct qp *);
    /* Returns true if it has asked its receiver for a connection and has no answer. */
    bool (*asks)(const struct qp *);
    /* Ends the work that names this address handle. */
    void (*forget_address)(struct qp *, const void *);
    /* Ends what else takes packets for the queue pair, which is about to be destroyed. Under process->progress alone.
     */
    void (*retire)(struct qp *);
    /* Forgets the parts of unfinished messages before the queue pair is reset or destroyed. */
    void (*clear)(struct qp *);
};

/* All kinds; the last is NULL. kinds_begin (verbs/kinds/kinds.h) sets the list, which is empty before. */
extern const struct qp_kind *const *qp_kinds;

/* The kind of this type; NULL: ibv_create_qp does not offer the type. */
const struct qp_kind *qp_kind_find(enum ibv_qp_type);
/* The kind of a driver's own call, by its name; NULL: there is no such kind. */
const struct qp_kind *qp_kind_find_of_driver(const char *name);
