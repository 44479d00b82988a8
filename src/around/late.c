/* The library gives one entry at a time here. One that is late is copied; until its time the library is asked for no
 * other. */
#include "around/late.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "around/channels.h"
#include "around/library/held.h"
#include "base/container.h"
#include "base/hash.h"
#include "base/read_clock.h"
#include "base/result.h"
#include "base/static_lock.h"
#include "calls/calls.h"
#include "script/rules.h"

enum { BUCKETS = 1 << 8 };

/* The fields of an entry of an extended queue: FIELD(type, name, place, flag). `place` is in struct entry; `flag` is of
 * enum ibv_create_cq_wc_flags; 0: each queue has the field. */
#define EACH_FIELD(FIELD)                                                                                              \
    FIELD(enum ibv_wc_opcode, opcode, wc.opcode, 0)                                                                    \
    FIELD(uint32_t, vendor_err, wc.vendor_err, 0)                                                                      \
    FIELD(unsigned int, wc_flags, wc.wc_flags, 0)                                                                      \
    FIELD(uint32_t, byte_len, wc.byte_len, IBV_WC_EX_WITH_BYTE_LEN)                                                    \
    FIELD(__be32, imm_data, wc.imm_data, IBV_WC_EX_WITH_IMM)                                                           \
    FIELD(uint32_t, qp_num, wc.qp_num, IBV_WC_EX_WITH_QP_NUM)                                                          \
    FIELD(uint32_t, src_qp, wc.src_qp, IBV_WC_EX_WITH_SRC_QP)                                                          \
    FIELD(uint32_t, slid, slid, IBV_WC_EX_WITH_SLID)                                                                   \
    FIELD(uint8_t, sl, wc.sl, IBV_WC_EX_WITH_SL)                                                                       \
    FIELD(uint8_t, dlid_path_bits, wc.dlid_path_bits, IBV_WC_EX_WITH_DLID_PATH_BITS)                                   \
    FIELD(uint64_t, completion_ts, time, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)                                          \
    FIELD(uint16_t, cvlan, vlan, IBV_WC_EX_WITH_CVLAN)                                                                 \
    FIELD(uint32_t, flow_tag, flow_tag, IBV_WC_EX_WITH_FLOW_TAG)                                                       \
    FIELD(uint64_t, completion_wallclock_ns, wall_time, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* Of ibv_poll_cq the first field alone. */
struct entry {
    struct ibv_wc wc;
    uint32_t slid, flow_tag;
    uint16_t vlan;
    uint64_t time, wall_time;
    struct ibv_wc_tm_info tags;
};

struct kept {
    TAILQ_ENTRY(kept) next;
    nanos due;
    struct entry entry;
};

TAILQ_HEAD(kept_list, kept);

enum polling { POLLS_NOTHING, POLLS_LIBRARY, POLLS_KEPT };

/* A queue whose completions met rules. It stays until the queue is destroyed. */
struct queue {
    struct hash_entry by_address;
    const struct ibv_cq *cq;
    const struct ibv_context *context;
    bool leaving;             /* it is being destroyed: another queue may get the address */
    struct kept_list entries; /* in their order, which is also the order of `due` */
    bool single;              /* the program lets one thread at a time use it, which need not be the same */
    bool iterated;            /* a thread is between start_poll and end_poll, and has the next three for itself */
    pthread_t owner;
    enum polling polling;
    struct entry shown; /* where it polls an entry that was held back */
};

MUTEX_STATIC(keeping, LOCK_LATE);
static struct hash_entry *buckets[BUCKETS];
static struct hash queues = {buckets, BUCKETS - 1};
static struct calls_layer layer;

static struct queue *find_queue(const struct ibv_cq *cq)
{
    lock_assert_held(&keeping);
    struct hash_entry *entry = hash_find(&queues, (uintptr_t)cq, NULL);
    while (entry && container_of(entry, struct queue, by_address)->leaving)
        entry = hash_find(&queues, (uintptr_t)cq, entry);
    return entry ? container_of(entry, struct queue, by_address) : NULL;
}

/* NULL: no memory. */
static struct queue *need_queue(const struct ibv_cq *cq)
{
    lock_assert_held(&keeping);
    struct queue *queue = find_queue(cq);
    if (queue || !(queue = calloc(1, sizeof *queue)))
        return queue;
    const struct held *held = held_find(HELD_CQ, cq);
    queue->cq = cq;
    queue->context = cq->context;
    queue->single =
        held && (held->made.has_thread_domain || held->made.create_flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
    TAILQ_INIT(&queue->entries);
    hash_add(&queues, &queue->by_address, (uintptr_t)cq);
    return queue;
}

/* -- the rules */

static struct script_verdict meet(struct ibv_cq *cq, uint64_t wr_id, uint32_t qp_number)
{
    if (!rules_wants(SCRIPT_completion))
        return (struct script_verdict){0};
    return rules_apply((struct script_event){.call = SCRIPT_completion,
                                             .subject = {"cq", cq->handle, (uintptr_t)cq},
                                             .device = cq->context->device->name,
                                             .qp = qp_number,
                                             .is_work = true,
                                             .opcode = -1,
                                             .wr_id = wr_id});
}

/* The program's next event. */
static void note_late(const struct queue *queue)
{
    lock_assert_held(&keeping);
    const struct kept *first = TAILQ_FIRST(&queue->entries);
    channels_note_late(queue->cq, first ? first->due : NANOS_NEVER);
}

/* Keeps a copy of the entry. False: there is no memory, and it is not late. */
static bool hold_back(struct ibv_cq *cq, const struct entry *entry, nanos delay)
{
    struct kept *kept = malloc(sizeof *kept);
    nanos due = read_clock(CLOCK_MONOTONIC) + delay;
    mutex_take(&keeping);
    struct queue *queue = kept ? need_queue(cq) : NULL;
    if (queue) {
        const struct kept *last = TAILQ_LAST(&queue->entries, kept_list);
        due = last && last->due > due ? last->due : due;
        *kept = (struct kept){.due = due, .entry = *entry};
        TAILQ_INSERT_TAIL(&queue->entries, kept, next);
    }
    if (queue)
        note_late(queue);
    mutex_release(&keeping);
    if (!queue)
        free(kept);
    return queue;
}

enum found { NOTHING_KEPT, NOT_DUE, DUE };

/* Takes the first entry that was held back, if it is due. */
static enum found take_kept(const struct ibv_cq *cq, struct entry *out)
{
    enum found found = NOTHING_KEPT;
    mutex_take(&keeping);
    struct queue *queue = find_queue(cq);
    struct kept *first = queue ? TAILQ_FIRST(&queue->entries) : NULL;
    if (first)
        found = first->due <= read_clock(CLOCK_MONOTONIC) ? DUE : NOT_DUE;
    if (found == DUE) {
        TAILQ_REMOVE(&queue->entries, first, next);
        *out = first->entry;
        note_late(queue);
    }
    mutex_release(&keeping);
    if (found == DUE)
        free(first);
    return found;
}

static void withdraw_from(struct queue *queue, uint32_t qp_number)
{
    lock_assert_held(&keeping);
    struct kept *each = TAILQ_FIRST(&queue->entries), *next;
    bool gone = false;
    for (; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (each->entry.wc.qp_num != qp_number)
            continue;
        TAILQ_REMOVE(&queue->entries, each, next);
        free(each);
        gone = true;
    }
    if (gone && TAILQ_EMPTY(&queue->entries))
        channels_note_late(queue->cq, 0); /* the library has what waited for it */
    else if (gone)
        note_late(queue);
}

/* The queue pair is gone, or in RESET, and has no completions. */
static void withdraw(const struct ibv_context *context, uint32_t qp_number)
{
    mutex_take(&keeping);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct hash_entry *entry = buckets[bucket]; entry; entry = entry->next) {
            struct queue *queue = container_of(entry, struct queue, by_address);
            if (queue->context == context && !queue->leaving)
                withdraw_from(queue, qp_number);
        }
    mutex_release(&keeping);
}

/* -- ibv_poll_cq */

/* One entry. Returns as ibv_poll_cq does. */
static int poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
    struct entry entry = {0};
    for (;;) {
        enum found found = take_kept(cq, &entry);
        if (found == DUE)
            *wc = entry.wc;
        if (found != NOTHING_KEPT)
            return found == DUE;
        int count = calls_get(&layer.below, ibv_poll_cq)(cq, 1, wc);
        if (count <= 0)
            return count;
        entry.wc = *wc;
        struct script_verdict verdict = meet(cq, wc->wr_id, wc->qp_num);
        if (!verdict_has(&verdict, SCRIPT_DROP) && !(verdict.delay && hold_back(cq, &entry, verdict.delay)))
            return 1;
    }
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int count = 0, one = 1;
    if (most <= 0)
        return calls_get(&layer.below, ibv_poll_cq)(cq, most, wc);
    while (count < most && (one = poll_one(cq, &wc[count])) > 0)
        count++;
    return count || one >= 0 ? count : one;
}

