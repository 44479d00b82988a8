/* The send queue: work requests from posting to retirement, in memory that the owner of the queue pair provides. */
#pragma once

#include <infiniband/verbs.h> /* enums, struct ibv_sge; no function of it is called */
#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

enum { WORK_INTO_RECEIVE = 1 << 7 }; /* in work->flags: a READ with the SGEs of a receive */
enum { WORK_ADDRESSED = 1 << 6 };    /* in work->flags: it names its receiver; see owner_operations.reaches */
enum { WORK_SCRIPTED = 1 << 7 };     /* in work->opcode; see send_wqe_is_scripted */

/* Operations of vendors, in work->opcode: the owner executes them in their turn, and they send no packet. */
enum { WORK_VENDOR_CONFIGURE = 11, WORK_VENDOR_COPY = 12, WORK_VENDOR_NOTHING = 13, WORK_VENDOR_MALFORMED = 16 };

/* A posted work request. The owner fills the first part, which never changes afterwards, so that a packet is a function
 * of (work, PSN) and a retry is the same call as the first transmission. The requester keeps the second part. */
struct send_wqe {
    uint64_t id;
    uint8_t opcode;     /* enum ibv_wr_opcode, and WORK_SCRIPTED */
    uint8_t flags;      /* enum ibv_send_flags, WORK_INTO_RECEIVE, WORK_ADDRESSED */
    uint8_t sge_count;  /* 0 when INLINE */
    uint32_t length;    /* bytes of the message (of all SGEs, or inline) */
    uint32_t immediate; /* network order; or the key to invalidate, host order */
    uint32_t rkey;
    uint64_t remote_address;
    uint64_t compare_or_add; /* a flush: bytes of the range, 32 bits */
    uint64_t swap; /* a flush: placement, selectivity << 8; SRD: the receiver's address, which the owner numbers */
    const void *address;  /* only the owner's: UD's address handle, BIND_MW's window */
    uint32_t remote_qp;   /* UD, SRD, DC */
    uint32_t remote_qkey; /* UD, SRD; DC: the lower half of the access key, */
    uint32_t remote_srq;  /* XRC; DC: the responder */
    uint32_t owner_value; /* only the owner's: for example an index of parameters of a local operation; DC: the upper */

    /* the requester's part */
    union {
        struct {
            uint32_t stride;  /* packets of the response that each request asks for; fixed at first transmission, as a
                                 repeated READ must be within one that was sent before */
            uint32_t segment; /* payload bytes of each packet except the last; fixed at first transmission, unless
                                 references are lost (requester.c) */
            uint32_t first_psn;
            uint32_t packets; /* number of PSNs: of the message, or of a READ's response */
        };
        struct {
            uint32_t link;   /* position of the next work of its list */
            uint32_t handed; /* bytes that packets were made of */
            uint32_t out;    /* packets that wait for an answer */
            uint32_t moved;  /* its new position, while the queue is made compact */
        } srd;
    };
    bool started;      /* has PSNs; SRD: it has ended */
    bool by_reference; /* its payload is sent by reference; fixed at first transmission, unless references are lost */
    union {
        struct {
            uint8_t busy; /* SRD: how often its receiver had no receive */
            uint8_t last; /* SRD: whether the packet with its immediate was made */
        };
        uint16_t stream; /* only the owner's: DC */
    };
    uint32_t posted; /* only the owner's: the time of posting (send_queue_when) */

    union {
        struct ibv_sge sge[0];  /* sge_count of them */
        uint8_t inline_data[0]; /* length bytes */
    };
};

/* Returns true if a rule of a script decides the end of this work: it is not done, and the owner ends it in its
 * turn. */
static inline bool send_wqe_is_scripted(const struct send_wqe *work)
{
    return work->opcode & WORK_SCRIPTED;
}

/* The enum ibv_wr_opcode that the program posted. */
static inline unsigned send_wqe_posted_opcode(const struct send_wqe *work)
{
    return work->opcode & ~(unsigned)WORK_SCRIPTED;
}

/* A time in units of 2^20 nanoseconds (about a millisecond), which wraps after 52 days. */
static inline uint32_t send_queue_when(nanos now)
{
    return (uint32_t)(now >> 20);
}

/* How long ago work was posted: the work keeps only some bits of that time, and the clock of posts may be some
 * milliseconds before the exact one (clock_about_now). */
static inline nanos send_queue_since(const struct send_wqe *work, nanos now)
{
    enum { AHEAD = 64 };
    uint32_t before = send_queue_when(now) - work->posted;
    return before > UINT32_MAX - AHEAD ? 0 : (nanos)before << 20;
}

/* A ring of slots of one size. Positions count up for ever; the slot is position % capacity. */
struct send_queue {
    uint8_t *memory;   /* capacity * stride bytes, 8-aligned, the owner's */
    uint32_t stride;   /* bytes of a slot: work plus the larger of its SGEs and inline data, a multiple of 8 */
    uint32_t capacity; /* a power of two */
    uint32_t head;     /* of the oldest work that has not ended */
    uint32_t next;     /* of the work to be transmitted next: for the first time, or again after go-back-N */
    uint32_t tail;     /* where the next work is posted */
};

static inline struct send_wqe *send_queue_at(const struct send_queue *queue, uint32_t position)
{
    return (struct send_wqe *)(queue->memory + (uint64_t)(position & (queue->capacity - 1)) * queue->stride);
}

/* The slot for the next work request, or NULL when all slots are taken. Fill its first part, then commit. */
static inline struct send_wqe *send_queue_reserve(const struct send_queue *queue)
{
    return queue->tail - queue->head == queue->capacity ? 0 : send_queue_at(queue, queue->tail);
}

static inline void send_queue_commit_at(struct send_queue *queue, struct send_wqe *reserved)
{
    reserved->started = reserved->by_reference = false;
    queue->tail++;
}

static inline void send_queue_commit(struct send_queue *queue)
{
    send_queue_commit_at(queue, send_queue_at(queue, queue->tail));
}
