/* The objects of another libibverbs whose function pointers layers replace, with what was there. One record for each
 * address and kind, found without a lock and never freed, as the library may give an address to a new object. */
#pragma once

#include <infiniband/verbs.h>

#include "calls/calls.h"
#include "calls/questions.h"

enum held_kind { HELD_CONTEXT, HELD_QP, HELD_CQ, HELD_WQ, HELD_DM, HELD_PD, HELD_GIVEN, HELD_KINDS };

struct held {
    struct calls_holder holder;
    struct held *next;
    void *object;
    enum held_kind kind;
    union {
        struct {
            struct ibv_context_ops ops;
            struct verbs_context table; /* the members that the library's own has */
            uint32_t max_rd_atomic;
        };
        struct ibv_qp_ex qp;
        struct {
            struct ibv_cq_ex cq;
            struct calls_cq_made made;
        };
        struct ibv_wq wq;
        struct ibv_dm dm;
        struct {
            const struct ibv_pd *protection; /* of a parent domain */
            bool has_thread_domain;
        };
        uint32_t given; /* the number of a queue whose memory the program has (driven.h) */
    };
};

/* NULL: nobody adopted it. Thread-safe. */
struct held *held_find(enum held_kind, const void *object);

/* Finds or makes the record of a new object that no other thread knows, as one that follows no layer. NULL: no memory;
 * the object is not seen then. Thread-safe. */
struct held *held_begin(enum held_kind, void *object);

/* The object is about to be destroyed: it follows no layer. Returns what calls_enter needs to make it follow them again
 * if the library refuses, or NULL. Thread-safe. */
struct held *held_end(enum held_kind, const void *object);
