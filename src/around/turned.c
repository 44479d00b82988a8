/* A turned work request has a number of this file in place of the program's wr_id, until its completion is polled. */
#include "around/turned.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "around/library/numbers.h"
#include "base/container.h"
#include "base/hash.h"
#include "base/read_clock.h"
#include "base/result.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "calls/calls.h"

enum { BUCKETS = 1 << 10, COUNT_BITS = 32 };

/* Until its completion is polled; then, if that was turned, until the queue pair is in RESET or gone: what it completes
 * in the same queue is flushed. */
struct turned {
    struct hash_entry by_number; /* the number; then the number of the queue pair */
    uint64_t wr_id;
    struct script_end end;
    const struct ibv_context *context;
    const struct ibv_qp *qp; /* NULL: of a shared receive queue, and not polled; or of a queue pair that has left. It
                                may be gone already: only its address is used */
    uint32_t qp_number;
    bool left;      /* the queue pair has left: only the wr_id is the program's again */
    bool batch;     /* of builders, begun and not complete */
    unsigned flags; /* of builders, as the program set them */
    /* Once the completion was polled: */
    const struct ibv_cq *cq;
    bool due;    /* the queue pair is to be moved to ERR */
    bool moving; /* a thread does that */
    bool stays;  /* it must not be moved: it is about to leave */
};

MUTEX_STATIC(turning, LOCK_TURNING);
static struct hash_entry *waiting_buckets[BUCKETS], *failed_buckets[BUCKETS];
static struct hash waiting = {waiting_buckets, BUCKETS - 1}, failed = {failed_buckets, BUCKETS - 1};
static _Atomic unsigned waits, fails, moves; /* the numbers of entries of each, and of those that are due */
static _Atomic uint64_t prefix;              /* of all numbers; 0: there is none yet */
static _Atomic uint32_t last_number;

/* The entry at which an iterator of this thread is. */
static _Thread_local struct {
    const struct ibv_cq_ex *cq;
    uint32_t vendor;
} shown __attribute__((tls_model("initial-exec")));

static struct calls_layer layer;

/* Programs are unlikely to have such wr_ids of their own: half of the bits are random. */
static uint64_t new_number(void)
{
    uint64_t none = 0, seed = 0;
    int before = errno, cancelled = uncancelled_begin();
    if (!atomic_load(&prefix) && getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)read_clock(CLOCK_REALTIME) * 0x9e3779b97f4a7c15 ^ (uint64_t)getpid() ^ (uintptr_t)&seed;
    if (seed)
        atomic_compare_exchange_strong(&prefix, &none, seed >> COUNT_BITS << COUNT_BITS | 1ull << 63);
    uncancelled_end(cancelled);
    errno = before;
    return atomic_load(&prefix) | atomic_fetch_add(&last_number, 1);
}

static bool is_number(uint64_t wr_id)
{
    return atomic_load_explicit(&waits, memory_order_acquire) &&
           wr_id >> COUNT_BITS == atomic_load(&prefix) >> COUNT_BITS;
}

void turned_prepare(void)
{
    calls_put_around(&layer);
}

/* Returns the number; 0: no memory. */
static uint64_t begin_turned(const struct ibv_context *context, const struct ibv_qp *qp, const struct turned *from)
{
    struct turned *turned = calloc(1, sizeof *turned);
    if (!turned)
        return 0;
    uint64_t number = new_number();
    *turned = *from;
    turned->context = context;
    turned->qp = qp;
    turned->qp_number = qp ? qp->qp_num : 0;
    mutex_take(&turning);
    hash_add(&waiting, &turned->by_number, number);
    atomic_fetch_add(&waits, 1);
    mutex_release(&turning);
    return number;
}

static struct turned *find_number(uint64_t number)
{
    lock_assert_held(&turning);
    struct hash_entry *entry = hash_find(&waiting, number, NULL);
    return entry ? container_of(entry, struct turned, by_number) : NULL;
}

