/* Work in flight: the program has posted it and not yet seen it completed. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WQE_SGES = 8, WQE_PARTS = 8 };

enum wqe_flags {
    WQE_SIGNALED = 1,
    WQE_INLINE = 2,
    WQE_RECEIVE = 4,      /* it is a receive of a receive queue or an SRQ */
    WQE_WRITES = 8,       /* the device writes its buffers: a receive, a READ, an atomic */
    WQE_HASHED = 16,      /* `hash`, or `parts`, is of its buffers at the post */
    WQE_UNREADABLE = 128, /* it has completed, and its buffers could not be read then */
    WQE_HIDDEN = 256,     /* AddressSanitizer reports accesses to its buffers; wqe_show ends that */
    WQE_PROTECTED = 64,   /* its pages are protected; outside/pages.h */
    WQE_UNSURE = 512, /* it may have completed: work with the same wr_id has, of an SRQ or of a queue without order */
    WQE_FENCE = 32,   /* it begins after earlier READs and atomics of its queue pair */
};

struct wqe {
    uint64_t wr_id;
    uint64_t begun, returned; /* moments (shadow_moment) when the post was called, and when it returned (0: not yet) */
    uint64_t when;            /* nanoseconds of CLOCK_MONOTONIC when it was posted; 0: no hook asked for it */
    const void *posted;       /* a struct place_of_post; or NULL */
    const void *ah;           /* the address handle of a datagram, or NULL */
    uint32_t peer;            /* with `ah`: the number of the receiver's queue pair */
    uintptr_t thread;
    const char *lowest, *end; /* all its bytes in this process are between these, by its regions at the post */
    uint64_t hash;            /* the hash of all its buffers */
    uint64_t remote;          /* the address of the peer's memory that it names; `rkey` is the key */
    uint32_t rkey;
    uint32_t length;
    uint8_t opcode; /* a send's enum ibv_wr_opcode */
    uint16_t flags;
    uint8_t count;                 /* the number of `sges` */
    struct ibv_sge sges[WQE_SGES]; /* those from `count` on are undefined */
    uint64_t parts[WQE_PARTS];     /* with WQE_WRITES and WQE_HASHED; rules/receive_buffer.c */
};

/* Returns true if the library certainly took `wqe` before `other`. */
static inline bool wqe_is_before(const struct wqe *wqe, const struct wqe *other)
{
    return wqe->thread == other->thread || (wqe->returned && wqe->returned < other->begun);
}

/* Sets the members of new work, without a list. */
static inline void wqe_begin(struct wqe *wqe, uint64_t wr_id, const void *posted, unsigned opcode, unsigned flags)
{
    wqe->wr_id = wr_id;
    wqe->posted = posted;
    wqe->when = 0;
    wqe->ah = NULL;
    wqe->peer = 0;
    wqe->remote = 0;
    wqe->rkey = 0;
    wqe->opcode = (uint8_t)opcode;
    wqe->flags = (uint16_t)flags;
    wqe->count = 0;
    wqe->length = 0;
}

/* Sets the receiver of a datagram. */
static inline void wqe_set_receiver(struct wqe *wqe, const void *ah, uint32_t peer)
{
    wqe->ah = ah;
    wqe->peer = peer;
}

/* Copies all members that are defined. */
static inline void wqe_copy(struct wqe *to, const struct wqe *from)
{
    memcpy(to, from, offsetof(struct wqe, sges));
    for (unsigned at = 0; at < from->count; at++)
        to->sges[at] = from->sges[at];
    if (from->flags & WQE_WRITES && from->flags & WQE_HASHED)
        memcpy(to->parts, from->parts, sizeof to->parts);
}

/* Work in the order in which the posts began. */
struct wqe_queue {
    struct wqe *ring; /* it has `capacity` places, a power of two */
    uint32_t head, count, capacity;
    bool has_alike; /* some work had the wr_id of the work before it */
};

static inline struct wqe *wqe_at(const struct wqe_queue *queue, uint32_t at)
{
    return &queue->ring[(queue->head + at) & (queue->capacity - 1)];
}

/* The place for the next work, which wqe_add enters; NULL: no memory. */
struct wqe *wqe_room(struct wqe_queue *);
/* Enters the work that was written to wqe_room's place. */
void wqe_add(struct wqe_queue *);

/* Removes the work at this place. */
void wqe_remove(struct wqe_queue *, uint32_t at);

/* Removes work that will not complete any more, and ends what guards its buffers. wqe_clear does this for all work. */
void wqe_drop(struct wqe_queue *, uint32_t at);

void wqe_clear(struct wqe_queue *);

/* Marks work about which nothing is found any more, and ends what guards its buffers. */
void wqe_doubt(struct wqe *);

/* Allows the program to access the buffers again, if they were hidden. */
void wqe_show(struct wqe *);

/* Copies the first WQE_SGES elements of the list, and sets `length` to the bytes of all elements. A list of more than
 * `most` elements, which the library refuses unread, counts as empty. */
void wqe_set_list(struct wqe *, const struct ibv_sge *list, int64_t count, uint32_t most);

/* "RDMA WRITE", "receive". */
const char *wqe_name(const struct wqe *);
