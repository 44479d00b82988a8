/* Every access to memory by the code under test, as gcc's -fsanitize=thread announces it: the interface of
 * ThreadSanitizer's run-time library, which is not linked. Atomic operations on what others may see are steps. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "host.h"
#include "memory.h"
#include "schedule.h"
#include "seam.h"
#include "statics.h"
#include "trace.h"

enum { RELAXED, CONSUME, ACQUIRE, RELEASE, ACQUIRE_RELEASE, SEQUENTIAL }; /* __ATOMIC_ of the compiler */

extern char __data_start, _end;

static bool is_static(const volatile void *address)
{
    return (uintptr_t)address >= (uintptr_t)&__data_start && (uintptr_t)address < (uintptr_t)&_end;
}

/* Static data that isn't kept for each process would be shared by all of them. */
static void check(const volatile void *address, bool writes)
{
    const struct model_process *process = schedule_process_now();
    if (!process)
        return;
    const char *fault = memory_fault(address, process->number);
    if (fault)
        schedule_violation("%s %s, at %s", process->name, fault, trace_place(address));
    if (writes && schedule_thread_now() && memory_is_constant(address))
        schedule_violation("%s writes to %s, which the scenario takes for constant", process->name,
                           trace_place(address));
    if (writes && is_static(address) && !statics_have(address))
        schedule_violation("writes static data that statics.c does not know, at %p", (const void *)(uintptr_t)address);
}

/* Returns true if another thread can notice this access. A ring that no other process has mapped yet can't be looked at
 * before it is. */
static bool is_visible(const volatile void *address)
{
    const struct model_region *region = memory_region(address);
    bool threads = schedule_process_now() && schedule_process_now()->threads > 1;
    if (!region)
        return threads && is_static(address);
    if (region->kind == MEMORY_RING)
        return threads || memory_mappers(region) > 1;
    if (memory_is_constant(address))
        return false;
    if (region->kind == MEMORY_PUBLISHED)
        return memory_mappers(region) > 1;
    return region->kind == MEMORY_FILE ||
           ((region->kind == MEMORY_HEAP || region->kind == MEMORY_REGISTERS) && threads);
}

/* `fences`: nothing that the thread has written before stays held back. */
static bool begin(const volatile void *address, bool writes, bool fences)
{
    if (!schedule_thread_now()) {
        check(address, writes);
        return false;
    }
    bool visible = is_visible(address);
    if (visible)
        schedule_step();
    if (fences)
        schedule_flush();
    check(address, writes);
    return visible;
}

static uint64_t load(const volatile void *address, unsigned size, const void *at)
{
    uint64_t value;
    bool visible = begin(address, false, false);
    if (!schedule_held(address, size, &value))
        value = memory_load(address, size);
    schedule_saw(value);
    if (visible)
        trace_line(at, "loads 0x%llx from %s", (unsigned long long)value, trace_place(address));
    return value;
}

/* A store into a closed page faults. When the handler has returned, it is executed again, and the thread has learned
 * nothing from it. The page must be open when the processor executes the store, not when it becomes visible. */
static void store_register(volatile void *address, unsigned size, uint64_t value, const void *at)
{
    schedule_step();
    check(address, true);
    unsigned faults = 0;
    for (uint64_t known = schedule_known(); memory_is_closed(); schedule_forget(known + faults)) {
        trace_line(at, "stores to %s, and faults", trace_place(address));
        host_fault(address, ++faults, at);
        schedule_step();
    }
    bool held = schedule_hold(address, size, value);
    if (!held)
        memory_store(address, size, value);
    trace_line(at, "stores 0x%llx to %s%s", (unsigned long long)value, trace_place(address), held ? ", held back" : "");
}

