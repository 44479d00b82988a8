/* Every object of the verbs on one page.
 *
 * An object embeds its public struct as its first member, so a public pointer is the object's address. Ownership is a
 * tree with use counts: context > pd > mr, qp, srq, ah; context > cq, channel; what is made through a parent domain
 * counts as a use of that, which is a use of its pd. Destroying an object in use is EBUSY.
 *
 * The order of the locks stands in base/lock_order.h. Destroying what the progress may be using is death in two phases:
 * out of its table, then its users' locks taken and released once (progress_quiesce), then free. In the child of a fork
 * see inherit.h. */
#ifndef VERBS_OBJECT_OBJECT_H
#define VERBS_OBJECT_OBJECT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/bucket.h"
#include "base/lock.h"
#include "base/nanos.h"
#include "diag/diag.h"
#include "ipc/node.h"
#include "link/udp/udp.h"
#include "process/process.h"
#include "runtime/endpoint.h"
#include "tap/traffic.h"
#include "transport/rc/rc.h"
#include "transport/tm/tags.h"
#include "transport/unreliable/raw.h"
#include "transport/unreliable/uc.h"
#include "transport/unreliable/ud.h"

enum object_kind {
    OBJECT_NONE,
    OBJECT_PD,
    OBJECT_MR,
    OBJECT_CHANNEL,
    OBJECT_CQ,
    OBJECT_SRQ,
    OBJECT_QP,
    OBJECT_AH,
    OBJECT_MW,
    OBJECT_DM,
    OBJECT_WQ,
    OBJECT_IND_TABLE,
    OBJECT_FLOW,
    OBJECT_COUNTERS,
    OBJECT_XRCD,
    OBJECT_TD,
    OBJECT_PARENT_DOMAIN,
    OBJECT_DMAH,
    OBJECT_COMP_CNTR,
    OBJECT_KINDS
};

/* What every object has behind its public part. Guarded by process->control. */
struct object {
    enum object_kind kind;
    uint32_t handle; /* as handed out; the public copy may have been overwritten by the program */
    uint32_t uses;   /* objects that depend on this one */
    struct context *context;
    struct object *origin;       /* this is but an imported name of that object; NULL: it is one itself. See import.h */
    uint32_t names;              /* imported */
    bool gone;                   /* destroyed; its memory stays while it has names */
    bool nameless;               /* the name that it was made with is not used any more */
    LIST_ENTRY(object) siblings; /* in context->objects[kind], or context->imports */
};

LIST_HEAD(object_list, object);

/* Asynchronous events of a context, in order; the eventfd counts them. */
struct async_event {
    struct ibv_async_event ibv;
    STAILQ_ENTRY(async_event) next;
};

struct async {
    int fd; /* EFD_SEMAPHORE; the program polls it */
    struct lock lock;
    STAILQ_HEAD(, async_event) events;
};

/* What the file behind a context's cmd_fd is known by. */
struct context_identity {
    dev_t device;
    ino_t inode;
};

struct context {
    struct verbs_context ibv;
    struct context_identity identity; /* the same for all that were imported from each other */
    struct process *process;
    const struct device *device;
    struct async async;
    struct object_list objects[OBJECT_KINDS];
    uint32_t counts[OBJECT_KINDS];
    struct object_list imports; /* names of objects of the family */
    LIST_ENTRY(context) siblings;
};

/* A protection domain, or the beginning of a parent domain around one. */
struct pd {
    struct ibv_pd ibv;
    struct object object;
    struct parent_domain *parent; /* NULL: a protection domain */
};

struct td {
    struct ibv_td ibv;
    struct object object;
};

struct parent_domain {
    struct pd pd;
    struct pd *protection;
    struct td *td;                                                        /* NULL: none */
    void *(*allocate)(struct ibv_pd *, void *, size_t, size_t, uint64_t); /* NULL: no allocators */
    void (*release)(struct ibv_pd *, void *, void *, uint64_t);
    void *context;
    _Atomic uint32_t blocks; /* that the program's allocator gave and that are in use */
    bool abandoned;          /* its context is being closed: the program is not called back any more */
};

