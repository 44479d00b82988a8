#include "check/outside/pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/guard.h"

enum { SLOTS = 1024, RELEASED = 64 };

/* The handler of the signal reads them at any time, and a slot is used again for other pages. */
static struct slot {
    _Atomic(uintptr_t) begin, end; /* begin 0: free */
    _Atomic(const void *) toucher;
    uint64_t work;
    bool is_used;
} slots[SLOTS];

static unsigned used; /* slots from there on never were */

/* The last ones that were released: a thread may have faulted there just before. */
static struct {
    _Atomic(uintptr_t) begin, end;
} released[RELEASED];
static unsigned released_next;

static bool is_between(uintptr_t at, uintptr_t begin, uintptr_t end)
{
    return begin && at >= begin && at < end;
}

static void open_slot(const struct slot *slot)
{
    uintptr_t begin = atomic_load(&slot->begin);
    int error = errno;
    mprotect((void *)begin, atomic_load(&slot->end) - begin, PROT_READ | PROT_WRITE);
    errno = error;
}

static bool was_released(uintptr_t at)
{
    for (unsigned which = 0; which < RELEASED; which++)
        if (is_between(at, atomic_load(&released[which].begin), atomic_load(&released[which].end)))
            return true;
    return false;
}

/* Of the handler. A page that was released a moment ago is tried once more. */
static bool open_at(const void *address, const void *instruction)
{
    static _Thread_local const void *tried __attribute__((tls_model("initial-exec")));
    uintptr_t at = (uintptr_t)address;
    for (unsigned which = 0; which < __atomic_load_n(&used, __ATOMIC_ACQUIRE); which++) {
        struct slot *slot = &slots[which];
        const void *none = NULL;
        if (!is_between(at, atomic_load(&slot->begin), atomic_load(&slot->end)))
            continue;
        if (instruction)
            atomic_compare_exchange_strong(&slot->toucher, &none, instruction);
        open_slot(slot);
        return true;
    }
    bool again = tried != address && was_released(at);
    tried = again ? address : NULL;
    return again;
}

void pages_begin(void)
{
    guard_open_by(open_at);
}

static bool is_taken(uintptr_t begin, uintptr_t end)
{
    for (unsigned which = 0; which < used; which++)
        if (slots[which].is_used && begin < slots[which].end && slots[which].begin < end)
            return true;
    return false;
}

static struct slot *find_free(void)
{
    for (unsigned which = 0; which < used; which++)
        if (!slots[which].is_used)
            return &slots[which];
    if (used == SLOTS)
        return NULL;
    __atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
    return &slots[used - 1];
}

bool pages_protect(const char *memory, size_t length, uint64_t work)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)memory;
    uintptr_t begin = (at + page - 1) & ~(page - 1), end = (at + length) & ~(page - 1);
    struct slot *slot = memory && begin < end && !is_taken(begin, end) ? find_free() : NULL;
    if (!slot)
        return false;
    atomic_store(&slot->toucher, NULL);
    atomic_store(&slot->end, end);
    atomic_store(&slot->begin, begin);
    slot->work = work;
    slot->is_used = !mprotect((void *)begin, end - begin, PROT_NONE);
    if (!slot->is_used)
        atomic_store(&slot->begin, 0);
    return slot->is_used;
}

static void release(struct slot *slot)
{
    open_slot(slot);
    atomic_store(&released[released_next].begin, 0);
    atomic_store(&released[released_next].end, slot->end);
    atomic_store(&released[released_next].begin, slot->begin);
    released_next = (released_next + 1) % RELEASED;
    atomic_store(&slot->begin, 0);
    slot->is_used = false;
}

const void *pages_release(uint64_t work)
{
    const void *toucher = NULL;
    for (unsigned which = 0; which < used; which++) {
        struct slot *slot = &slots[which];
        if (!slot->is_used || slot->work != work)
            continue;
        release(slot);
        const void *own = atomic_load(&slot->toucher);
        toucher = toucher ? toucher : own;
    }
    return toucher;
}
