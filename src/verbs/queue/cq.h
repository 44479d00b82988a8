/* Completion queues: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_poll_cq(3), ibv_req_notify_cq(3), ibv_resize_cq(3).
 * Thread-safe, but for a CQ made SINGLE_THREADED, whose polling the program serialises. */
#ifndef VERBS_QUEUE_CQ_H
#define VERBS_QUEUE_CQ_H

#include "base/lock.h"
#include "base/nanos.h"
#include "process/process.h"
#include "runtime/schedule.h"
#include "verbs/object/domain.h"
#include "verbs/queue/cq_ring.h"
#include <stdatomic.h>

struct qp;

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
    uint64_t wc_flags;
    uint32_t create_flags;
    bool shows_slowly; /* the iterator's usual way is not enough; cq_ex.c */
    bool guarded;      /* entries are taken out under `lock`; cq_entries.h */

    _Alignas(64) struct completion current; /* the entry that the batch shows */
    struct lock consumer;
    _Atomic(uintptr_t) batch_owner; /* thread between start_poll and end_poll; 0: nobody */
    atomic_bool taking;             /* the holder of `consumer` looks at entries at this moment */

    _Alignas(64) struct lock lock;
    atomic_bool stopped;        /* nobody may look at entries; under lock */
    _Atomic uint32_t delivered; /* the newest round that put a receive in; before it is put */
    uint64_t wallclock;         /* of the newest entry, if the CQ asks for it */
    uint8_t armed;              /* enum cq_armed */
    uint32_t notable_end;       /* the position behind the newest notable entry */
    uint32_t unreported;        /* the position behind the entry that raised the last event */
    bool overrun;
    struct {
        uint16_t count, period; /* microseconds; either of them 0: nothing is held back */
        uint32_t held;          /* entries that would have raised the event since the CQ was armed */
        nanos deadline;         /* when it is raised at the latest */
        struct schedule_timer timer;
    } moderation;

    struct cq_ring ring;

    struct comp_channel *channel;
    TAILQ_ENTRY(cq) ready;   /* under channel->lock, as the two below */
    uint32_t events_waiting; /* not fetched yet */
    uint32_t events_fetched;
    uint32_t async_fetched; /* under async.lock */
};

static inline bool cq_is_known(const struct ibv_cq *ibv)
{
    return object_is_known(&((const struct cq *)ibv)->object, ibv->handle);
}

struct ibv_cq_ex *cq_create(struct ibv_context *, const struct ibv_cq_init_attr_ex *); /* NULL and errno */
int cq_destroy(struct ibv_cq *);             /* EBUSY; waits until all events are acknowledged */
int cq_resize(struct ibv_cq *, int entries); /* keeps what is queued; EINVAL below that */
int cq_poll(struct ibv_cq *, int count, struct ibv_wc *);

/* Arms, once: the next entry raises the event, or one that lies there already (cq_event.h). */
int cq_arm(struct ibv_cq *, int solicited_only);

/* Puts an entry in; raises the event if the CQ is armed for it. `notable`: a solicited receive or an error.
 * A full CQ overruns: false, the entry is lost, and process->loop.overrun asks the progress to fail the attached queue
 * pairs. */
bool cq_push(struct cq *, const struct completion *, bool notable);

/* The same for who fills the entry in its place, all of it: NULL when it is lost, else cq_end_push must follow at once.
 * Holds cq->lock from the one to the other. */

/* Before a receive is put in: the round that brings it may not have answered yet. */
static inline void cq_note_round(struct cq *cq)
{
    uint32_t round = atomic_load_explicit(&cq->process->loop.delivering, memory_order_relaxed);
    atomic_store_explicit(&cq->delivered, round, memory_order_relaxed);
}

/* After an entry was taken out and before the program has it: what it tells of has been acknowledged, as far as that
 * goes to this host, so that the program may end at once. On adapters, too, the acknowledgement leaves first. Waits for
 * the end of another thread's round, some microseconds at most. */
void cq_wait_for_round(const struct cq *, uint32_t round);

/* From cq_stop to cq_resume nobody adds entries or looks at them, though a program may be in the middle of a batch of
 * them: waits for no program. cq->lock is held meanwhile. Not within process->forked copies, whose takers are gone. */
void cq_stop(struct cq *);
void cq_resume(struct cq *);

/* Withdraws all entries of a queue pair: nobody will see them. Returns when no poller uses one of them any more. */
void cq_withdraw(struct cq *, const struct qp *);

/* Entries stay, but polling them no longer counts here. */
void cq_forget(struct cq *, const _Atomic uint32_t *retired);

/* --- how */

struct completion *cq_make_room(struct cq *);
void cq_finish_unusual(struct cq *, struct completion *, bool notable);

/* The position of the oldest entry that was neither polled nor raised an event. Under `lock`. A poller may go on
 * meanwhile, so the answer may be too low, which raises an event too many, never too high. */
static inline uint32_t cq_unreported(const struct cq *cq)
{
    uint32_t head = cq_ring_head(&cq->ring);
    return (int32_t)(cq->unreported - head) > 0 ? cq->unreported : head;
}

/* Is one of the entries notable? Under `lock`. When entries were withdrawn, the newest of the others passes for it. */
static inline bool cq_holds_notable(const struct cq *cq)
{
    return cq->notable_end - cq_ring_head(&cq->ring) - 1 < cq_ring_count(&cq->ring);
}

/* Fills the iterator's functions of a new CQ. */
void cq_extend(struct cq *);

enum {
    CQ_WC_FLAGS = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
                  IBV_WC_EX_WITH_TM_INFO
};

#endif