/* Memory of a queue; domain.h. */
struct domain_block {
    void *memory;
    struct parent_domain *owner; /* whose allocator gave it; NULL: malloc */
    uint64_t resource;
};

enum region_kind { REGION_MEMORY, REGION_WINDOW, REGION_NULL };

/* What a key stands for: a memory region, or what a memory window is bound to. */
struct region {
    struct pd *pd;
    uint64_t base; /* the address that keys speak of: virtual address, iova, or 0 */
    uint64_t length;
    char *memory;
    unsigned access;
    _Atomic uint32_t key; /* a window's changes when it is bound */
    uint8_t kind;         /* enum region_kind */
};

struct mr {
    struct ibv_mr ibv;
    struct object object;
    struct object *parent; /* what it counts as a use of: its PD or parent domain */
    struct region region;
    struct dm *dm;       /* of which it is a part; NULL: of none */
    struct object *dmah; /* the DMA handle that it was made with, and is a use of; NULL: none */
    void *mapped;        /* of a file, for this region; NULL: nothing */
    size_t mapped_length;
    _Atomic uint32_t windows; /* bound to it; counted up under a qp->lock under which its key was found */
};

struct dm {
    struct ibv_dm ibv;
    struct object object;
    char *memory;
    uint64_t length;
};

/* A memory window; its region is empty while it is not bound. */
struct mw {
    struct ibv_mw ibv;
    struct object object;
    struct object *parent; /* what it counts as a use of: its PD or parent domain */
    struct lock lock;      /* all below: type 1 windows are used by many queue pairs */
    struct region region;  /* its pd never changes */
    struct mr *mr;         /* bound to; NULL: not bound */
    struct qp *qp;         /* type 2: the queue pair that bound it, which alone may use it */
    LIST_ENTRY(mw) bound;  /* in qp->windows */
};

struct channel {
    struct ibv_comp_channel ibv;
    struct object object;
    struct lock lock;
    TAILQ_HEAD(, cq) ready; /* CQs with events that nobody has fetched */
};

/* One completion as it lies in the ring. */
struct completion {
    uint64_t id;
    _Atomic uint32_t *retired; /* what polling the entry counts up by `retires`; NULL: nothing */
    uint32_t retires;
    uint32_t qp_number;
    uint8_t status, opcode, sl, path_bits;
    uint16_t reason, slid;
    uint32_t length;
    uint32_t immediate_or_key;
    uint32_t source;
    uint16_t flags, pkey_index;
    uint16_t cvlan;
    bool lasting; /* stays when its queue pair is reset or destroyed: it is of a tag-matching SRQ, and tells of its list
                   */
    uint32_t flow_tag;
    uint64_t timestamp, wallclock; /* nanoseconds; only when the CQ asks for them */
    uint64_t tag;
    uint32_t tag_private;
};

enum cq_armed { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED };

struct cq {
    union {
        struct ibv_cq ibv;
        struct ibv_cq_ex extended;
    };
    struct object object;
    struct process *process;
    struct parent_domain *domain; /* that it was made with, or NULL */
    struct domain_block memory;   /* of the ring */
    struct completion *ring;
    uint32_t capacity; /* a power of two */
    uint64_t wc_flags;
    uint32_t create_flags;
    bool shows_slowly; /* the iterator's usual way is not enough; cq_ex.c */
    bool guarded;      /* entries are taken out under `lock`; cq_entries.h */

    _Alignas(64) struct completion current; /* the entry that the batch shows */
    struct lock consumer;
    _Atomic(uintptr_t) batch_owner; /* thread between start_poll and end_poll; 0: nobody */
    _Atomic uint32_t head;
    atomic_bool taking; /* the holder of `consumer` looks at entries at this moment */