static void remove_turned(struct turned *turned)
{
    lock_assert_held(&turning);
    hash_remove(&turned->by_number);
    atomic_fetch_sub(turned->cq ? &fails : &waits, 1);
    if (turned->due)
        atomic_fetch_sub(&moves, 1);
}

static void drop_number(uint64_t number)
{
    mutex_take(&turning);
    struct turned *turned = find_number(number);
    if (turned)
        remove_turned(turned);
    mutex_release(&turning);
    free(turned);
}

#define POST(name, object, work, qp_, signal)                                                                          \
    int turned_post_##name(object *on, work *wr, struct script_end end, work **bad)                                    \
    {                                                                                                                  \
        uint64_t number = begin_turned(on->context, qp_, &(struct turned){.wr_id = wr->wr_id, .end = end});            \
        if (!number)                                                                                                   \
            return result_failure(ENOMEM);                                                                             \
        wr->wr_id = number;                                                                                            \
        signal;                                                                                                        \
        int error = calls_get(&layer.below, ibv_post_##name)(on, wr, bad);                                             \
        if (error)                                                                                                     \
            drop_number(number);                                                                                       \
        return error;                                                                                                  \
    }
POST(send, struct ibv_qp, struct ibv_send_wr, on, wr->send_flags |= IBV_SEND_SIGNALED)
POST(recv, struct ibv_qp, struct ibv_recv_wr, on, )
POST(srq_recv, struct ibv_srq, struct ibv_recv_wr, NULL, )

/* Each entry of the queue pair in one of the two tables. */
#define EACH_OF(qp_, buckets, turned)                                                                                  \
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)                                                              \
        for (struct hash_entry *entry = buckets[bucket], *next; entry && (next = entry->next, true); entry = next)     \
            for (struct turned *turned = container_of(entry, struct turned, by_number); turned; turned = NULL)         \
                if (turned->qp == (qp_))

/* -- builders: some libraries read wr_id and flags in wr_set_sge, so they are the program's again where that is whole
 */

void turned_build_begin(struct ibv_qp_ex *qp, struct script_end end)
{
    const struct turned from = {.wr_id = qp->wr_id, .end = end, .batch = true, .flags = qp->wr_flags};
    uint64_t number = begin_turned(qp->qp_base.context, &qp->qp_base, &from);
    if (!number)
        return;
    qp->wr_id = number;
    qp->wr_flags |= IBV_SEND_SIGNALED;
}

/* The wr_id and the flags are the program's again. */
static void restore(struct ibv_qp_ex *qp)
{
    lock_assert_held(&turning);
    const struct turned *turned = find_number(qp->wr_id);
    if (turned) {
        qp->wr_id = turned->wr_id;
        qp->wr_flags = turned->flags;
    }
}

void turned_build_end(struct ibv_qp_ex *qp, enum script_batch batch)
{
    if (!atomic_load_explicit(&waits, memory_order_acquire) || (batch == SCRIPT_BATCH_GOES_ON && !is_number(qp->wr_id)))
        return;
    mutex_take(&turning);
    restore(qp);
    EACH_OF(&qp->qp_base, waiting_buckets, turned)
    {
        if (batch == SCRIPT_BATCH_IS_GIVEN_UP && turned->batch) { /* it never completes */
            remove_turned(turned);
            free(turned);
        } else if (batch == SCRIPT_BATCH_IS_POSTED) {
            turned->batch = false;
        }
    }
    mutex_release(&turning);
}

/* -- completions */

struct entry {
    const struct ibv_cq *cq;
    uint32_t qp_number;      /* 0: not known */
    const struct ibv_qp *qp; /* of turned work of a shared receive queue */
    uint64_t wr_id;
    enum ibv_wc_status status;
    uint32_t vendor;
};

static bool is_flushed(const struct entry *entry)
{
    lock_assert_held(&turning);
    struct hash_entry *found = NULL;
    while (!entry->status && entry->qp_number && (found = hash_find(&failed, entry->qp_number, found)))
        if (container_of(found, struct turned, by_number)->cq == entry->cq)
            return true;
    return false;
}