static void store(volatile void *address, unsigned size, uint64_t value, int order, const void *at)
{
    if (memory_is_register(memory_region(address))) {
        store_register(address, size, value, at);
        return;
    }
    if (order != SEQUENTIAL && schedule_thread_now() && is_visible(address) && schedule_hold(address, size, value)) {
        schedule_saw(1);
        trace_line(at, "stores 0x%llx to %s, held back", (unsigned long long)value, trace_place(address));
        return;
    }
    bool visible = begin(address, true, order == SEQUENTIAL);
    memory_store(address, size, value);
    if (visible)
        trace_line(at, "stores 0x%llx to %s", (unsigned long long)value, trace_place(address));
}

/* A thread that exchanges a taken lock's word again and again waits until it is free. */
static bool is_free(const void *word)
{
    return *(const uint8_t *)word == 0;
}

static void wait_in_spin(volatile void *address, unsigned size, uint64_t value)
{
    static const volatile void *spun;
    static const struct model_thread *spinner;
    static uint64_t execution;
    if (size != 1 || value != 1 || memory_load(address, 1) != 1) {
        spun = NULL;
        return;
    }
    if (spun == address && spinner == schedule_thread_now() && execution == schedule_execution()) {
        trace_line(NULL, "waits for the lock %s", trace_place(address));
        schedule_wait(is_free, (const void *)(uintptr_t)address, NANOS_NEVER);
        spun = NULL;
        return;
    }
    spun = address;
    spinner = schedule_thread_now();
    execution = schedule_execution();
}

enum change { EXCHANGE, ADD, SUBTRACT, AND, OR, XOR };

static uint64_t apply(enum change change, uint64_t old, uint64_t operand)
{
    switch (change) {
    case ADD:
        return old + operand;
    case SUBTRACT:
        return old - operand;
    case AND:
        return old & operand;
    case OR:
        return old | operand;
    case XOR:
        return old ^ operand;
    default:
        return operand;
    }
}

static uint64_t modify(volatile void *address, unsigned size, uint64_t operand, enum change change, const void *at)
{
    bool visible = begin(address, true, true);
    if (change == EXCHANGE && visible)
        wait_in_spin(address, size, operand);
    uint64_t old = memory_load(address, size), value = apply(change, old, operand);
    memory_store(address, size, value);
    schedule_saw(old);
    if (visible)
        trace_line(at, "changes %s from 0x%llx to 0x%llx", trace_place(address), (unsigned long long)old,
                   (unsigned long long)memory_load(address, size));
    return old;
}

static bool compare(volatile void *address, unsigned size, uint64_t *expected, uint64_t value, const void *at)
{
    bool visible = begin(address, true, true);
    uint64_t old = memory_load(address, size);
    bool same = old == *expected;
    if (same)
        memory_store(address, size, value);
    *expected = old;
    schedule_saw(old);
    if (visible && same)
        trace_line(at, "changes %s from 0x%llx to 0x%llx, as expected", trace_place(address), (unsigned long long)old,
                   (unsigned long long)value);
    else if (visible)
        trace_line(at, "finds 0x%llx in %s, not as expected", (unsigned long long)old, trace_place(address));
    return same;
}

/* Published memory may be read while it is written anew. */
static void step_if_published(const volatile void *address)
{
    const struct model_region *region = memory_region(address);
    if (region && region->kind == MEMORY_PUBLISHED && is_visible(address))
        schedule_step();
}

static void plain_read(const volatile void *address, size_t size)
{
    if (!memory_region(address))
        return;
    step_if_published(address);
    check(address, false);
    for (size_t i = 0; i + 8 <= size && i < 64; i += 8)
        schedule_saw(memory_load((const volatile uint8_t *)address + i, 8));
    if (size % 8 && size < 64)
        schedule_saw(memory_load((const volatile uint8_t *)address + size / 8 * 8, size % 8));
}

static void plain_write(volatile void *address, size_t size)
{
    if (!memory_region(address) && !is_static(address))
        return;
    step_if_published(address);
    check(address, true);
    memory_touch(address, size);
}

/* --- what the compiler calls; its names are not ours to choose */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"

#define HERE __builtin_return_address(0)