/* -- iterators */

static bool is_owner(const struct queue *queue)
{
    lock_assert_held(&keeping);
    return queue->single || pthread_equal(queue->owner, pthread_self());
}

/* The queue, if this thread iterates it past this layer; NULL. */
static struct queue *own_iteration(const struct ibv_cq *cq)
{
    mutex_take(&keeping);
    struct queue *queue = find_queue(cq);
    if (queue && !(queue->iterated && is_owner(queue)))
        queue = NULL;
    mutex_release(&keeping);
    return queue;
}

/* Waits until no other thread iterates the queue, as the library does. NULL: no memory. */
static struct queue *begin_iteration(const struct ibv_cq *cq)
{
    for (;;) {
        mutex_take(&keeping);
        struct queue *queue = need_queue(cq);
        bool begins = queue && (!queue->iterated || is_owner(queue)); /* it has not ended the last by this layer */
        if (begins) {
            queue->iterated = true;
            queue->owner = pthread_self();
            queue->polling = POLLS_NOTHING;
        }
        mutex_release(&keeping);
        if (begins || !queue)
            return queue;
        sched_yield();
    }
}

static void end_iteration(struct queue *queue)
{
    mutex_take(&keeping);
    queue->iterated = false;
    mutex_release(&keeping);
}

static uint64_t wc_flags_of(const struct ibv_cq_ex *cq)
{
    const struct held *held = held_find(HELD_CQ, cq);
    return held ? held->made.wc_flags : 0;
}