    _Alignas(64) struct lock lock;
    atomic_bool stopped; /* nobody may look at entries; under lock */
    _Atomic uint32_t tail;
    _Atomic uint32_t delivered; /* the newest round that put a receive in; before tail */
    uint64_t wallclock;         /* of the newest entry, if the CQ asks for it */
    uint8_t armed;              /* enum cq_armed */
    bool overrun;
    struct {
        uint16_t count, period; /* microseconds; either of them 0: nothing is held back */
        uint32_t held;          /* entries that would have raised the event since the CQ was armed */
        nanos deadline;         /* when it is raised at the latest */
        struct schedule_timer timer;
    } moderation;

    struct channel *channel;
    TAILQ_ENTRY(cq) ready;   /* under channel->lock, as the two below */
    uint32_t events_waiting; /* not fetched yet */
    uint32_t events_fetched;
    uint32_t async_fetched; /* under async.lock */
};

/* A posted receive and where it waits. */
struct receive_slot {
    struct recv_wqe receive;
    STAILQ_ENTRY(receive_slot) next;
    struct ibv_sge sge[];
};

STAILQ_HEAD(receive_list, receive_slot);

/* The receive queue of a queue pair, or the heart of an SRQ. */
struct receive_queue {
    struct lock lock;
    struct receive_list posted, unused;
    uint32_t count;    /* posted and not taken */
    uint32_t taken;    /* by a message that has begun */
    uint32_t capacity; /* most of both together */
    uint32_t slots;    /* allocated; at least capacity */
    uint32_t sge_max;
    uint32_t limit; /* SRQ: raise the event when count falls below; 0: not armed */
    struct receive_chunk *chunks;
    struct parent_domain *domain; /* whose memory they are, or NULL */
    uint64_t resource;            /* enum domain_resource, as what */
};

struct srq {
    struct ibv_srq ibv;
    struct object object;
    struct receive_queue queue;
    struct cq *cq;         /* where all receives of its queue pairs complete; NULL: in theirs */
    struct xrcd *xrcd;     /* IBV_SRQT_XRC: where queue pairs find it by its number; NULL otherwise */
    uint32_t number;       /* likewise */
    struct srq_tags *tags; /* IBV_SRQT_TM: srq_tags.c; NULL otherwise */
    uint32_t async_fetched;
};

/* An XRC domain, as often as it was opened. */
struct xrcd {
    struct ibv_xrcd ibv;
    struct object object;
    struct xrc_domain *domain; /* xrcd.c */
};

struct ah {
    struct ibv_ah ibv;
    struct object object;
    struct ibv_ah_attr attr;
    uint8_t grh[40]; /* as the receiver sees it, but for the lengths, which are filled in at sending */
    bool multicast;
    bool local;          /* leads to this host */
    struct link *remote; /* leads to others; NULL: it doesn't */
};

struct group {
    LIST_ENTRY(group) mine;     /* in qp->groups */
    LIST_ENTRY(group) siblings; /* in process->groups */
    struct qp *qp;
    union ibv_gid gid;
};

enum { QP_COUNTED = 5 }; /* operations with a completion counter of their own, up to WRITE */

