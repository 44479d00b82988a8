#include "check/shadow/shadow.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/container.h"
#include "base/static_lock.h"
#include "check/findings/deferred.h"
#include "check/findings/finding.h"
#include "diag/sentence.h"

enum { BUCKETS = 1 << 10, GONE_MOST = 1 << 12 };

MUTEX_STATIC(all, LOCK_SHADOW);
static struct hash_entry *handle_buckets[BUCKETS], *number_buckets[BUCKETS];
static struct hash by_handle = {handle_buckets, BUCKETS - 1}, by_number = {number_buckets, BUCKETS - 1};
static struct shadow_list living = TAILQ_HEAD_INITIALIZER(living), gone = TAILQ_HEAD_INITIALIZER(gone);
static unsigned gone_count;
static uint64_t moment;
static uint64_t pinned; /* bytes, of the process `pinner` */
static pid_t pinner;
static _Atomic(uintptr_t) lowest = UINTPTR_MAX, highest; /* of all MRs that ever were; written under the lock */

const char *shadow_kind_name(enum shadow_kind kind)
{
    static const char *const names[] = {
#define SHADOW_KIND(KIND, name) name,
        SHADOW_KINDS
#undef SHADOW_KIND
    };
    return names[kind];
}

/* The form that the number of a kind has in sentences. */
enum form { HANDLE, NUMBER, DESCRIPTOR };

/* How sentences name each kind. */
static const struct spelling {
    const char *name;
    enum form form;
} spellings[] = {
    [SHADOW_QP] = {"queue pair", NUMBER},
    [SHADOW_WQ] = {"work queue", NUMBER},
    [SHADOW_CHANNEL] = {"completion channel", DESCRIPTOR},
    [SHADOW_CM_CHANNEL] = {"event channel", DESCRIPTOR},
    [SHADOW_CONTEXT] = {"context", DESCRIPTOR},
    [SHADOW_CM_ID] = {"rdma_cm_id", HANDLE},
    [SHADOW_CQ] = {"completion queue", HANDLE},
    [SHADOW_SRQ] = {"shared receive queue", HANDLE},
    [SHADOW_MR] = {"memory region", HANDLE},
    [SHADOW_MW] = {"memory window", HANDLE},
    [SHADOW_PD] = {"protection domain", HANDLE},
    [SHADOW_TD] = {"thread domain", HANDLE},
    [SHADOW_XRCD] = {"XRC domain", HANDLE},
    [SHADOW_AH] = {"address handle", HANDLE},
    [SHADOW_IND_TABLE] = {"indirection table", HANDLE},
    [SHADOW_DM] = {"device memory", HANDLE},
    [SHADOW_DMAH] = {"DMA handle", HANDLE},
    [SHADOW_COMP_CNTR] = {"completion counter", HANDLE},
    [SHADOW_COUNTERS] = {"set of counters", HANDLE},
    [SHADOW_FLOW] = {"flow", HANDLE},
};

const char *shadow_words(const struct shadow *shadow, char words[SHADOW_WORDS])
{
    const struct spelling *spelling = &spellings[shadow->kind];
    if (!shadow->number)
        snprintf(words, SHADOW_WORDS, "%s", spelling->name);
    else if (spelling->form == NUMBER)
        snprintf(words, SHADOW_WORDS, "%s 0x%x", spelling->name, shadow->number);
    else if (spelling->form == DESCRIPTOR)
        snprintf(words, SHADOW_WORDS, "%s with descriptor %u", spelling->name, shadow->number);
    else
        snprintf(words, SHADOW_WORDS, OBJECT_NAMED, spelling->name, shadow->number);
    return words;
}

bool shadow_is_child;

static void become_child(void)
{
    shadow_is_child = true;
}

void shadow_begin(void)
{
    pthread_atfork(NULL, NULL, become_child);
}

void shadow_lock(void)
{
    mutex_take(&all);
}

