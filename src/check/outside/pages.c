#include "check/outside/pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "link/guard.h"

enum { SLOTS = 1024, RELEASED = 64 };

/* The signal's handler reads the slots at any time, also while one is used again for other pages. */
static struct slot {
    _Atomic(uintptr_t) begin, end; /* begin 0: free */
    _Atomic(const void *) toucher;
    uint64_t work;
    bool is_used;
} slots[SLOTS];

static unsigned used; /* slots from here on were never used */

/* The pages that were released last: a thread may have faulted there just before. */
static struct {
    _Atomic(uintptr_t) begin, end;
} released[RELEASED];
static unsigned released_next;

static bool is_between(uintptr_t at, uintptr_t begin, uintptr_t end)
{
    return begin && at >= begin && at < end;
}

/* Returns true if the page can't be read, so that it is ours: other pages, mapped there unseen, can mostly be read. */
static bool is_closed(uintptr_t at)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)at, 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1;
}

static void open_slot(const struct slot *slot)
{
    uintptr_t begin = atomic_load(&slot->begin);
    mprotect((void *)begin, atomic_load(&slot->end) - begin, PROT_READ | PROT_WRITE);
}

static bool was_released(uintptr_t at)
{
    for (unsigned which = 0; which < RELEASED; which++)
        if (is_between(at, atomic_load(&released[which].begin), atomic_load(&released[which].end)))
            return true;
    return false;
}

/* Called in the handler. An access to a page that was released or opened a moment ago is tried once more. */
static bool open_now(const void *address, const void *instruction)
{
    static _Thread_local const void *tried __attribute__((tls_model("initial-exec")));
    uintptr_t at = (uintptr_t)address;
    bool found = false;
    for (unsigned which = 0; which < __atomic_load_n(&used, __ATOMIC_ACQUIRE); which++) {
        struct slot *slot = &slots[which];
        const void *none = NULL;
        if (!is_between(at, atomic_load(&slot->begin), atomic_load(&slot->end)))
            continue;
        found = true;
        if (!is_closed(at))
            break;
        if (instruction)
            atomic_compare_exchange_strong(&slot->toucher, &none, instruction);
        open_slot(slot);
        return true;
    }
    bool again = tried != address && (found || was_released(at));
    tried = again ? address : NULL;
    return again;
}

static bool open_at(const void *address, const void *instruction)
{
    int error = errno;
    bool opened = open_now(address, instruction);
    errno = error;
    return opened;
}

static uintptr_t end_at(uintptr_t at)
{
    for (unsigned which = 0; which < __atomic_load_n(&used, __ATOMIC_ACQUIRE); which++) {
        uintptr_t end = atomic_load(&slots[which].end);
        if (is_between(at, atomic_load(&slots[which].begin), end))
            return end;
    }
    return 0;
}

void pages_begin(void)
{
    static const struct guard_protector protector = {open_at, end_at};
    guard_protect_by(&protector);
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
    int error = errno;
    if (is_closed(slot->begin))
        open_slot(slot);
    errno = error;
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

void pages_forget(const char *memory, size_t length)
{
    uintptr_t begin = (uintptr_t)memory, end = begin + length;
    for (unsigned which = 0; which < used; which++)
        if (slots[which].is_used && begin < slots[which].end && slots[which].begin < end)
            release(&slots[which]);
}
