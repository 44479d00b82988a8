/* Shared receive queues: ibv_create_srq(3), ibv_modify_srq(3), ibv_post_srq_recv(3). Thread-safe. */
#ifndef VERBS_QUEUE_SRQ_H
#define VERBS_QUEUE_SRQ_H

#include "verbs/object/object.h"
#include "verbs/queue/receive_queue.h"

struct last_events;
struct qp;
struct qp_kind;
struct owner_operations;
struct srq;

/* The differences of the types of SRQs. Each type has one constant in kinds/, and one line in the list kinds/kinds.c.
 * Hooks are NULL where a type has nothing to add. */
struct srq_kind {
    enum ibv_srq_type type;
    uint32_t needs;                       /* enum ibv_srq_init_attr_mask: needed to make it, besides the PD */
    enum reason incomplete;               /* with which it is refused without that */
    uint32_t work_places, work_room;      /* in the send queue of each of its queue pairs, besides the program's: so
                                             many places, each of so many bytes */
    const struct owner_operations *owner; /* of the engines of its queue pairs, instead of their kind's */

    /* Returns REASON_NONE if it can serve queue pairs of this kind, or the reason why not. */
    enum reason (*refuse)(const struct qp_kind *);
    /* Before anybody else knows it. 0, or the errno of a refusal (events/refusal.h). */
    int (*make)(struct srq *, struct ibv_srq_init_attr_ex *);
    /* It comes and goes, under process->control. 0 or an errno. */
    int (*enter)(struct srq *);
    void (*remove)(struct srq *);
    /* Frees what `make` has made. */
    void (*release)(struct srq *);
    void (*inherit)(struct srq *); /* see inherit.h */

    /* Further work of a queue pair on it, under qp->lock: before it sends (true: send now, and call this once more);
     * when it is in error; before it is reset or destroyed. */
    bool (*post)(struct qp *);
    void (*flush)(struct qp *);
    void (*abandon)(struct qp *);
};

/* All kinds; the last is NULL. kinds_begin (verbs/kinds/kinds.h) sets the list, which has no kind before. */
extern const struct srq_kind *const *srq_kinds;

struct srq {
    struct ibv_srq ibv;
    struct object object;
    const struct srq_kind *kind;
    struct receive_queue queue;
    struct cq *cq;         /* where all receives of its queue pairs complete; NULL: in theirs */
    struct object *domain; /* that it is a use of, besides its PD; NULL: none */
    struct xrcd *xrcd;     /* IBV_SRQT_XRC: where queue pairs find it by its number; NULL otherwise */
    uint32_t number;       /* likewise */
    struct srq_tags *tags; /* IBV_SRQT_TM: srq_tags.c; NULL otherwise */
    uint32_t async_fetched;
    struct last_events *told; /* under queue.lock */
};

static inline bool srq_is_known(const struct ibv_srq *ibv)
{
    return object_is_known(&((const struct srq *)ibv)->object, ibv->handle);
}

/* Raises an asynchronous event of the SRQ. May be called under any lock but queue.lock. */
void srq_raise(struct srq *, enum ibv_event_type);

/* The last events of the SRQ, for `softverbs why`: the program asked for an event at this limit; a message of this
 * queue pair found no receive. The first under queue.lock, the second not. */
void srq_note_limit(struct srq *, uint32_t limit);
void srq_note_empty(struct srq *, uint32_t qp_number);

#endif
