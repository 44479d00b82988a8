#include "check/outside/unmaps.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/findings/checker_scope.h"
#include "check/outside/loaded.h"
#include "check/outside/losses.h"
#include "check/outside/pages.h"
#include "check/rule.h"
#include "check/shadow/memory.h"

/* Linux has these since 5.18 and 5.7. */
#ifndef MADV_DONTNEED_LOCKED
enum { MADV_DONTNEED_LOCKED = 24 };
#endif
#ifndef MREMAP_DONTUNMAP
enum { MREMAP_DONTUNMAP = 4 };
#endif

/* The functions that the replacements call, in the order of `entries`. */
static struct {
    int (*munmap)(void *, size_t);
    int (*brk)(void *);
    void *(*sbrk)(intptr_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    void *(*mmap64)(void *, size_t, int, int, int, off64_t);
    void *(*mremap)(void *, size_t, size_t, int, ...);
    int (*madvise)(void *, size_t, int);
    int (*shmdt)(const void *);
    int (*mprotect)(void *, size_t, int);
} really = {munmap, brk, sbrk, mmap, mmap64, mremap, madvise, shmdt, mprotect};

/* Opens protected pages of this memory. If another thread has the checker's lock nothing is opened, as this thread
 * itself may hold it. */
static void open_pages(const void *memory, size_t length)
{
    if (!rule_chosen.pages || inside_checker || !shadow_try_lock())
        return;
    pages_forget(memory, length);
    shadow_unlock();
}

static size_t whole_pages(size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE) - 1;
    return (length + page) & ~page;
}

/* Begins a call that takes these pages. */
static struct memory_loss begin_taking(enum memory_loss_kind kind, const char *call, const void *memory, size_t length,
                                       const void *caller)
{
    struct memory_loss loss = {kind, call, caller, 0, memory, whole_pages(length)};
    open_pages(memory, length);
    losses_begin(&loss);
    return loss;
}

#define BEGIN(kind, memory, length)                                                                                    \
    begin_taking(kind, __func__ + sizeof "seen", memory, length, __builtin_return_address(0))

static int seen_munmap(void *memory, size_t length)
{
    struct memory_loss loss = BEGIN(MEMORY_UNMAPPED, memory, length);
    int result = really.munmap(memory, length);
    if (!result)
        losses_end(&loss);
    return result;
}

static int seen_brk(void *end)
{
    char *before = really.sbrk(0);
    size_t length = (char *)end < before ? (size_t)(before - (char *)end) : 0;
    struct memory_loss loss = BEGIN(MEMORY_UNMAPPED, end, length);
    int result = really.brk(end);
    if (!result && length)
        losses_end(&loss);
    return result;
}

static void *seen_sbrk(intptr_t increment)
{
    size_t length = increment < 0 ? (size_t)-increment : 0;
    struct memory_loss loss = BEGIN(MEMORY_UNMAPPED, (char *)really.sbrk(0) - length, length);
    void *before = really.sbrk(increment);
    if (length && before != (void *)-1)
        losses_end(&loss);
    return before;
}

/* Returns true if the pages stay, as they are mapped anew from the same place of their file. */
static bool stays(const struct memory_loss *loss, int flags, int file, off64_t offset)
{
    struct stat status;
    if (!(flags & MAP_SHARED) || flags & MAP_ANONYMOUS || fstat(file, &status) || !shadow_try_lock())
        return false;
    bool same = memory_is_of_file(loss, status.st_ino, (uint64_t)offset);
    shadow_unlock();
    return same;
}

/* Begins a mapping, which takes pages only at a fixed place. Some allocators unmap by a mapping without any right. */
static struct memory_loss begin_mapping(const char *call, void *at, size_t length, int protection, int flags,
                                        const void *caller)
{
    struct memory_loss loss = {.before = 0};
    enum memory_loss_kind kind = protection == PROT_NONE ? MEMORY_UNMAPPED : MEMORY_REPLACED;
    return flags & MAP_FIXED ? begin_taking(kind, call, at, length, caller) : loss;
}

static void end_mapping(const struct memory_loss *loss, const void *result, int flags, int file, off64_t offset)
{
    if (result != MAP_FAILED && loss->before && !stays(loss, flags, file, offset))
        losses_end(loss);
}