struct qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex extended;
        char newest[NEWER_QP_EX_BYTES]; /* as programs of the newest release may look at it */
    };
    struct engine_owner owner; /* what the engine calls; see qp_host.c */
    struct lock lock;
    uint32_t number;
    struct process *process;
    struct object object;
    uint32_t port;         /* bit of its device in process->ports_down */
    struct object *parent; /* what the queue pair counts as a use of: its PD or parent domain, or its XRC domain */
    struct pd *pd;         /* whose memory packets may touch; XRC_RECV: that of the SRQ which they name */
    struct pd *receive_pd; /* whose memory receives may name: the SRQ's, if there is one */
    struct cq *send_cq, *receive_cq;
    struct srq *srq;
    struct qp *shared;              /* this is but a handle of that queue pair of type XRC_RECV; see qp_shared.h */
    LIST_HEAD(, qp) handles;        /* XRC_RECV: its handles; under lock */
    LIST_ENTRY(qp) handle;          /* among them */
    struct xrc_domain *domain;      /* XRC_RECV */
    struct srq *selected, *serving; /* XRC_RECV: the SRQ that the packet names; that of the receive in hand */
    struct peer *peer;              /* connected services: whom packets go to; NULL: nobody known */
    struct link *remote;            /* connected services: the way to another host; NULL: the peer is on this one */
    nanos notified_at;              /* when it was last told of congestion */
    uint8_t type;                   /* enum ibv_qp_type */
    _Atomic uint8_t state;          /* enum ibv_qp_state; written under lock, read by posting receives without */
    bool signal_all;
    bool last_wqe_raised;
    bool local; /* the address vector leads to this host */
    struct ibv_qp_cap cap;
    uint32_t posted;          /* send work requests ever posted */
    _Atomic uint32_t retired; /* of them, those whose completion was polled, or that a later completion covers */
    uint32_t unsignalled;     /* ended since the last completion entry */
    struct domain_block send_memory;
    struct { /* of who posts sends: from ibv_wr_start to ibv_wr_complete the program's; qp_ex.h */
        struct lock lock;
        _Atomic(uintptr_t) owner; /* the thread between the two; 0: nobody */
        struct send_queue queue;  /* where its work goes meanwhile: places of the send queue that nobody else uses */
        struct send_wqe *work;    /* being filled, not entered there yet */
        uint32_t posted;          /* as `posted` above will be */
        uint32_t resets;          /* as they were when it began */
        nanos begun;              /* when it began */
        enum reason reason;       /* the first thing that went wrong */
    } batch;
    struct send_queue staged; /* memory for batches, where the engine posts work of its own; or no memory */
    uint32_t resets;          /* how often the queue pair was reset */
    bool has_builders;
    struct responder_resource *saved;
    struct tags_port tags;          /* SRQ with tag matching: what messages and rendezvous are under way */
    uint32_t tags_working;          /* places of the send queue that rendezvous have */
    struct receive_queue *receives; /* own or the SRQ's; NULL: receives nothing */
    struct receive_queue own_receives;
    union {
        struct rc rc;
        struct uc uc;
        struct ud ud;
        struct raw raw;
    };
    struct {
        uint32_t rate; /* kbps; 0: not paced */
        nanos ahead;   /* so long before its time may a packet go */
        nanos until;   /* when all that was sent would have passed at this rate */
        nanos wake;    /* when what waits may go; NANOS_NEVER: nothing waits */
    } pace;
    struct {         /* UD: a multicast waits for room in the links of members; multicast.c */
        nanos since; /* 0: none does */
        nanos wake;  /* when it goes without them; NANOS_NEVER */
    } crowd;
    struct traffic_flow flow;
    uint32_t counted; /* operations that completion counters count: NEWER_COUNT_ bits; written under control and lock */
    struct comp_cntr *counters[QP_COUNTED]; /* by bit; comp_cntr.h */
    uint16_t first_error;    /* enum reason: why it left RTS; 0: it hasn't, or the program asked for it */
    bool peer_claimed;       /* its number was a process's of this host when the path was set */
    bool peer_ended;         /* the process that it sent to has ended, and nobody has its number since */
    bool refused;            /* the packet in hand was not one that had to come; progress.c */
    uint32_t postponed;      /* deadlines, while links are faulty */
    uint32_t create_flags;   /* enum ibv_qp_create_flags */
    uint32_t max_tso_header; /* room for the headers of IBV_WR_TSO */
    uint64_t last_frame;     /* raw packets: number of the last one that was steered here; under process->progress */
    struct spread *spread;   /* raw packets: the work queues that stand for the receive queue (wq.h), or NULL */
    struct ibv_qp_attr attr;
    struct endpoint endpoint;
    bool waited; /* to be flushed for a round already, with an ACK that waits for a request; under process->progress */
    LIST_HEAD(, group) groups; /* under process->progress */
    LIST_HEAD(, mw) windows;   /* of type 2, bound to it; under lock */
    uint32_t async_fetched;
};

/* The queue pair behind a handle. */
static inline struct qp *qp_real(struct qp *qp)
{
    return qp->shared ? qp->shared : qp;
}

#endif
