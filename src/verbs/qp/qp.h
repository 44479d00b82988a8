/* Queue pairs: ibv_create_qp(3), ibv_modify_qp(3), ibv_query_qp(3), ibv_post_send(3), ibv_post_recv(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "base/nanos.h"
#include "calls/calls.h"
#include "diag/diag.h"
#include "transport/send_queue.h"
#include "verbs/object/object.h"
#include "verbs/qp/kind.h"
#include "verbs/queue/receive_queue.h"

struct comp_cntr;
struct cq;
struct dc_target;
struct dc_way;
struct link;
struct pd;
struct peer;
struct process;
struct responder_resource;
struct spread;
struct srq;
struct xrc_domain;
struct xrc_front;
struct qp_inquiry;
struct qp_part;
struct srd_ways;

enum { QP_COUNTED = 5 }; /* operations with a separate completion counter, up to WRITE */

/* READs and WRITEs without packets (qp_direct.c). Under qp->lock. */
struct qp_direct {
    bool published;        /* since it was published, until a thread has waited for its peer after the withdrawal */
    uint32_t publications; /* how often it was published */
};

/* The way of a connected queue pair (qp_path.c, transmit.c). Under qp->lock. */
struct qp_path {
    struct peer *peer; /* receiver of its packets; NULL: unknown */
    uint32_t port;     /* bit of its device in process->ports_down; never changes */
    bool taken;        /* before it ended, the former peer took all that was sent, up to taken_psn */
    uint32_t taken_psn;
    pid_t parted_from;   /* the process of the former peer, which has ended; or 0 */
    struct link *remote; /* the way to another host; NULL: the peer is on this one */
    nanos notified_at;   /* when congestion was last reported to the peer */
    bool local;          /* the address vector leads to this host */
    uint8_t sl;          /* InfiniBand: service level of the peer, and its LID, for completions of receives */
    uint16_t lid;
    bool peer_claimed;    /* a process of this host had the peer's number when the path was set */
    bool peer_ended;      /* the peer's process has ended, and no process has its number since */
    uint16_t parted_slot; /* the slot of `parted_from` in the host's table */
    bool entered;         /* the host's table may have the queue pair among the ends of connections (life/qp_ends.h) */
    nanos begun;          /* when the queue pair was last reset; 0: never */
    struct qp_direct direct;
};

/* Queue pairs of type XRC_RECV and their handles (verbs/kinds/xrc/xrc_recv.h). */
struct qp_xrc {
    struct qp *shared;       /* the queue pair, if this is only a handle of it; otherwise NULL */
    LIST_HEAD(, qp) handles; /* its handles; under lock */
    LIST_ENTRY(qp) handle;   /* a handle's place in that list */
    struct xrc_domain *domain;
    struct xrc_front *front;        /* its part towards other processes (xrc_front.h); or NULL */
    struct srq *selected, *serving; /* the SRQ that the packet names; the SRQ of the receive in hand */
    bool stands_in; /* substitute for the queue pair of another process with its number (xrc_substitute.h) */
};

/* Dynamically connected queue pairs (kinds/dc/): an initiator or a target. */
union qp_dc {
    struct {
        struct dc_way *way; /* to the present receiver; under qp->lock */
        nanos wake;         /* when it asks again; NANOS_NEVER; under qp->lock */
    };
    struct {
        struct dc_target *target; /* its responders; under process->progress */
        uint64_t key;             /* its access key; never changes */
    };
};

/* Work requests that were posted. Under qp->lock, except `retired`. */
struct qp_sends {
    uint32_t posted;          /* in all */
    _Atomic uint32_t retired; /* posted ones whose completion was polled, or that a later completion covers */
    uint32_t unsignalled;     /* ended since the last completion entry */
    bool signal_all;
    uint32_t resets;                  /* how often the queue pair was reset */
    unsigned options;                 /* SRD: enum srd_option; written before the program has the queue pair */
    struct responder_resource *saved; /* of the responder */
    void *rooms;                      /* SRD: the engine's memory (kinds/srd/srd_owner.c) */
    struct srd_ways *ways;            /* SRD: links for answers (kinds/srd/srd_ways.c) */
};

