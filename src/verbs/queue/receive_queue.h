/* Posted receives, of one queue pair or shared by many. Thread-safe by its own lock, which is taken inside qp->lock.
 *
 * A receive's place is free when its completion was polled, as on adapters: so the queue is full with as many receives
 * as wait for a message, are being filled, and lie completed in a CQ. A program that posts until ENOMEM thus never has
 * more completions of receives than the queue has places, in the error state, too. */
#ifndef VERBS_QUEUE_RECEIVE_QUEUE_H
#define VERBS_QUEUE_RECEIVE_QUEUE_H

#include "base/lock.h"
#include "transport/recv_wqe.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/queue.h>

/* A posted receive and where it waits. */
struct receive_slot {
    struct recv_wqe receive;
    STAILQ_ENTRY(receive_slot) next;
    struct ibv_sge sge[];
};

STAILQ_HEAD(receive_list, receive_slot);

/* Whose queue it is, for the lines of refusals: "qp", "ibv_post_recv" and its number. */
struct receive_queue_owner {
    const char *kind, *call;
    uint32_t number;
};

/* The receive queue of a queue pair, or the heart of an SRQ. */
struct receive_queue {
    struct lock lock;
    struct receive_list posted, unused;
    uint32_t count;    /* posted and not taken */
    uint32_t entered;  /* posted, all that there were, but for those that end without a completion */
    uint32_t capacity; /* most of `entered` that are not polled */
    uint32_t slots;    /* allocated; at least capacity */
    uint32_t sge_max;
    uint32_t limit; /* SRQ: raise the event when count falls below; 0: not armed */
    struct receive_chunk *chunks;
    struct parent_domain *domain; /* whose memory they are, or NULL */
    uint64_t resource;            /* enum domain_resource, as what */
    uint32_t retires;             /* as in struct completion, of the entries of its receives */
    _Atomic uint32_t polled;      /* of `entered`, those whose completion was polled. Counted where that happens, by no
                                     lock (cq_ring.h) */
    struct receive_queue_owner owner;
};

/* Room for `capacity` receives of at most `sge_max` SGEs, in memory of that resource (enum domain_resource) of the
 * domain, if it is a parent domain with allocators; NULL: none. 0 or ENOMEM, EINVAL from those. These three call the
 * program's allocators: no lock may be held. */
int receive_queue_initialize(struct receive_queue *, struct ibv_pd *, uint64_t resource, uint32_t capacity,
                             uint32_t sge_max);
void receive_queue_destroy(struct receive_queue *);

/* From now on at most `capacity`: ENOMEM, or EINVAL when more are posted already. */
int receive_queue_resize(struct receive_queue *, uint32_t capacity);

/* Posts a list from its head. The first that fails is *bad and nothing behind it is posted: ENOMEM the queue is full,
 * EINVAL too many SGEs (ibv_post_recv(3), ibv_post_srq_recv(3)); errno is set, too. */
int receive_queue_post(struct receive_queue *, const struct ibv_recv_wr *, struct ibv_recv_wr **bad);

/* The oldest, now taken by a message that has begun; NULL when none is posted, &receive_too_short when it has less room
 * than that. *limit_reached: the count fell below the limit, which is disarmed now. The receive is valid until
 * receive_queue_free: it will have a completion, whose entry counts up `polled` by `retires`; until receive_queue_drop:
 * it has none; or until receive_queue_return, which makes it the oldest again. */
const struct recv_wqe *receive_queue_take(struct receive_queue *, uint64_t least, bool *limit_reached);
void receive_queue_free(struct receive_queue *, const struct recv_wqe *);
void receive_queue_drop(struct receive_queue *, const struct recv_wqe *);
void receive_queue_return(struct receive_queue *, const struct recv_wqe *);

/* The oldest, which stays: its wr_id and its bytes, UINT32_MAX at most. False: none is posted. */
bool receive_queue_next(struct receive_queue *, uint64_t *id, uint32_t *room);

/* The completion of one that was freed is lost, as its CQ is full: no program will poll it. */
void receive_queue_lost(struct receive_queue *);

/* Its state, for reports. */
struct receive_queue_state {
    uint32_t posted, capacity, limit;
};
struct receive_queue_state receive_queue_look(struct receive_queue *);

/* Everything posted back to unused (RESET). The taker of a receive gives it back. */
void receive_queue_clear(struct receive_queue *);

/* Nothing is taken, and the completions were withdrawn from their CQ: only what is posted has a place. */
void receive_queue_settle(struct receive_queue *);

#endif