/* The queue pair has failed with this entry: it is moved, and flushes. */
static void keep_failed(struct turned *turned, const struct entry *entry)
{
    lock_assert_held(&turning);
    turned->cq = entry->cq;
    turned->due = true;
    hash_add(&failed, &turned->by_number, turned->qp_number);
    atomic_fetch_sub(&waits, 1);
    atomic_fetch_add(&fails, 1);
    atomic_fetch_add(&moves, 1);
}

/* Gives the entry of turned work its end, unless the work has failed by itself, or its queue pair has failed before. */
static void end_work(struct turned *turned, struct entry *entry)
{
    lock_assert_held(&turning);
    bool turns = !turned->left && !entry->status && !is_flushed(entry);
    entry->wr_id = turned->wr_id;
    if (turns) {
        entry->status = turned->end.status;
        entry->vendor = turned->end.vendor;
    } else if (is_flushed(entry)) {
        entry->status = IBV_WC_WR_FLUSH_ERR;
        entry->vendor = 0;
    }
    turned->qp = turned->qp ? turned->qp : entry->qp;
    turned->qp_number = entry->qp_number;
    if (turns && turned->qp) {
        keep_failed(turned, entry);
        return;
    }
    remove_turned(turned);
    free(turned);
}

/* True: the entry was changed. */
static bool turn(struct entry *entry)
{
    bool number = is_number(entry->wr_id);
    if (!number && !atomic_load_explicit(&fails, memory_order_acquire))
        return false;
    if (number && entry->qp_number)
        entry->qp = numbers_find(entry->cq->context, entry->qp_number);
    mutex_take(&turning);
    struct turned *turned = number ? find_number(entry->wr_id) : NULL;
    bool flushed = !turned && is_flushed(entry);
    if (turned) {
        entry->qp_number = turned->qp_number ? turned->qp_number : entry->qp_number;
        end_work(turned, entry);
    }
    if (flushed) {
        entry->status = IBV_WC_WR_FLUSH_ERR;
        entry->vendor = 0;
    }
    mutex_release(&turning);
    return turned || flushed;
}

/* -- queue pairs: what happens to one is done under no lock, and marked */

/* An entry of this queue whose queue pair is to be moved now, or NULL. */
static struct turned *take_due(const struct ibv_cq *cq)
{
    lock_assert_held(&turning);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct hash_entry *entry = failed_buckets[bucket]; entry; entry = entry->next) {
            struct turned *turned = container_of(entry, struct turned, by_number);
            if (turned->cq == cq && turned->due && !turned->stays)
                return turned;
        }
    return NULL;
}

/* False: nothing is left to move. */
static bool move_one(const struct ibv_cq *cq)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    mutex_take(&turning);
    struct turned *turned = take_due(cq);
    struct ibv_qp *qp = turned ? (struct ibv_qp *)turned->qp : NULL;
    if (turned) {
        turned->due = false;
        turned->moving = true;
        atomic_fetch_sub(&moves, 1);
    }
    mutex_release(&turning);
    if (!turned)
        return false;
    calls_get(&layer.below, ibv_modify_qp)(qp, &attr, IBV_QP_STATE);
    mutex_take(&turning);
    turned->moving = false; /* turned_leave waits for that, so the entry is there */
    mutex_release(&turning);
    return true;
}

/* Outside of start_poll and end_poll, between which the library may hold locks. */
static void move_queue_pairs(const struct ibv_cq *cq)
{
    if (!atomic_load_explicit(&moves, memory_order_acquire))
        return;
    int before = errno, cancelled = uncancelled_begin();
    while (move_one(cq)) {
    }
    uncancelled_end(cancelled);
    errno = before;
}

static bool mark_stay(const struct ibv_qp *qp, bool stays)
{
    bool moving = false;
    mutex_take(&turning);
    EACH_OF(qp, waiting_buckets, turned)
    turned->stays = stays;
    EACH_OF(qp, failed_buckets, turned)
    {
        turned->stays = stays;
        moving |= turned->moving;
    }
    mutex_release(&turning);
    return moving;
}