#define MAPS(name, offset_type)                                                                                        \
    static void *seen_##name(void *at, size_t length, int protection, int flags, int file, offset_type offset)         \
    {                                                                                                                  \
        struct memory_loss loss = begin_mapping("mmap", at, length, protection, flags, __builtin_return_address(0));   \
        void *result = really.name(at, length, protection, flags, file, offset);                                       \
        end_mapping(&loss, result, flags, file, offset);                                                               \
        return result;                                                                                                 \
    }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

/* The argument `flags` says whether there is a fifth one. The pages move, or those after the new end are unmapped. With
 * a `length` of 0 the pages are mapped a second time, and stay. */
static void *seen_mremap(void *from, size_t length, size_t wanted, int flags, ...)
{
    const void *caller = __builtin_return_address(0);
    void *to = NULL;
    va_list more;
    va_start(more, flags);
    if (flags & MREMAP_FIXED)
        to = va_arg(more, void *);
    va_end(more);
    struct memory_loss moved =
        begin_taking(flags & MREMAP_DONTUNMAP ? MEMORY_EMPTIED : MEMORY_UNMAPPED, "mremap", from, length, caller);
    struct memory_loss covered =
        begin_mapping("mremap", to, wanted, PROT_READ, flags & MREMAP_FIXED ? MAP_FIXED : 0, caller);
    void *result = really.mremap(from, length, wanted, flags, to);
    size_t left = result == from ? whole_pages(wanted) : 0;
    moved.begin += left;
    moved.length -= left < moved.length ? left : moved.length;
    if (result != MAP_FAILED && moved.length)
        losses_end(&moved);
    if (result != MAP_FAILED && covered.before)
        losses_end(&covered);
    return result;
}

/* Returns true if the advice takes pages away. MADV_FREE does not, as the kernel keeps pages that are pinned. */
static bool empties(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_REMOVE;
}

/* Returns true if the pages stay: a shared mapping of a file loses only its references to them. */
static bool keeps_pages(const struct memory_loss *loss)
{
    if (!loss->before || !shadow_try_lock())
        return true;
    bool keeps = memory_is_shared(loss);
    shadow_unlock();
    return keeps;
}

static int seen_madvise(void *memory, size_t length, int advice)
{
    struct memory_loss loss = {.before = 0};
    if (empties(advice))
        loss = BEGIN(MEMORY_EMPTIED, memory, length);
    int result = really.madvise(memory, length, advice);
    if (!result && empties(advice) && (advice == MADV_REMOVE || !keeps_pages(&loss)))
        losses_end(&loss);
    return result;
}

/* shmdt has no argument for the length: it is the length of the mapping in which a region was registered. */
static int seen_shmdt(const void *memory)
{
    size_t length = 0;
    if (!inside_checker && shadow_may_hold(memory, SIZE_MAX / 2) && shadow_try_lock()) {
        length = memory_attached(memory);
        shadow_unlock();
    }
    struct memory_loss loss = BEGIN(MEMORY_UNMAPPED, memory, length);
    int result = really.shmdt(memory);
    if (!result && length)
        losses_end(&loss);
    return result;
}

static int seen_mprotect(void *at, size_t length, int protection)
{
    open_pages(at, length);
    return really.mprotect(at, length, protection);
}

static const struct imports_entry entries[] = {
    {"munmap", (imports_function *)seen_munmap},    {"brk", (imports_function *)seen_brk},
    {"sbrk", (imports_function *)seen_sbrk},        {"mmap", (imports_function *)seen_mmap},
    {"mmap64", (imports_function *)seen_mmap64},    {"mremap", (imports_function *)seen_mremap},
    {"madvise", (imports_function *)seen_madvise},  {"shmdt", (imports_function *)seen_shmdt},
    {"mprotect", (imports_function *)seen_mprotect}};

void unmaps_begin(void)
{
    int bound = munmap(NULL, 0) && brk(NULL) && !sbrk(0); /* these calls change nothing, but bind the program's stubs */
    void *unused = mmap(NULL, 0, PROT_NONE, 0, -1, 0);
    unused = mmap64(unused, 0, PROT_NONE, 0, -1, 0);
    unused = mremap(unused, 0, 0, 0);
    bound |= madvise(NULL, 0, MADV_NORMAL) | shmdt(NULL) | mprotect(NULL, 0, PROT_NONE);
    (void)bound;
    loaded_replace(entries, (loaded_original *)&really, sizeof entries / sizeof *entries, NULL);
}
