/* Shared receive queues: ibv_create_srq(3), ibv_modify_srq(3), ibv_post_srq_recv(3). Thread-safe. */
#pragma once

#include "verbs/object/object.h"
#include "verbs/queue/receive_queue.h"

struct last_events;
struct qp;
struct qp_kind;
struct owner_operations;
struct srq;

/* The differences of the types of SRQs. Each type has one constant in kinds/, and one line in kinds/kinds.def.
 * Hooks are NULL if a type has nothing to add. */
struct srq_kind {
    enum ibv_srq_type type;
    uint32_t needs;                  /* enum ibv_srq_init_attr_mask: required, besides the PD */
    enum reason incomplete;          /* why an SRQ without these is refused */
    uint32_t work_places, work_room; /* number and bytes of its places in the send queue of each of its queue pairs,
                                        besides the program's */
    const struct owner_operations *owner; /* of the engines of its queue pairs, instead of their kind's */

    /* Returns REASON_NONE if the type can serve queue pairs of this kind, or the reason why not. */
    enum reason (*refuse)(const struct qp_kind *);
    /* Makes the parts of an SRQ, before other threads know it. 0, or the errno of a refusal (events/refusal.h). */
    int (*make)(struct srq *, struct ibv_srq_init_attr_ex *);
    /* Enter and remove an SRQ, under process->control. 0 or an errno. */
    int (*enter)(struct srq *);
    void (*remove)(struct srq *);
    /* Frees what `make` has made. */
    void (*release)(struct srq *);
    void (*inherit)(struct srq *); /* see inherit.h */

    /* Further work of a queue pair on an SRQ, under qp->lock. `post` is called before the queue pair sends (true: send
     * now, and call `post` once more), `flush` when it is in error, `abandon` before it is reset or destroyed. */
    bool (*post)(struct qp *);
    void (*flush)(struct qp *);
    void (*abandon)(struct qp *);
};

/* All kinds; the last is NULL. kinds_begin (verbs/kinds/kinds.h) sets the list, which is empty before. */
extern const struct srq_kind *const *srq_kinds;

struct srq {
    struct ibv_srq ibv;
    struct object object;
    const struct srq_kind *kind;
    struct receive_queue queue;
    struct cq *cq;         /* all its receives complete there; NULL: they complete in the CQs of the queue pairs */
    struct object *domain; /* the XRC domain that it uses, besides its PD; or NULL */
    struct xrcd *xrcd;     /* IBV_SRQT_XRC: the domain where queue pairs find it by its number; otherwise NULL */
    uint32_t number;       /* IBV_SRQT_XRC */
    struct srq_tags *tags; /* IBV_SRQT_TM: srq_tags.c; otherwise NULL */
    uint32_t async_fetched;
    struct last_events *told; /* under queue.lock */
};

static inline bool srq_is_known(const struct ibv_srq *ibv)
{
    return object_is_known(&((const struct srq *)ibv)->object, ibv->handle);
}

/* Raises an asynchronous event of the SRQ. May be called under any lock except queue.lock. */
void srq_raise(struct srq *, enum ibv_event_type);

/* Keep the last events of the SRQ, for `softverbs why`. srq_note_limit: the program asked for an event at this limit;
 * under queue.lock. srq_note_empty: a message of this queue pair found no receive; not under queue.lock. */
void srq_note_limit(struct srq *, uint32_t limit);
void srq_note_empty(struct srq *, uint32_t qp_number);
