/* The checker's knowledge of the program's objects, beside the library's: where each was made, the work in flight, and
 * which handles were destroyed. All of it is under one lock, which is never held over a call of the library. Objects
 * that were made before the checker began are not known. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/hash.h"
#include "calls/objects.def"
#include "check/findings/place.h"
#include "check/shadow/wqe.h"
#include "link/vma.h"

/* The kinds of objects, and their names in calls/subject.h. */
#define SHADOW_OBJECT(KIND, type, name, number) SHADOW_KIND(KIND, name)
#define SHADOW_ALIKE(KIND)
#define SHADOW_KINDS                                                                                                   \
    CALLS_OBJECTS(SHADOW_OBJECT, SHADOW_ALIKE)                                                                         \
    SHADOW_KIND(CONTEXT, "context") SHADOW_KIND(CM_CHANNEL, "cm_channel") SHADOW_KIND(CM_ID, "cm_id")

enum shadow_kind {
#define SHADOW_KIND(KIND, name) SHADOW_##KIND,
    SHADOW_KINDS
#undef SHADOW_KIND
};

struct shadow_mr {
    char *address;
    uint64_t length, iova;
    int access;
    uint64_t since;     /* the moment when it was registered with this memory */
    struct vma mapping; /* the mapping that had its memory then; no end: not known */
    bool given_up;      /* it is reported that some of its memory was given up */
};

/* The directions of requests: an XRC queue pair has only one. */
enum shadow_ways { SHADOW_REQUESTS = 1, SHADOW_RESPONDS = 2 };

/* The connection of a queue pair. */
struct shadow_connection {
    uint32_t peer, sq_psn, rq_psn;
    enum ibv_mtu mtu;
    uint32_t access; /* qp_access_flags */
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint8_t ways; /* enum shadow_ways */
};

/* The last post of a queue that was refused, until a later one is taken. */
struct shadow_refused {
    const char *call;      /* NULL: there is no such post */
    const void *posted;    /* its place */
    uint64_t wr_id;        /* of the work request that was refused */
    uint64_t waited_since; /* nanoseconds: polls have found nothing since then; 0: there was no such poll */
    uint32_t polls;        /* the number of those polls */
    int error;             /* the errno */
    uint16_t reason;       /* the library's; 0: it gave none */
    bool receive;          /* it was a post of receives */
    bool in_row;           /* the post before it, of another wr_id, was refused, too, and no entry was polled between */
};

/* A batch of builders, from ibv_wr_start to ibv_wr_complete or ibv_wr_abort. */
struct shadow_batch {
    struct wqe_queue work;
    uintptr_t thread; /* the thread that builds; 0: there is no batch */
    bool begun;       /* a work request was begun */
    bool has_data;    /* the last work request has its data */
};

struct shadow_qp {
    struct shadow *send_cq, *recv_cq, *srq; /* NULL: not known, or not used */
    struct shadow_connection connection;
    struct ibv_qp_cap cap;
    struct wqe_queue sends, receives;
    struct shadow_batch batch;
    uint64_t builders;     /* the send_ops_flags that were asked for */
    uint32_t inline_asked; /* the max_inline_data that was asked for */
    bool inline_told;      /* it is reported that a send exceeded inline_asked */
    enum ibv_qp_type type;
    uint32_t traits; /* calls/qp_types.h; 0: the kind is not known */
    enum ibv_qp_state state;
    bool signals_all;
    bool datagrams;      /* each send names an address handle */
    bool unordered;      /* work ends in any order, and an error ends its own work alone */
    bool unsolicited;    /* WRITEs with immediate take no receive */
    bool may_lose_parts; /* of a message, whose other parts then stay in the receive of a later message */
    uint32_t signaled;   /* signalled ones of `sends` */
    uint64_t rnrs;       /* RNR NAKs that it had sent at the last report */
    struct {
        uint64_t rnrs;  /* RNR NAKs that it had sent when a thread began to wait */
        uint32_t posts; /* last_receive.posts then */
    } idle;
    struct shadow_refused refused_send, refused_receive;
    bool ended; /* since the last reset the program moved it to ERR, or the error of its work was reported */
};

struct shadow_cq {
    struct shadow *channel;
    uint64_t wc_flags;
    uint32_t create_flags;
    uint32_t entries;
    uint32_t due;       /* completions that are possible or wait to be polled: signalled sends, receives of QPs */
    uint32_t sends_due; /* of `due`, signalled sends */
    uintptr_t inside;   /* the thread in a poll of a SINGLE_THREADED CQ, or 0 */
    bool was_armed;     /* ever */
    uintptr_t armer; /* the thread that armed it while sends were due, unless it was polled or a send posted since; or 0
                      */
    uintptr_t leaver; /* the thread that polled last, if its poll left entries; or 0 */
    struct {
        bool now;        /* armed for all completions, and the event of this arming was not fetched */
        uint32_t tail;   /* the entries that were ever added when it was armed */
        uint32_t raised; /* events of earlier armings that are certain, and not fetched */
    } armed;
    struct {
        uint64_t since; /* polls were in vain since then (ns), while nothing is due; 0: they were not */
        uint32_t tail;  /* the entries that were ever added then */
    } idle;
    struct {                /* the last destroyed queue pair whose signalled sends were not all polled */
        uint32_t sends;     /* the number of these sends */
        uint32_t number;    /* of the queue pair */
        const void *posted; /* where the first of them was posted */
    } lost;
};

