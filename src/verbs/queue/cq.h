/* Completion queues: ibv_create_cq(3). All calls on them are thread-safe, except on a CQ made SINGLE_THREADED, whose
 * polling the program serialises. */
#pragma once

#include "base/lock.h"
#include "base/nanos.h"
#include "calls/calls.h"
#include "runtime/schedule.h"
#include "verbs/object/domain.h"
#include "verbs/queue/cq_ring.h"
#include <stdatomic.h>

enum cq_armed { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED };

struct cq;
struct disturbance;
struct last_events;

/* A vendor's part of a completion queue, which takes the entries (mlx5/queues/cq_memory.h). */
struct cq_part {
    /* Takes all entries; the newest is notable or not. Under cq->lock, with all takers kept away (slow.takes). */
    void (*put)(struct cq *, bool notable);
    /* Ends the part's use by the helper; the queue is about to be destroyed. Under process->progress. */
    void (*retire)(struct cq *);
    /* Frees the part. */
    void (*release)(struct cq_part *);
};

struct cq {
    union {
        struct ibv_cq ibv;
        struct ibv_cq_ex extended;
    };
    struct object object;
    struct process *process;
    struct parent_domain *domain; /* with which the CQ was made, or NULL */
    struct domain_block memory;   /* of the ring */
    uint64_t wc_flags;
    uint32_t create_flags;
    struct {
        bool shows; /* the iterator's usual way is not enough; cq_ex.c */
        bool puts;  /* entries are put in the long way; cq_push.h; under lock */
        bool takes; /* entries are taken out under `lock`; cq_entries.h */
        bool lacks; /* the iterator has no readers but for what wc_flags asks; cq_ex.c */
    } slow;

    _Alignas(64) struct completion current; /* the entry that the batch shows */
    struct lock consumer;
    _Atomic(uintptr_t) batch_owner; /* thread between start_poll and end_poll; or 0 */
    atomic_bool taking;             /* the holder of `consumer` looks at entries at this moment */

    _Alignas(64) struct lock lock;
    atomic_bool stopped;        /* no thread may look at entries; under lock */
    _Atomic uint32_t delivered; /* the newest round that put a receive in; set before that */
    uint64_t wallclock;         /* the wall clock of the newest entry, if wc_flags ask for it */
    uint8_t armed;              /* enum cq_armed */
    uint32_t notable_end;       /* the position after the newest notable entry */
    uint32_t unreported;        /* the position after the entry that raised the last event */
    struct {
        uint16_t count, period; /* `period` in microseconds; if one is 0, no event is held back */
        bool only_new;          /* arming raises no event for entries that are there; never changes */
        uint32_t held;          /* entries that would have raised the event since the CQ was armed */
        nanos deadline;         /* when the event is raised at the latest */
        struct schedule_timer timer;
        struct disturbance *disturbance; /* its hooks (object/disturbance.h); NULL: nothing disturbs it */
    } moderation;

    struct cq_ring ring;

    struct comp_channel *channel;
    struct {
        TAILQ_ENTRY(cq) ready;
        uint32_t waiting; /* not fetched yet */
        uint32_t fetched;
    } events;               /* for the channel; under channel->lock */
    uint32_t async_fetched; /* under async.lock */

    struct {
        uint32_t asked, raised, lost; /* how often an event was asked for, raised, lost by a script */
        bool lost_last;               /* the last event that was due is lost, or held back as late */
        bool overrun;
        struct last_events *events;
    } told; /* under `lock` */

    struct calls_holder calls; /* the calls of its iterator */
    struct cq_part *part;      /* or NULL; under lock */
    uint64_t vendor[3];        /* a vendor's part of it (efa/parts.c, mlx5/queues/cq_memory.h) */
};

static inline bool cq_is_known(const struct ibv_cq *ibv)
{
    return object_is_known(&((const struct cq *)ibv)->object, ibv->handle);
}