bool shadow_try_lock(void)
{
    return mutex_try(&all);
}

void shadow_unlock(void)
{
    mutex_release(&all);
    finding_flush();
    deferred_flush();
}

void shadow_assert_locked(void)
{
    lock_assert_held(&all);
}

const struct shadow_list *shadow_all(void)
{
    lock_assert_held(&all);
    return &living;
}

uint64_t shadow_moment(void)
{
    lock_assert_held(&all);
    return ++moment;
}

static struct shadow *of_handle(enum shadow_kind kind, const void *handle, bool is_gone)
{
    lock_assert_held(&all);
    struct hash_entry *entry = NULL;
    while ((entry = hash_find(&by_handle, (uintptr_t)handle, entry))) {
        struct shadow *shadow = container_of(entry, struct shadow, by_handle);
        if (shadow->kind == kind && shadow->gone == is_gone)
            return shadow;
    }
    return NULL;
}

struct shadow *shadow_find(enum shadow_kind kind, const void *handle)
{
    return of_handle(kind, handle, false);
}

struct shadow *shadow_find_gone(enum shadow_kind kind, const void *handle)
{
    return of_handle(kind, handle, true);
}

struct shadow *shadow_find_number(enum shadow_kind kind, uint32_t number)
{
    lock_assert_held(&all);
    struct hash_entry *entry = NULL;
    while ((entry = hash_find(&by_number, number, entry))) {
        struct shadow *shadow = container_of(entry, struct shadow, by_number);
        if (shadow->kind == kind)
            return shadow;
    }
    return NULL;
}

struct shadow *shadow_find_gone_key(uint32_t lkey)
{
    lock_assert_held(&all);
    struct shadow *shadow;
    TAILQ_FOREACH_REVERSE (shadow, &gone, shadow_list, siblings)
        if (shadow->kind == SHADOW_MR && (uint32_t)shadow->by_number.key == lkey)
            break;
    return shadow;
}

static void drop(struct shadow *shadow)
{
    lock_assert_held(&all);
    hash_remove(&shadow->by_handle);
    TAILQ_REMOVE(shadow->gone ? &gone : &living, shadow, siblings);
    gone_count -= shadow->gone;
    free(shadow);
}

void shadow_forget(const void *handle)
{
    lock_assert_held(&all);
    struct hash_entry *entry = hash_find(&by_handle, (uintptr_t)handle, NULL);
    while (entry) {
        struct hash_entry *next = hash_find(&by_handle, (uintptr_t)handle, entry);
        struct shadow *earlier = container_of(entry, struct shadow, by_handle);
        if (!earlier->gone)
            shadow_remove(earlier, NULL);
        drop(earlier);
        entry = next;
    }
}

void shadow_name(struct shadow *shadow, uint32_t number)
{
    lock_assert_held(&all);
    hash_add(&by_number, &shadow->by_number, number);
}

struct shadow *shadow_add(enum shadow_kind kind, const void *handle, uint32_t number, const struct place *created)
{
    lock_assert_held(&all);
    shadow_forget(handle);
    struct shadow *shadow = calloc(1, sizeof *shadow);
    if (!shadow)
        return NULL;
    shadow->kind = kind;
    shadow->handle = handle;
    shadow->number = number;
    shadow->serial = shadow_moment();
    shadow->process = getpid();
    shadow->created = *created;
    hash_add(&by_handle, &shadow->by_handle, (uintptr_t)handle);
    if (kind == SHADOW_MR)
        shadow_name(shadow, ((const struct ibv_mr *)handle)->lkey);
    if (kind == SHADOW_QP)
        shadow_name(shadow, number);
    TAILQ_INSERT_TAIL(&living, shadow, siblings);
    return shadow;
}