/* The entry at which the library's iterator is. */
static struct entry read_entry(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
    struct entry entry = {.wc = {.wr_id = cq->wr_id, .status = cq->status}};
#define FIELD(type, name, place, flag)                                                                                 \
    if (!(flag) || wc_flags & (flag))                                                                                  \
        entry.place = calls_get(&layer.below, ibv_wc_read_##name)(cq);
    EACH_FIELD(FIELD)
#undef FIELD
    if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
        calls_get(&layer.below, ibv_wc_read_tm_info)(cq, &entry.tags);
    return entry;
}

/* Goes to the first entry of the library's that the program gets now. Returns as the library does. */
static int choose_entry(struct ibv_cq_ex *cq)
{
    int error = 0;
    while (!error && rules_wants(SCRIPT_completion)) {
        struct entry entry = read_entry(cq, wc_flags_of(cq));
        struct script_verdict verdict = meet(ibv_cq_ex_to_cq(cq), entry.wc.wr_id, entry.wc.qp_num);
        if (!verdict_has(&verdict, SCRIPT_DROP))
            return verdict.delay && hold_back(ibv_cq_ex_to_cq(cq), &entry, verdict.delay) ? result_failure(ENOENT) : 0;
        error = calls_get(&layer.below, ibv_next_poll)(cq);
    }
    return error;
}

/* Goes to the next entry, where the library has no iterator at work. */
static int go_on(struct queue *queue, struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    enum found found = take_kept(queue->cq, &queue->shown);
    queue->polling = found == DUE ? POLLS_KEPT : POLLS_NOTHING;
    if (found == DUE) {
        cq->wr_id = queue->shown.wc.wr_id;
        cq->status = queue->shown.wc.status;
    }
    if (found != NOTHING_KEPT)
        return found == DUE ? 0 : result_failure(ENOENT);
    int error = calls_get(&layer.below, ibv_start_poll)(cq, attr);
    if (error)
        return error;
    queue->polling = POLLS_LIBRARY;
    error = choose_entry(cq);
    if (!error)
        return 0;
    queue->polling = POLLS_NOTHING;
    calls_get(&layer.below, ibv_end_poll)(cq);
    return result_failure(error);
}

static int start_late_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    struct queue *queue = begin_iteration(ibv_cq_ex_to_cq(cq));
    int error = queue ? go_on(queue, cq, attr) : calls_get(&layer.below, ibv_start_poll)(cq, attr);
    if (queue && error)
        end_iteration(queue);
    return error;
}

static bool has_kept(const struct queue *queue)
{
    mutex_take(&keeping);
    bool kept = !TAILQ_EMPTY(&queue->entries);
    mutex_release(&keeping);
    return kept;
}

static int next_late_poll(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    struct queue *queue = own_iteration(ibv_cq_ex_to_cq(cq));
    if (queue && queue->polling != POLLS_LIBRARY)
        return go_on(queue, cq, &attr);
    if (queue && has_kept(queue))
        return result_failure(ENOENT);
    int error = calls_get(&layer.below, ibv_next_poll)(cq);
    return queue && !error ? choose_entry(cq) : error;
}

