/* A turned work request has a number of this file in place of the program's wr_id, until its completion is polled. */
#include "around/turned.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "around/numbers.h"
#include "base/result.h"
#include "base/static_lock.h"
#include "calls/calls.h"

struct turned {
    LIST_ENTRY(turned) siblings;
    uint64_t number, wr_id;
    struct script_end end;
    struct ibv_qp *qp; /* NULL: of a shared receive queue */
    unsigned flags;    /* of builders, as the program set them */
    /* Once the completion was polled: */
    const struct ibv_cq *cq; /* where; NULL: not yet */
    uint32_t qp_number;
    bool moves; /* the queue pair is to be moved to ERR */
};

MUTEX_STATIC(moving, LOCK_MOVING);     /* no queue pair that is moved here is destroyed meanwhile */
MUTEX_STATIC(turning, LOCK_INNERMOST); /* of the list */
static LIST_HEAD(, turned) all = LIST_HEAD_INITIALIZER(all);
static _Atomic uint64_t last_number;

/* The entry at which an iterator of this thread is. */
static _Thread_local struct {
    const struct ibv_cq_ex *cq;
    uint32_t vendor;
} shown __attribute__((tls_model("initial-exec")));

static struct calls_layer layer;

/* Numbers that no program is likely to have as its own: 64 random bits, counted up. */
static uint64_t new_number(void)
{
    uint64_t none = 0, seed = 0;
    if (!atomic_load(&last_number) && getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed)
        atomic_compare_exchange_strong(&last_number, &none, seed);
    return atomic_fetch_add(&last_number, 1) + 1;
}

/* NULL: no memory. The layer is around once there is one. */
static struct turned *begin_turned(struct ibv_qp *qp, uint64_t wr_id, struct script_end end)
{
    struct turned *turned = calloc(1, sizeof *turned);
    if (!turned)
        return NULL;
    *turned = (struct turned){.number = new_number(), .wr_id = wr_id, .end = end, .qp = qp};
    calls_put_around(&layer);
    mutex_take(&turning);
    LIST_INSERT_HEAD(&all, turned, siblings);
    mutex_release(&turning);
    return turned;
}

static void end_turned(struct turned *turned)
{
    mutex_take(&turning);
    LIST_REMOVE(turned, siblings);
    mutex_release(&turning);
    free(turned);
}

