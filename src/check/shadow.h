/* The checker's knowledge of the program's objects, beside the library's: where each was made, the work in flight, and
 * which handles were destroyed. All of it is under one lock, which is never held over a call of the library. Objects
 * that were made before the checker came are not known. */
#ifndef CHECK_SHADOW_H
#define CHECK_SHADOW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/hash.h"
#include "check/findings/place.h"
#include "check/wqe.h"

/* Kinds of objects, and what each is named in calls/subject.h. */
#define SHADOW_KINDS                                                                                                   \
    SHADOW_KIND(CONTEXT, "context")                                                                                    \
    SHADOW_KIND(PD, "pd")                                                                                              \
    SHADOW_KIND(TD, "td")                                                                                              \
    SHADOW_KIND(XRCD, "xrcd")                                                                                          \
    SHADOW_KIND(MR, "mr")                                                                                              \
    SHADOW_KIND(MW, "mw")                                                                                              \
    SHADOW_KIND(DM, "dm")                                                                                              \
    SHADOW_KIND(CHANNEL, "channel")                                                                                    \
    SHADOW_KIND(CQ, "cq")                                                                                              \
    SHADOW_KIND(SRQ, "srq")                                                                                            \
    SHADOW_KIND(QP, "qp")                                                                                              \
    SHADOW_KIND(AH, "ah")                                                                                              \
    SHADOW_KIND(WQ, "wq")                                                                                              \
    SHADOW_KIND(IND_TABLE, "ind_table")                                                                                \
    SHADOW_KIND(FLOW, "flow")                                                                                          \
    SHADOW_KIND(COUNTERS, "counters")                                                                                  \
    SHADOW_KIND(CM_CHANNEL, "cm_channel")                                                                              \
    SHADOW_KIND(CM_ID, "cm_id")

enum shadow_kind {
#define SHADOW_KIND(KIND, name) SHADOW_##KIND,
    SHADOW_KINDS
#undef SHADOW_KIND
};

struct shadow_mr {
    char *address;
    uint64_t length, iova;
    int access;
};

/* Which ways requests go: an XRC queue pair has one alone. */
enum shadow_ways { SHADOW_REQUESTS = 1, SHADOW_RESPONDS = 2 };

/* The connection of a queue pair. */
struct shadow_connection {
    uint32_t peer, sq_psn, rq_psn;
    enum ibv_mtu mtu;
    uint32_t access; /* qp_access_flags */
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint8_t ways;   /* enum shadow_ways */
    uint64_t begun; /* when it was reset; 0: never since it was made */
};

struct shadow_qp {
    struct shadow *send_cq, *recv_cq, *srq; /* NULL: not known, or none */
    struct shadow_connection connection;
    struct ibv_qp_cap cap;
    struct wqe_queue sends, receives;
    struct wqe_queue batch; /* between ibv_wr_start and ibv_wr_complete */
    enum ibv_qp_type type;
    enum ibv_qp_state state;
    bool signals_all;
    bool datagrams;      /* each send names an address handle */
    bool may_lose_parts; /* of a message, whose other parts are in the receive of a later one */
    uint32_t signaled;   /* of `sends` */
    uint64_t rnrs;       /* RNR NAKs that it has sent, as far as they were reported */
};

struct shadow_cq {
    struct shadow *channel;
    uint64_t wc_flags;
    uint32_t create_flags;
    uint32_t entries;
    uint32_t due;       /* completions that may still come, or wait to be polled: signalled sends, receives of QPs */
    uint32_t sends_due; /* of them, signalled sends */
    uintptr_t inside;   /* the thread in a poll of a SINGLE_THREADED one; 0: none */
    bool was_armed;     /* ever */
    uintptr_t armer; /* the thread that armed it while sends were due, if it was not polled since, nor a send posted; 0:
                        none */
};

struct shadow_srq {
    struct wqe_queue receives;
    uint32_t users; /* queue pairs that live */
    uint32_t limit; /* as it was armed last */
    bool reached;   /* the event was fetched, and the limit not armed again */
    bool refilled;  /* since then */
};

/* Of a thread domain: the thread in a call on an object of it. */
struct shadow_td {
    uintptr_t inside; /* the thread; 0: none */
    unsigned depth;
};

/* Of an identifier of librdmacm. */
struct shadow_cm {
    const void *channel;      /* the handle; NULL: it is synchronous */
    int port_space;           /* enum rdma_port_space */
    bool connected;           /* and neither side has disconnected since */
    bool asks;                /* a request for a connection brought it */
    bool keeps_qp;            /* it is about to be destroyed, and its queue pair is not */
    uint8_t depth, resources; /* initiator_depth and responder_resources of that request */
};

struct shadow {
    struct hash_entry by_handle;
    struct hash_entry by_number;  /* of MRs the lkey, of QPs the number */
    TAILQ_ENTRY(shadow) siblings; /* all that live, or all that are gone, the oldest first */
    const void *handle;
    const struct ibv_context *context;
    enum shadow_kind kind;
    uint32_t number;
    uint64_t serial; /* no two have the same */
    pid_t process;   /* that made it */
    bool gone;
    unsigned events, acknowledged; /* of it, fetched and acknowledged */
    uintptr_t fetcher;             /* the thread that fetched the last of them */
    const void *td;                /* the handle of the thread domain that it belongs to; NULL: none */
    uint32_t sges_most;            /* of a receive of an SRQ */
    bool unfollowed;               /* an SRQ whose receives end in ways that are not seen */
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

/* Before the program runs: children of forks are known as such. */
void shadow_begin(void);

/* Whether this process was forked from one that had the checker. Written while it has one thread. */
extern bool shadow_is_child;

/* The lock of all that is declared here, also in check/wqe.h. */
void shadow_lock(void);
/* False: another thread has it, or this one. */
bool shadow_try_lock(void);
/* Then reports the findings made meanwhile. */
void shadow_unlock(void);
void shadow_assert_locked(void);

/* --- under the lock */

/* All that live. */
const struct shadow_list *shadow_all(void);

/* A new object; the record of an earlier one of this address is dropped. NULL: there is no memory. */
struct shadow *shadow_add(enum shadow_kind, const void *handle, uint32_t number, const struct place *created);

/* Where an MR lies, from now on. */
void shadow_set_mr(struct shadow *, const struct shadow_mr *);

/* Returns true if this address may lie in an MR. Only addresses that were always below or above all of them are
 * certain. Under no lock. */
bool shadow_may_hold(const void *);

/* Bytes of all MRs of this process that adapters pin, in whole pages. */
uint64_t shadow_pinned(void);

/* Sends and receives of a QP are not in flight any more, nor due in its CQs. */
void shadow_end_work(struct shadow *qp);

/* The object that lives under this address; NULL: none is known. */
struct shadow *shadow_find(enum shadow_kind, const void *handle);

/* By its number, or the lkey of an MR. */
struct shadow *shadow_find_number(enum shadow_kind, uint32_t number);

/* It is found by this number or lkey from now on. */
void shadow_name(struct shadow *, uint32_t number);

/* An object that is not followed has this address now: the record of an earlier one is dropped. */
void shadow_forget(const void *handle);

/* It stays known as one that is gone, until its address is used again. */
void shadow_remove(struct shadow *, const struct place *destroyed);

/* One that is gone, under this address; NULL: none. */
struct shadow *shadow_find_gone(enum shadow_kind, const void *handle);

/* The newest MR that is gone and had this lkey; NULL: none. */
struct shadow *shadow_find_gone_key(uint32_t lkey);

/* Counts moments: each later one is larger. */
uint64_t shadow_moment(void);

#endif