static void end_late_poll(struct ibv_cq_ex *cq)
{
    struct queue *queue = own_iteration(ibv_cq_ex_to_cq(cq));
    if (!queue || queue->polling == POLLS_LIBRARY)
        calls_get(&layer.below, ibv_end_poll)(cq);
    if (queue)
        end_iteration(queue);
}

static const struct entry *shown_of(const struct ibv_cq_ex *cq)
{
    struct queue *queue = own_iteration(ibv_cq_ex_to_cq((struct ibv_cq_ex *)cq));
    return queue && queue->polling == POLLS_KEPT ? &queue->shown : NULL;
}

#define FIELD(type, name, place, flag)                                                                                 \
    static type read_##name(struct ibv_cq_ex *cq)                                                                      \
    {                                                                                                                  \
        const struct entry *shown = shown_of(cq);                                                                      \
        return shown ? shown->place : calls_get(&layer.below, ibv_wc_read_##name)(cq);                                 \
    }
EACH_FIELD(FIELD)
#undef FIELD

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
    const struct entry *shown = shown_of(cq);
    if (shown)
        *info = shown->tags;
    else
        calls_get(&layer.below, ibv_wc_read_tm_info)(cq, info);
}

const struct ibv_wc *late_shown(const struct ibv_cq_ex *cq)
{
    const struct entry *shown = shown_of(cq);
    return shown ? &shown->wc : NULL;
}

/* -- the objects */

static struct queue *set_leaving(const struct ibv_cq *cq)
{
    mutex_take(&keeping);
    struct queue *queue = find_queue(cq);
    if (queue)
        queue->leaving = true;
    mutex_release(&keeping);
    return queue;
}

static void end_queue(struct queue *queue)
{
    lock_assert_held(&keeping);
    hash_remove(&queue->by_address);
    for (struct kept *first; (first = TAILQ_FIRST(&queue->entries));) {
        TAILQ_REMOVE(&queue->entries, first, next);
        free(first);
    }
    free(queue);
}

static int destroy_cq(struct ibv_cq *cq)
{
    struct queue *queue = set_leaving(cq);
    int error = calls_get(&layer.below, ibv_destroy_cq)(cq);
    if (!queue)
        return error;
    mutex_take(&keeping);
    if (error)
        queue->leaving = false;
    else
        end_queue(queue);
    mutex_release(&keeping);
    return error;
}

/* With the queues that the program has left in it. */
static int close_device(struct ibv_context *context)
{
    int error = calls_get(&layer.below, ibv_close_device)(context);
    if (error)
        return error;
    mutex_take(&keeping);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct hash_entry *entry = buckets[bucket], *next; entry && (next = entry->next, true); entry = next) {
            struct queue *queue = container_of(entry, struct queue, by_address);
            if (queue->context == context && !queue->leaving)
                end_queue(queue);
        }
    mutex_release(&keeping);
    return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
    const struct ibv_context *context = qp->context;
    uint32_t number = qp->qp_num;
    int error = calls_get(&layer.below, ibv_destroy_qp)(qp);
    if (!error)
        withdraw(context, number);
    return error;
}

static int reset_late_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int error = calls_get(&layer.below, ibv_modify_qp)(qp, attr, mask);
    if (!error && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
        withdraw(qp->context, qp->qp_num);
    return error;
}

static struct calls_layer layer = {.name = "late",
                                   .place = CALLS_PLACE_LATE,
                                   .calls = {
#define FIELD(type, name, place, flag) .ibv_wc_read_##name = read_##name,
                                       EACH_FIELD(FIELD)
#undef FIELD
                                           .ibv_wc_read_tm_info = read_tm_info,
                                       .ibv_poll_cq = poll_cq, .ibv_start_poll = start_late_poll,
                                       .ibv_next_poll = next_late_poll, .ibv_end_poll = end_late_poll,
                                       .ibv_close_device = close_device, .ibv_destroy_cq = destroy_cq,
                                       .ibv_destroy_qp = destroy_qp, .ibv_modify_qp = reset_late_qp}};

/* Each reader has its field. */
#define FIELD(type, name, place, flag) +1
#define FIRST_READER(type, name, parameters, arguments) -1
#define READER(type, name, flag, parameters, arguments) -1
_Static_assert(1 /* tm_info */ EACH_FIELD(FIELD)
#include "calls/verbs.def"
                   == 0,
               "a field of an entry is missing");
#undef FIELD

void late_prepare(void)
{
    calls_put_around(&layer);
}
