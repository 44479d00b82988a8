#include "around/library/held.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/static_lock.h"

enum { BUCKET_BITS = 14 };

static struct held *_Atomic buckets[HELD_KINDS][1 << BUCKET_BITS];
MUTEX_STATIC(adding, LOCK_AROUND);

static struct held *_Atomic *bucket_of(enum held_kind kind, const void *object)
{
    return &buckets[kind][(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUCKET_BITS)];
}

struct held *held_find(enum held_kind kind, const void *object)
{
    struct held *held = atomic_load_explicit(bucket_of(kind, object), memory_order_acquire);
    while (held && held->object != object)
        held = held->next;
    return held;
}

static struct held *add_record(enum held_kind kind, void *object)
{
    lock_assert_held(&adding);
    struct held *_Atomic *bucket = bucket_of(kind, object);
    struct held *held = calloc(1, sizeof *held);
    if (!held)
        return NULL;
    held->object = object;
    held->kind = kind;
    held->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, held, memory_order_release);
    return held;
}

static void leave_layers(struct held *held)
{
    calls_leave(&held->holder);
    held->holder.change = NULL;
}

struct held *held_begin(enum held_kind kind, void *object)
{
    mutex_take(&adding);
    struct held *held = held_find(kind, object);
    held = held ? held : add_record(kind, object);
    mutex_release(&adding);
    if (held)
        leave_layers(held);
    return held;
}

struct held *held_end(enum held_kind kind, const void *object)
{
    struct held *held = held_find(kind, object);
    if (!held || !held->holder.change)
        return NULL;
    leave_layers(held);
    return held;
}
