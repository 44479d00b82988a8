#include "check/outside/frees.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check/findings/checker_scope.h"
#include "check/hooks_call.h"
#include "check/outside/loaded.h"
#include "check/outside/remaps.h"
#include "check/shadow/memory.h"

/* The functions that those below call, in the order of `entries`. */
static struct {
    void (*free)(void *);
    void *(*realloc)(void *, size_t);
    int (*munmap)(void *, size_t);
    int (*brk)(void *);
    void *(*sbrk)(intptr_t);
} really = {free, realloc, munmap, brk, sbrk};

/* Whether malloc_usable_size knows the memory that free does. Written in frees_begin. A program may have another
 * allocator without that function, and then the C library's has no sizes of its memory. */
static bool has_sizes;

static bool is_of_one_object(const void *one, const void *other)
{
    Dl_info info, beside;
    return dladdr(one, &info) && dladdr(other, &beside) && info.dli_fbase == beside.dli_fbase;
}

/* Notes memory that is freed, unless the lock is taken: this may run in a fork's handler, in a thread that holds it. */
static void note_freed(const char *memory, size_t length)
{
    struct shadow *owner;
    if (!shadow_try_lock())
        return;
    const struct wqe *wqe = memory_find_user(memory, length, &owner);
    if (wqe)
        HOOKS_CALL(memory.freed, owner, wqe);
    shadow_unlock();
}

static size_t size_of(void *memory)
{
    return has_sizes ? malloc_usable_size(memory) : 1;
}

static void seen_free(void *memory)
{
    if (!inside_checker && shadow_may_hold(memory))
        note_freed(memory, size_of(memory));
    really.free(memory);
}

/* If the memory has moved, it was freed at the old address, which is only compared. */
static void *seen_realloc(void *memory, size_t size)
{
    bool watched = memory && !inside_checker && shadow_may_hold(memory);
    size_t length = watched ? size_of(memory) : 0;
    const char *before = memory;
    char *now = really.realloc(memory, size);
    if (watched && now != before && (now || !size))
        note_freed(before, length);
    return now;
}

/* Notes memory that the program unmaps, unless the checker does it or the lock is taken. */
static void note_unmapped(const char *memory, size_t length)
{
    struct shadow *owner;
    if (inside_checker || !shadow_try_lock())
        return;
    const struct wqe *wqe = memory_find_user(memory, length, &owner);
    if (wqe)
        HOOKS_CALL(memory.unmapped, owner, wqe);
    shadow_unlock();
}

static int seen_munmap(void *memory, size_t length)
{
    remaps_forget(memory, length);
    int result = really.munmap(memory, length);
    if (!result)
        note_unmapped(memory, length);
    return result;
}

static int seen_brk(void *end)
{
    char *before = really.sbrk(0);
    if ((char *)end < before)
        remaps_forget(end, (size_t)(before - (char *)end));
    int result = really.brk(end);
    if (!result && (char *)end < before)
        note_unmapped(end, (size_t)(before - (char *)end));
    return result;
}

static void *seen_sbrk(intptr_t increment)
{
    if (increment < 0)
        remaps_forget((char *)really.sbrk(0) + increment, (size_t)-increment);
    char *before = really.sbrk(increment);
    if (increment < 0 && before != (char *)-1)
        note_unmapped(before + increment, (size_t)-increment);
    return before;
}

static const struct imports_entry entries[] = {{"free", (imports_function *)seen_free},
                                               {"realloc", (imports_function *)seen_realloc},
                                               {"munmap", (imports_function *)seen_munmap},
                                               {"brk", (imports_function *)seen_brk},
                                               {"sbrk", (imports_function *)seen_sbrk}};

void frees_begin(void)
{
    free(realloc(NULL, 1)); /* so that stubs of the program are bound */
    munmap(NULL, 0);
    int unused = brk(NULL) || !sbrk(0); /* these calls change nothing */
    (void)unused;
    loaded_replace(entries, (loaded_original *)&really, sizeof entries / sizeof *entries, NULL);
    has_sizes = is_of_one_object((const void *)really.free, (const void *)malloc_usable_size);
}
