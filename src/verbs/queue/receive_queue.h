/* Posted receives, of one queue pair or shared by many. Thread-safe by its own lock, which is taken inside qp->lock.
 *
 * A receive's place is free when its completion was polled, as on adapters: so receives that wait for a message, are
 * being filled, or have a completion in a CQ take places. A program that posts until ENOMEM thus never has more
 * completions of receives than the queue has places, in the error state, too. */
#pragma once

#include "base/likely.h"
#include "base/lock.h"
#include "diag/diag.h"
#include "transport/recv_wqe.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/queue.h>

/* A posted receive and its place in a list. */
struct receive_slot {
    struct recv_wqe receive;
    STAILQ_ENTRY(receive_slot) next;
    struct ibv_sge sge[];
};

STAILQ_HEAD(receive_list, receive_slot);

/* The owner of a queue, for the lines of refusals: "qp", "ibv_post_recv" and its number. */
struct receive_queue_owner {
    const char *kind, *call;
    uint32_t number;
};

struct receive_queue;

/* Where a queue's receives come from, if the program writes them into memory (mlx5/queues/receive_ring.h). */
struct receive_source {
    /* Enters what the program has posted meanwhile (receive_queue_enter). Under queue->lock. */
    void (*pull)(struct receive_queue *);
    /* Forgets what was posted, as the queue pair is reset. Under queue->lock. */
    void (*clear)(struct receive_source *);
    /* Frees it. */
    void (*release)(struct receive_source *);
};

/* The receive queue of a queue pair, or the heart of an SRQ. */
struct receive_queue {
    struct lock lock;
    struct receive_list posted, unused;
    uint32_t count;    /* posted and not taken */
    uint32_t entered;  /* all receives ever posted, except those that end without a completion */
    uint32_t capacity; /* how many may be `entered` and not polled */
    uint32_t slots;    /* allocated; at least `capacity` */
    uint32_t sge_max;
    uint32_t limit; /* SRQ: raise the event when count falls below; 0: not armed */
    struct receive_chunk *chunks;
    struct parent_domain *domain; /* its allocators make the chunks; or NULL */
    uint64_t resource;            /* enum domain_resource of the chunks */
    uint32_t retires;             /* completion.retires of its receives */
    _Atomic uint32_t polled;      /* receives whose completion was polled; cq_retire counts them, without a lock */
    struct receive_queue_owner owner;
    struct receive_source *source; /* NULL: calls post all receives; under lock */
    struct {
        uint32_t count, entered; /* `entered` of the queue at the last refusal */
        uint16_t reason;         /* enum reason of the last refusal */
    } refused;                   /* posts that were refused */
};

/* Makes room for `capacity` receives of at most `sge_max` SGEs. If the domain is a parent domain with allocators, the
 * memory is of this resource (enum domain_resource); it may be NULL. 0, ENOMEM, or EINVAL for memory of the allocators.
 * This and the next two functions call the program's allocators: no lock may be held. */
int receive_queue_initialize(struct receive_queue *, struct ibv_pd *, uint64_t resource, uint32_t capacity,
                             uint32_t sge_max);
void receive_queue_destroy(struct receive_queue *);

/* Changes the capacity: 0, ENOMEM, or EINVAL when more places are in use, or for memory of the allocators. */
int receive_queue_resize(struct receive_queue *, uint32_t capacity);

/* Posts a list from its head. The first that fails is *bad and no later one is posted: ENOMEM the queue is full, EINVAL
 * too many SGEs (ibv_post_recv(3), ibv_post_srq_recv(3)); errno is set, too. */
int receive_queue_post(struct receive_queue *, const struct ibv_recv_wr *, struct ibv_recv_wr **bad);

/* Gives the queue its source, unless it has one; the queue frees it. False: it has another. */
bool receive_queue_feed(struct receive_queue *, struct receive_source *);

/* Enters a receive of the source. Under queue->lock. False: it has too many SGEs, or no place is free. */
bool receive_queue_enter(struct receive_queue *, const struct ibv_recv_wr *);

/* Notes a post that was refused. */
cold void receive_queue_note_refused(struct receive_queue *, enum reason);

/* Takes the oldest receive for a message that has begun; NULL when the queue is empty, &receive_too_short when it has
 * less room than `least`. *limit_reached: the count fell below the limit, which is disarmed now. The receive is valid
 * until receive_queue_free, when it will have a completion, whose entry counts up `polled` by `retires`;
 * receive_queue_drop, when it will not; or receive_queue_return, which makes it the oldest again. */
const struct recv_wqe *receive_queue_take(struct receive_queue *, uint64_t least, bool *limit_reached);
void receive_queue_free(struct receive_queue *, const struct recv_wqe *);
void receive_queue_drop(struct receive_queue *, const struct recv_wqe *);
void receive_queue_return(struct receive_queue *, const struct recv_wqe *);

/* Reads the wr_id of the oldest receive and its room in bytes, at most UINT32_MAX; the receive stays. False: the queue
 * is empty. */
bool receive_queue_next(struct receive_queue *, uint64_t *id, uint32_t *room);

/* Notes that the completion of a freed receive is lost, as its CQ is full: no program will poll it. */
void receive_queue_lost(struct receive_queue *);

/* The state of a receive queue, for reports. */
struct receive_queue_state {
    uint32_t posted, capacity, limit;
    uint32_t refused;   /* posts that were refused since the last accepted one */
    enum reason reason; /* of the last refusal */
};
struct receive_queue_state receive_queue_look(struct receive_queue *);

/* Makes all posted receives unused (RESET). The taker of a receive gives it back. */
void receive_queue_clear(struct receive_queue *);

/* Frees all places except posted receives': no receive is taken, and completions were withdrawn from their CQ. */
void receive_queue_settle(struct receive_queue *);
