/* One call of the verbs as a value, so that it can be made in this process or sent to another. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The calls that an end can make. Objects are named by small numbers of their kind, NOBODY where there is no object. */
enum verb {
    VERB_OPEN,
    VERB_CLEAR,  /* destroys everything, in order; error: the first errno that a destroy gave */
    VERB_MEMORY, /* number[0] bytes, page aligned, zeroed -> number[0] address */
    VERB_LOSE,   /* number: address, length, enum loss */
    VERB_ALLOC_PD,
    VERB_REG_MR, /* id[0] pd; number: address, length, access, iova; id[1] true: with iova */
    VERB_REREG_MR,
    VERB_CREATE_CHANNEL,
    VERB_CREATE_CQ, /* id[0] channel; number: entries, vector, context */
    VERB_CREATE_CQ_EX,
    VERB_RESIZE_CQ,
    VERB_CREATE_SRQ,
    VERB_MODIFY_SRQ,
    VERB_QUERY_SRQ,
    VERB_CREATE_QP, /* id: pd, send CQ, receive CQ, SRQ */
    VERB_MODIFY_QP,
    VERB_QUERY_QP,
    VERB_CREATE_AH,
    VERB_ATTACH,
    VERB_DETACH,
    VERB_DESTROY, /* id[0] of kind number[0] */
    VERB_POST_SEND,
    VERB_POST_RECEIVE,
    VERB_POST_SRQ,
    VERB_POLL,    /* id[0] cq; number: most, milliseconds: until `most` arrived or the time is over */
    VERB_POLL_EX, /* the same through the iterator of an extended CQ */
    VERB_ARM,
    VERB_GET_CQ_EVENT,    /* id[0] channel, number[0] milliseconds -> id[0] cq, number[0] its context */
    VERB_ACK_CQ_EVENTS,   /* id[0] cq, number[0] how many */
    VERB_GET_ASYNC_EVENT, /* number[0] milliseconds -> number[0] type, id[0] of what */
    VERB_FILL,            /* number: address, length, seed */
    VERB_COMPARE,         /* number: address, length, seed, offset -> number[0] first byte that differs, -1 none */
    VERB_SET,             /* number: address, length, value */
    VERB_PEEK,            /* number[0] address -> number[0] eight bytes */
    VERB_POKE,
    VERB_END,
    VERBS
};

/* How memory is lost that is still registered. */
enum loss { LOSS_UNMAPPED, LOSS_PROTECTED, LOSS_READ_ONLY, LOSS_TRUNCATED, LOSSES };

enum kind { KIND_PD, KIND_MR, KIND_CHANNEL, KIND_CQ, KIND_SRQ, KIND_QP, KIND_AH, KINDS };

enum { NOBODY = -1, SGES = 32, PAYLOAD_MAX = 1 << 17, OBJECTS = 256 };

struct call {
    int verb;
    int result; /* the function's result; if it makes an object: the object's number, NOBODY when it failed */
    int error;  /* the errno of a call that failed, however the function reports it */
    int id[6];
    int64_t number[6];
    uint32_t payload; /* bytes that go along: struct send, struct receive, struct ibv_wc, struct extended */
    union {
        struct ibv_qp_init_attr qp_init;
        struct {
            struct ibv_qp_attr attr;
            struct ibv_qp_init_attr init;
            int mask;
        } qp;
        struct ibv_srq_init_attr srq;
        struct ibv_ah_attr ah;
        struct ibv_cq_init_attr_ex cq;
        struct {
            union ibv_gid gid;
            uint32_t lkey, rkey, number;
        } about;
    };
};

/* Work requests, followed by their SGEs; `next`, `sg_list` and the address handle are filled in there. */
struct send {
    struct ibv_send_wr wr;
    int ah;
    struct ibv_sge sge[SGES];
};

struct receive {
    struct ibv_recv_wr wr;
    struct ibv_sge sge[SGES];
};

/* All that the iterator shows of one completion of a CQ with all standard fields. */
struct extended {
    struct ibv_wc wc;
    uint64_t timestamp, wallclock;
};