#define POST(name, object, work, qp, signal)                                                                           \
    int turned_post_##name(object *on, work *wr, struct script_end end, work **bad)                                    \
    {                                                                                                                  \
        struct turned *turned = begin_turned(qp, wr->wr_id, end);                                                      \
        if (!turned)                                                                                                   \
            return result_failure(ENOMEM);                                                                             \
        wr->wr_id = turned->number;                                                                                    \
        signal;                                                                                                        \
        int error = calls_get(&layer.below, ibv_post_##name)(on, wr, bad);                                             \
        if (error)                                                                                                     \
            end_turned(turned);                                                                                        \
        return error;                                                                                                  \
    }
POST(send, struct ibv_qp, struct ibv_send_wr, on, wr->send_flags |= IBV_SEND_SIGNALED)
POST(recv, struct ibv_qp, struct ibv_recv_wr, on, )
POST(srq_recv, struct ibv_srq, struct ibv_recv_wr, NULL, )

void turned_build_begin(struct ibv_qp_ex *qp, struct script_end end)
{
    struct turned *turned = begin_turned(&qp->qp_base, qp->wr_id, end);
    if (!turned)
        return;
    turned->flags = qp->wr_flags;
    qp->wr_id = turned->number;
    qp->wr_flags |= IBV_SEND_SIGNALED;
}

static struct turned *find_number(uint64_t number)
{
    lock_assert_held(&turning);
    struct turned *turned;
    LIST_FOREACH (turned, &all, siblings)
        if (turned->number == number && !turned->cq)
            break;
    return turned;
}

void turned_build(struct ibv_qp_ex *qp, struct script_end end)
{
    (void)end;
    mutex_take(&turning);
    const struct turned *turned = find_number(qp->wr_id);
    if (turned) {
        qp->wr_id = turned->wr_id;
        qp->wr_flags = turned->flags;
    }
    mutex_release(&turning);
}

/* -- completions */

struct entry {
    const struct ibv_cq *cq;
    uint32_t qp_number; /* 0: not known */
    uint64_t wr_id;
    enum ibv_wc_status status;
    uint32_t vendor;
};

static bool is_flushed(const struct entry *entry)
{
    lock_assert_held(&turning);
    const struct turned *turned;
    LIST_FOREACH (turned, &all, siblings)
        if (turned->cq == entry->cq && turned->qp_number && turned->qp_number == entry->qp_number)
            return true;
    return false;
}

/* Gives the entry of turned work its end, unless the work has failed by itself. */
static void end_work(struct turned *turned, struct entry *entry)
{
    lock_assert_held(&turning);
    entry->wr_id = turned->wr_id;
    if (entry->status) {
        LIST_REMOVE(turned, siblings);
        free(turned);
        return;
    }
    entry->status = turned->end.status;
    entry->vendor = turned->end.vendor;
    turned->cq = entry->cq;
    turned->qp = turned->qp ? turned->qp : numbers_find(entry->cq->context, entry->qp_number);
    turned->qp_number = turned->qp ? turned->qp->qp_num : entry->qp_number;
    turned->moves = true;
}

/* True: the entry was changed. */
static bool turn(struct entry *entry)
{
    mutex_take(&turning);
    struct turned *turned = find_number(entry->wr_id);
    bool flushed = !turned && !entry->status && is_flushed(entry);
    if (turned)
        end_work(turned, entry);
    if (flushed)
        *entry = (struct entry){entry->cq, entry->qp_number, entry->wr_id, IBV_WC_WR_FLUSH_ERR, 0};
    mutex_release(&turning);
    return turned || flushed;
}

/* The next piece of work that was turned in this queue and whose queue pair is not in ERR yet. */
static bool take_moved(const struct ibv_cq *cq, struct ibv_qp **qp)
{
    mutex_take(&turning);
    struct turned *turned;
    LIST_FOREACH (turned, &all, siblings)
        if (turned->cq == cq && turned->moves)
            break;
    if (turned) {
        turned->moves = false;
        *qp = turned->qp;
    }
    mutex_release(&turning);
    return turned;
}

/* Outside of start_poll and end_poll, between which the library may hold locks. */
static void move_queue_pairs(const struct ibv_cq *cq)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int before = errno;
    mutex_take(&moving);
    for (struct ibv_qp *qp; take_moved(cq, &qp);)
        if (qp)
            calls_get(&layer.below, ibv_modify_qp)(qp, &attr, IBV_QP_STATE);
    mutex_release(&moving);
    errno = before;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int count = calls_get(&layer.below, ibv_poll_cq)(cq, most, wc);
    bool turned = false;
    for (int at = 0; at < count; at++) {
        struct entry entry = {cq, wc[at].qp_num, wc[at].wr_id, wc[at].status, wc[at].vendor_err};
        if (!turn(&entry))
            continue;
        turned = true;
        wc[at].wr_id = entry.wr_id;
        wc[at].status = entry.status;
        wc[at].vendor_err = entry.vendor;
    }
    if (turned)
        move_queue_pairs(cq);
    return count;
}

static void show(struct ibv_cq_ex *cq)
{
    struct entry entry = {ibv_cq_ex_to_cq(cq), calls_get(&layer.below, ibv_wc_read_qp_num)(cq), cq->wr_id, cq->status,
                          0};
    shown.cq = NULL;
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

/* -- queue pairs */

bool turned_has(const struct ibv_qp *qp)
{
    mutex_take(&turning);
    const struct turned *turned;
    LIST_FOREACH (turned, &all, siblings)
        if (turned->qp == qp && turned->cq)
            break;
    mutex_release(&turning);
    return turned;
}

static struct turned *take_of(const struct ibv_qp *qp)
{
    mutex_take(&turning);
    struct turned *turned;
    LIST_FOREACH (turned, &all, siblings)
        if (turned->qp == qp)
            break;
    if (turned)
        LIST_REMOVE(turned, siblings);
    mutex_release(&turning);
    return turned;
}

void turned_forget(const struct ibv_qp *qp)
{
    mutex_take(&moving);
    for (struct turned *turned; (turned = take_of(qp));)
        free(turned);
    mutex_release(&moving);
}