struct shadow_srq {
    struct wqe_queue receives;
    struct shadow_refused refused;
    uint32_t users; /* living queue pairs that use it */
    uint32_t limit; /* the limit that was armed last */
    bool reached;   /* the event of the limit was fetched, and the limit not armed again */
    bool refilled;  /* since that event was fetched it had `limit` receives or more */
};

/* A thread domain, with the thread in a call on an object of it. */
struct shadow_td {
    uintptr_t inside; /* the thread, or 0 */
    unsigned depth;
};

/* An identifier of librdmacm. */
struct shadow_cm {
    const void *channel;      /* the handle; NULL: the identifier is synchronous */
    int port_space;           /* enum rdma_port_space */
    bool connected;           /* connected, and not disconnected by either side since */
    bool asks;                /* made by a request for a connection */
    bool keeps_qp;            /* about to be destroyed, but its queue pair is not */
    uint8_t depth, resources; /* initiator_depth and responder_resources of that request */
};

/* The events of an object; check/shadow/event_count.h. */
struct shadow_events {
    unsigned fetched, acknowledged;
    uintptr_t fetcher;  /* the thread that fetched the last event */
    const void *excess; /* where the first acknowledgement too many was; NULL: there are not too many */
};

struct shadow {
    struct hash_entry by_handle;
    struct hash_entry by_number;  /* an MR's lkey, a QP's number */
    TAILQ_ENTRY(shadow) siblings; /* in the list of living objects, or of destroyed ones, the oldest first */
    const void *handle;
    const struct ibv_context *context;
    enum shadow_kind kind;
    uint32_t number;
    uint64_t serial; /* unique */
    pid_t process;   /* the process that made it */
    bool gone;
    struct shadow_events events;
    struct {
        const void *posted;
        uint32_t posts; /* of receives until now */
    } last_receive;     /* of an SRQ or a QP */
    const void *td;     /* the handle of its thread domain, or NULL */
    uint32_t sges_most; /* the most elements of a receive of an SRQ */
    bool unfollowed;    /* an SRQ whose receives may end unseen */
    struct place created, destroyed;
    union {
        struct shadow_mr mr;
        struct shadow_qp qp;
        struct shadow_cq cq;
        struct shadow_srq srq;
        struct shadow_td domain;
        struct shadow_cm cm;
    };
};

TAILQ_HEAD(shadow_list, shadow);

const char *shadow_kind_name(enum shadow_kind);

enum { SHADOW_WORDS = 48 };

/* Writes the words for the object in a sentence: its kind, and its number if programs see one. Returns `words`. */
const char *shadow_words(const struct shadow *, char words[SHADOW_WORDS]);

/* The words of shadow_words, valid until the end of the block. */
#define SHADOW_NAMED(shadow) shadow_words(shadow, (char[SHADOW_WORDS]){0})

/* Makes children of forks known as such. Before the program runs. */
void shadow_begin(void);

/* True in a child of a process that had the checker. Written while the process has one thread. */
extern bool shadow_is_child;

/* Take and release the lock of all that is declared here and in check/shadow/wqe.h. */
void shadow_lock(void);
/* Takes the lock if it is free. False: another thread has it, or this one. */
bool shadow_try_lock(void);
/* Releases the lock, then reports the findings made under it. */
void shadow_unlock(void);
void shadow_assert_locked(void);

/* --- under the lock */

/* All living objects. */
const struct shadow_list *shadow_all(void);

/* Enters a new object, and drops the record of an earlier one of this address. NULL: no memory. */
struct shadow *shadow_add(enum shadow_kind, const void *handle, uint32_t number, const struct place *created);

/* Sets the memory of an MR. */
void shadow_set_mr(struct shadow *, const struct shadow_mr *);

/* Returns true if some of these bytes may be in an MR. False only for addresses that were always below or above all
 * MRs. Under no lock. */
bool shadow_may_hold(const void *, size_t length);

/* The bytes of all MRs of this process that adapters pin, in whole pages. */
uint64_t shadow_pinned(void);

/* Ends all sends and receives of a QP: they are not in flight any more, nor due in its CQs. */
void shadow_end_work(struct shadow *qp);

/* The living object of this address, or NULL. */
struct shadow *shadow_find(enum shadow_kind, const void *handle);

/* The living object of this number, or the MR of this lkey; or NULL. */
struct shadow *shadow_find_number(enum shadow_kind, uint32_t number);

/* Makes the object findable by this number or lkey from now on. */
void shadow_name(struct shadow *, uint32_t number);

/* Drops the records of objects that had this address, which may have been destroyed unseen: another one has it now. */
void shadow_forget(const void *handle);

/* Returns true if this is the CQ, or a CQ of the channel. */
static inline bool shadow_is_of(const struct shadow *cq, const struct shadow *cq_or_channel)
{
    return cq && (cq == cq_or_channel || cq->cq.channel == cq_or_channel);
}

/* The object that has the receives of a QP: its SRQ, or itself. */
static inline struct shadow *shadow_receiver(struct shadow *qp)
{
    return qp->qp.srq ? qp->qp.srq : qp;
}

/* Marks an object as destroyed. Its record is kept until its address is used again or many other objects were
 * destroyed. */
void shadow_remove(struct shadow *, const struct place *destroyed);

/* The destroyed object of this address, or NULL. */
struct shadow *shadow_find_gone(enum shadow_kind, const void *handle);

/* The newest destroyed MR of this lkey, or NULL. */
struct shadow *shadow_find_gone_key(uint32_t lkey);

/* Returns a number that is larger each time: the present moment. */
uint64_t shadow_moment(void);