#define ATOMIC(bits, type)                                                                                             \
    type __tsan_atomic##bits##_load(const volatile type *a, int order)                                                 \
    {                                                                                                                  \
        return (type)load(a, sizeof(type), HERE);                                                                      \
    }                                                                                                                  \
    void __tsan_atomic##bits##_store(volatile type *a, type value, int order)                                          \
    {                                                                                                                  \
        store(a, sizeof(type), value, order, HERE);                                                                    \
    }                                                                                                                  \
    MODIFY(bits, type, exchange, EXCHANGE)                                                                             \
    MODIFY(bits, type, fetch_add, ADD)                                                                                 \
    MODIFY(bits, type, fetch_sub, SUBTRACT)                                                                            \
    MODIFY(bits, type, fetch_and, AND)                                                                                 \
    MODIFY(bits, type, fetch_or, OR)                                                                                   \
    MODIFY(bits, type, fetch_xor, XOR)                                                                                 \
    COMPARE(bits, type, strong)                                                                                        \
    COMPARE(bits, type, weak)

#define MODIFY(bits, type, name, change)                                                                               \
    type __tsan_atomic##bits##_##name(volatile type *a, type value, int order)                                         \
    {                                                                                                                  \
        return (type)modify(a, sizeof(type), value, change, HERE);                                                     \
    }

#define COMPARE(bits, type, name)                                                                                      \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *a, type *expected, type value, int order,         \
                                                      int failing)                                                     \
    {                                                                                                                  \
        uint64_t wide = *expected;                                                                                     \
        bool same = compare(a, sizeof(type), &wide, value, HERE);                                                      \
        *expected = (type)wide;                                                                                        \
        return same;                                                                                                   \
    }

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
    if (order != SEQUENTIAL || !schedule_thread_now())
        return;
    schedule_flush();
}

void __tsan_atomic_signal_fence(int order)
{
}

#define PLAIN(size)                                                                                                    \
    void __tsan_read##size(void *a)                                                                                    \
    {                                                                                                                  \
        plain_read(a, size);                                                                                           \
    }                                                                                                                  \
    void __tsan_write##size(void *a)                                                                                   \
    {                                                                                                                  \
        plain_write(a, size);                                                                                          \
    }                                                                                                                  \
    void __tsan_unaligned_read##size(void *a)                                                                          \
    {                                                                                                                  \
        plain_read(a, size);                                                                                           \
    }                                                                                                                  \
    void __tsan_unaligned_write##size(void *a)                                                                         \
    {                                                                                                                  \
        plain_write(a, size);                                                                                          \
    }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *a, size_t size)
{
    plain_read(a, size);
}

void __tsan_write_range(void *a, size_t size)
{
    plain_write(a, size);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
}

void __tsan_func_exit(void)
{
}

/* Copies, which the compiler does not announce; seam.h. */
void *model_memcpy(void *to, const void *from, size_t size)
{
    plain_read(from, size);
    plain_write(to, size);
    return memcpy(to, from, size);
}

bool model_guarded_copy(void *to, const void *from, size_t size)
{
    model_memmove(to, from, size);
    return true;
}

bool model_guarded_load(const void *from, unsigned size, uint64_t *value)
{
    *value = 0;
    model_memcpy(value, from, size);
    return true;
}

bool model_guarded_store(void *to, uint64_t value, unsigned size)
{
    model_memcpy(to, &value, size);
    return true;
}

/* The memory of a process of the model does not go away. */
bool model_payload_can_land(const struct iovec *to, uint32_t count)
{
    return true;
}

/* Copies payloads of one piece in a ring; one step stores all of it. */
bool model_payload_copy(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    const uint8_t *from = (const uint8_t *)payload->pieces->iov_base + offset;
    for (uint32_t i = 0; i < count; from += to[i++].iov_len)
        model_memcpy(to[i].iov_base, from, to[i].iov_len);
    return payload->count == 1 && !payload->pull;
}

void *model_memmove(void *to, const void *from, size_t size)
{
    plain_read(from, size);
    plain_write(to, size);
    return memmove(to, from, size);
}

void *model_memset(void *to, int byte, size_t size)
{
    plain_write(to, size);
    return memset(to, byte, size);
}