static bool has_any(void)
{
    return atomic_load_explicit(&waits, memory_order_acquire) || atomic_load_explicit(&fails, memory_order_acquire);
}

void turned_leave(const struct ibv_qp *qp)
{
    int before = errno, cancelled = uncancelled_begin();
    while (has_any() && mark_stay(qp, true)) /* as long as a call of the library takes */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    uncancelled_end(cancelled);
    errno = before;
}

void turned_left(const struct ibv_qp *qp, bool left)
{
    if (!has_any())
        return;
    if (!left) {
        mark_stay(qp, false);
        return;
    }
    mutex_take(&turning);
    EACH_OF(qp, waiting_buckets, turned)
    {
        turned->left = true;
        turned->qp = NULL;
    }
    EACH_OF(qp, failed_buckets, turned)
    {
        remove_turned(turned);
        free(turned);
    }
    mutex_release(&turning);
}

bool turned_has(const struct ibv_qp *qp)
{
    bool found = false;
    if (!atomic_load_explicit(&fails, memory_order_acquire))
        return false;
    mutex_take(&turning);
    EACH_OF(qp, failed_buckets, turned)
    found = true;
    mutex_release(&turning);
    return found;
}

void turned_close(const struct ibv_context *context)
{
    if (!has_any())
        return;
    mutex_take(&turning);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct hash_entry *entry = waiting_buckets[bucket], *next; entry && (next = entry->next, true);
             entry = next) {
            struct turned *turned = container_of(entry, struct turned, by_number);
            if (turned->context == context) {
                remove_turned(turned);
                free(turned);
            }
        }
    mutex_release(&turning);
}

/* -- the layer */

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int count = calls_get(&layer.below, ibv_poll_cq)(cq, most, wc);
    for (int at = 0; at < count; at++) {
        struct entry entry = {cq, wc[at].qp_num, NULL, wc[at].wr_id, wc[at].status, wc[at].vendor_err};
        if (!turn(&entry))
            continue;
        wc[at].wr_id = entry.wr_id;
        wc[at].status = entry.status;
        wc[at].vendor_err = entry.vendor;
    }
    move_queue_pairs(cq);
    return count;
}

static void show(struct ibv_cq_ex *cq)
{
    shown.cq = NULL;
    if (!has_any())
        return;
    struct entry entry = {.cq = ibv_cq_ex_to_cq(cq),
                          .qp_number = calls_get(&layer.below, ibv_wc_read_qp_num)(cq),
                          .wr_id = cq->wr_id,
                          .status = cq->status};
    if (!turn(&entry))
        return;
    cq->wr_id = entry.wr_id;
    cq->status = entry.status;
    shown.cq = cq;
    shown.vendor = entry.vendor;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    int error = calls_get(&layer.below, ibv_start_poll)(cq, attr);
    if (!error)
        show(cq);
    return error;
}

static int next_poll(struct ibv_cq_ex *cq)
{
    int error = calls_get(&layer.below, ibv_next_poll)(cq);
    if (!error)
        show(cq);
    return error;
}

static void end_poll(struct ibv_cq_ex *cq)
{
    shown.cq = NULL;
    calls_get(&layer.below, ibv_end_poll)(cq);
    move_queue_pairs(ibv_cq_ex_to_cq(cq));
}

uint32_t turned_vendor(const struct ibv_cq_ex *cq, uint32_t own)
{
    return shown.cq == cq ? shown.vendor : own;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
    return turned_vendor(cq, calls_get(&layer.below, ibv_wc_read_vendor_err)(cq));
}

static struct calls_layer layer = {.name = "turned",
                                   .place = CALLS_PLACE_TURNED,
                                   .calls = {.ibv_poll_cq = poll_cq,
                                             .ibv_start_poll = start_poll,
                                             .ibv_next_poll = next_poll,
                                             .ibv_end_poll = end_poll,
                                             .ibv_wc_read_vendor_err = read_vendor_err}};