/* The posting of sends, which a program's thread owns from ibv_wr_start to ibv_wr_complete; qp_ex.h. */
struct qp_batch {
    struct lock lock;
    bool exists;              /* the queue pair has builders */
    enum reason reason;       /* the first thing that went wrong */
    _Atomic(uintptr_t) owner; /* the thread between the two; or 0 */
    struct send_queue queue;  /* the places of its work meanwhile: in the send queue, where no other thread uses them */
    struct send_wqe *work;    /* being filled, not in `queue` yet */
    uint32_t posted;          /* qp_sends.posted after the batch */
    uint32_t resets;          /* qp_sends.resets when the batch began */
    nanos begun;              /* when the batch began */
    struct calls_holder calls; /* the calls of the builders */
};

/* Limits that hold sends back. Under qp->lock. The times count only if the queue pair is watched. */
struct qp_rate_limit {
    uint32_t rate; /* kbps; 0: unlimited */
    nanos ahead;   /* how long before its time a packet may leave */
    nanos until;   /* when all that was sent would have passed at this rate */
    nanos wake;    /* when waiting output may leave; or NANOS_NEVER */
};

/* Multicast (multicast.c). */
struct qp_groups {
    LIST_HEAD(, group) joined; /* under process->progress */
    nanos since;               /* since when a datagram waits for room in the links of members; or 0; under qp->lock */
    nanos wake;                /* when that datagram leaves without room; or NANOS_NEVER; under qp->lock */
};

/* Raw packets (kinds/ethernet/). */
struct qp_ethernet {
    uint32_t max_tso_header; /* room for the headers of IBV_WR_TSO */
    uint64_t last_frame;     /* number of the last frame that was steered here; under process->progress */
    struct spread *spread;   /* the work queues that replace the receive queue (wq.h), or NULL */
};

/* Completion counters (comp_cntr.h). */
struct qp_counting {
    uint32_t operations; /* NEWER_COUNT_ bits of the operations that are counted; written under control and lock */
    struct comp_cntr *counters[QP_COUNTED]; /* by bit */
};

/* The loop's state of the queue pair (qp_endpoint.c). */
struct qp_progress {
    bool waited;          /* an ACK has waited for one round, to be sent along with a request; under progress */
    bool refused;         /* the packet in hand was not expected; under qp->lock */
    bool last_wqe_raised; /* IBV_EVENT_QP_LAST_WQE_REACHED, since the last reset; under qp->lock */
    uint32_t postponed;   /* deadlines that were postponed while links are faulty; under qp->lock */
};

/* The objects that the queue pair uses. */
struct qp_uses {
    struct object *parent; /* its PD or parent domain, or its XRC domain */
    struct cq *send_cq, *receive_cq;
    struct srq *srq;
    struct object *table; /* of work queues (qp_raw.c) */
};

/* The memory that the queue pair may access. */
struct qp_memory {
    struct pd *pd;           /* for packets; XRC_RECV: the PD of the SRQ which they name */
    struct pd *receive_pd;   /* for receives: the SRQ's, if it has one */
    LIST_HEAD(, mw) windows; /* of type 2, bound to it; under lock */
};

struct qp_receives {
    struct receive_queue *queue; /* own or the SRQ's; NULL: receives nothing */
    struct receive_queue own;
};

/* Posts of work that were refused since the last accepted post; under lock. */
struct qp_refused_posts {
    uint32_t count;
    uint32_t posted; /* sends.posted at the last refusal */
    uint16_t reason; /* enum reason of the last refusal */
    uint8_t call;    /* its index in qp_posting_calls */
};

enum { QP_POSTING_CALLS = 3 };
extern const char *const qp_posting_calls[QP_POSTING_CALLS];