/* Returns the bytes of pages that an MR pins; 0 in a child of a fork for an MR of its parent. */
static uint64_t pages_of(const struct shadow *shadow)
{
    const struct shadow_mr *mr = &shadow->mr;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)mr->address & ~(page - 1);
    if (!mr->address || mr->access & IBV_ACCESS_ON_DEMAND || shadow->process != getpid())
        return 0;
    return (((uintptr_t)mr->address + mr->length + page - 1) & ~(page - 1)) - begin;
}

uint64_t shadow_pinned(void)
{
    lock_assert_held(&all);
    if (pinner != getpid())
        pinned = 0;
    pinner = getpid();
    return pinned;
}

bool shadow_may_hold(const void *address, size_t length)
{
    return (uintptr_t)address + length > atomic_load_explicit(&lowest, memory_order_relaxed) &&
           (uintptr_t)address < atomic_load_explicit(&highest, memory_order_relaxed);
}

static void widen(const struct shadow_mr *mr)
{
    lock_assert_held(&all);
    uintptr_t begin = (uintptr_t)mr->address, end = begin + mr->length;
    if (begin && begin < atomic_load(&lowest))
        atomic_store(&lowest, begin);
    if (begin && end > atomic_load(&highest))
        atomic_store(&highest, end);
}

void shadow_set_mr(struct shadow *shadow, const struct shadow_mr *mr)
{
    lock_assert_held(&all);
    widen(mr);
    pinned = shadow_pinned() - pages_of(shadow);
    shadow->mr = *mr;
    shadow->mr.since = shadow_moment();
    pinned += pages_of(shadow);
}

void shadow_end_work(struct shadow *qp)
{
    lock_assert_held(&all);
    if (qp->qp.send_cq) {
        qp->qp.send_cq->cq.due -= qp->qp.signaled;
        qp->qp.send_cq->cq.sends_due -= qp->qp.signaled;
    }
    if (qp->qp.recv_cq)
        qp->qp.recv_cq->cq.due -= qp->qp.receives.count;
    qp->qp.signaled = 0;
    wqe_clear(&qp->qp.sends);
    wqe_clear(&qp->qp.receives);
}

/* Clears references to the record of a destroyed object, which is freed later. */
static void forget_uses(struct shadow *shadow)
{
    lock_assert_held(&all);
    struct shadow *other;
    TAILQ_FOREACH (other, &living, siblings) {
        if (other->kind == SHADOW_CQ && other->cq.channel == shadow)
            other->cq.channel = NULL;
        if (other->kind != SHADOW_QP)
            continue;
        if (other->qp.send_cq == shadow)
            other->qp.send_cq = NULL;
        if (other->qp.recv_cq == shadow)
            other->qp.recv_cq = NULL;
        if (other->qp.srq == shadow)
            other->qp.srq = NULL;
    }
}

static bool is_named(enum shadow_kind kind)
{
    return kind == SHADOW_CQ || kind == SHADOW_CHANNEL || kind == SHADOW_SRQ;
}

void shadow_remove(struct shadow *shadow, const struct place *destroyed)
{
    lock_assert_held(&all);
    if (shadow->kind == SHADOW_MR)
        shadow_set_mr(shadow, &(struct shadow_mr){0});
    if (shadow->kind == SHADOW_SRQ)
        wqe_clear(&shadow->srq.receives);
    if (shadow->kind == SHADOW_QP) {
        if (shadow->qp.srq) { /* completions of its receives that were not polled are dropped with the queue pair */
            wqe_clear(&shadow->qp.srq->srq.receives);
            shadow->qp.srq->srq.users--;
        }
        shadow_end_work(shadow);
        wqe_clear(&shadow->qp.batch.work);
    }
    hash_remove(&shadow->by_number);
    TAILQ_REMOVE(&living, shadow, siblings);
    if (is_named(shadow->kind))
        forget_uses(shadow);
    if (destroyed)
        shadow->destroyed = *destroyed;
    shadow->gone = true;
    TAILQ_INSERT_TAIL(&gone, shadow, siblings);
    if (++gone_count > GONE_MOST)
        drop(TAILQ_FIRST(&gone));
}
