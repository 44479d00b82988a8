/* Work in flight: the program has posted it and not yet seen it completed. */
#ifndef CHECK_WQE_H
#define CHECK_WQE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WQE_SGES = 8, WQE_PARTS = 8 };

enum wqe_flags {
    WQE_SIGNALED = 1,
    WQE_INLINE = 2,
    WQE_RECEIVE = 4,      /* of a receive queue or an SRQ */
    WQE_WRITES = 8,       /* the device writes its buffers: a receive, a READ, an atomic */
    WQE_HASHED = 16,      /* `hash` is of its buffers at the post */
    WQE_UNREADABLE = 128, /* of one that has completed: its buffers could not be read then */
    WQE_HIDDEN = 256,     /* from AddressSanitizer's view; wqe_show */
    WQE_PROTECTED = 64,   /* its pages are; outside/pages.h */
    WQE_UNSURE = 512,     /* of an SRQ: it may have completed, as another one of the same wr_id has */
    WQE_FENCE = 32,       /* it begins when earlier READs and atomics of its queue pair have ended */
};

struct wqe {
    uint64_t wr_id;
    uint64_t begun,
        returned;       /* when the post was called, and when it returned (0: not yet), as counts of such moments */
    const void *posted; /* the program's return address */
    const void *ah;     /* of a datagram, the handle; NULL: none */
    uintptr_t thread;
    const char *lowest, *behind; /* all its bytes in this process lie between, as its regions were at the post */
    uint64_t hash;               /* of all its buffers */
    uint32_t length;
    uint8_t opcode; /* enum ibv_wr_opcode, of sends */
    uint16_t flags;
    uint8_t count;                 /* of `sges` */
    struct ibv_sge sges[WQE_SGES]; /* those behind are undefined */
    uint64_t parts[WQE_PARTS];     /* of one that the device writes, with WQE_HASHED; rules/receive_buffer.c */
};

/* A new one, without a list. */
static inline void wqe_begin(struct wqe *wqe, uint64_t wr_id, const void *posted, unsigned opcode, unsigned flags)
{
    wqe->wr_id = wr_id;
    wqe->posted = posted;
    wqe->ah = NULL;
    wqe->opcode = (uint8_t)opcode;
    wqe->flags = (uint16_t)flags;
    wqe->count = 0;
    wqe->length = 0;
}

/* All of it that is defined. */
static inline void wqe_copy(struct wqe *to, const struct wqe *from)
{
    memcpy(to, from, offsetof(struct wqe, sges));
    for (unsigned at = 0; at < from->count; at++)
        to->sges[at] = from->sges[at];
    if (from->flags & WQE_WRITES && from->flags & WQE_HASHED)
        memcpy(to->parts, from->parts, sizeof to->parts);
}

/* In the order in which the posts began. */
struct wqe_queue {
    struct wqe *ring; /* of `capacity`, a power of two */
    uint32_t head, count, capacity;
};

static inline struct wqe *wqe_at(const struct wqe_queue *queue, uint32_t at)
{
    return &queue->ring[(queue->head + at) & (queue->capacity - 1)];
}

/* Where the next one is to be written; NULL: there is no memory for it. */
struct wqe *wqe_room(struct wqe_queue *);
/* It was written. */
void wqe_add(struct wqe_queue *);

/* Takes one out of the middle. */
void wqe_remove(struct wqe_queue *, uint32_t at);

/* The program will get no completion of it any more, nor of those of wqe_clear. */
void wqe_drop(struct wqe_queue *, uint32_t at);

void wqe_clear(struct wqe_queue *);

/* No finding is made of it any more; the guards of its buffers end. */
void wqe_doubt(struct wqe *);

/* The program may access its buffers again, if they were hidden. */
void wqe_show(struct wqe *);

/* The elements of its list of the first WQE_SGES; sets `length`, of all. Nothing of a list of more than `most`
 * elements, which the library refuses without a look at it. */
void wqe_set_list(struct wqe *, const struct ibv_sge *list, int64_t count, uint32_t most);

/* "RDMA WRITE", "receive". */
const char *wqe_name(const struct wqe *);

#endif