/* The reports to the program. */
struct qp_told {
    uint16_t first_error;       /* enum reason: why it left RTS; 0: it did not, or the program asked for it */
    _Atomic uint16_t unchanged; /* enum reason: why the last ibv_modify_qp was refused; 0: it was not */
    uint32_t async_fetched;     /* asynchronous events that the program has fetched; under async.lock */
    char *words;                /* the log's words for first_error; or NULL; under lock */
    struct qp_inquiry *inquiry; /* to the peer about an error (ask/qp_inquiry.h); or NULL; under lock */
    const char *known;          /* the inquiry's result; or NULL; under lock */
    struct qp_refused_posts posts;
};

/* A queue pair. Its working parts, the engine above all, follow it: struct qp_datapath (qp_datapath.h). */
struct qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex extended;
        char newest[NEWER_QP_EX_BYTES]; /* as programs of the newest release may read it */
    };
    struct object object;
    const struct qp_kind *kind;
    struct process *process;
    struct lock lock;
    uint32_t number;       /* 0: it has no number yet */
    uint32_t traits;       /* its kind's */
    _Atomic uint8_t state; /* enum ibv_qp_state; written under lock, read by posting receives without */
    bool watched;          /* by qp_is_watched; under lock */
    uint32_t create_flags; /* enum ibv_qp_create_flags */
    struct ibv_qp_cap cap;
    struct ibv_qp_attr attr;
    struct qp_uses uses;
    struct qp_memory memory;
    struct qp_sends sends;
    struct qp_batch batch;
    struct qp_receives receives;
    struct qp_path path;
    struct qp_rate_limit rate_limit;
    struct qp_told told;
    struct qp_progress progress;
    struct qp_groups groups;
    struct qp_xrc xrc;
    union qp_dc dc;
    struct qp_ethernet ethernet;
    struct qp_counting counting;
    _Atomic(struct qp_part *) part; /* a vendor's part of it (qp_part.h); or NULL */
};

/* The queue pair of a handle. */
static inline struct qp *qp_real(struct qp *qp)
{
    return qp->xrc.shared ? qp->xrc.shared : qp;
}

static inline bool qp_is_known(const struct ibv_qp *ibv)
{
    return object_is_known(&((const struct qp *)ibv)->object, ibv->handle);
}

enum { QP_REFERENCE_FROM = 65536 }; /* bytes from which process_vm_readv is faster than two copies through the ring */

static inline struct qp *qp_of(struct ibv_qp *ibv)
{
    return (struct qp *)ibv;
}

/* Sets the kind, before other threads know the queue pair. */
static inline void qp_set_kind(struct qp *qp, const struct qp_kind *kind)
{
    qp->kind = kind;
    qp->traits = kind->traits;
}

/* Sets the attributes of RESET. An EFA tries for ever where a receiver has no receive, unless it is asked otherwise. */
static inline void qp_forget_attributes(struct qp *qp)
{
    enum { FOR_EVER = 7 };
    qp->attr = (struct ibv_qp_attr){.rnr_retry = qp->traits & QP_UNORDERED ? FOR_EVER : 0};
}

/* Returns true if all packets take the long ways, as a rate, a disturbance or the recorder needs (qp_judge_watch). */
static inline bool qp_is_watched(const struct qp *qp)
{
    return qp->watched;
}

static inline bool qp_is_reliable(const struct qp *qp)
{
    return qp->traits & QP_RELIABLE;
}

/* The attributes of a change that have effects: the address vector of a dynamically connected queue pair has no
 * destination. */
static inline int qp_effective(const struct qp *qp, int mask)
{
    return qp->traits & (QP_ADDRESSED | QP_WELCOMES) ? mask & ~IBV_QP_AV : mask;
}

extern const struct object_class qp_class; /* of queue pairs that programs see */

/* Returns true if the queue pair has a receive queue that is no SRQ, or work queues with one. */
static inline bool qp_has_receives(const struct qp *qp)
{
    return !qp->uses.srq && qp->traits & QP_RECEIVES;
}
