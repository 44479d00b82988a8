#include "check/outside/remaps.h"

#include <stdarg.h>
#include <sys/mman.h>

#include "check/findings/checker_scope.h"
#include "check/outside/loaded.h"
#include "check/outside/pages.h"
#include "check/rule.h"
#include "check/shadow/shadow.h"

/* The functions that those below call, in the order of `entries`. */
static struct {
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    void *(*mmap64)(void *, size_t, int, int, int, off64_t);
    int (*mprotect)(void *, size_t, int);
    void *(*mremap)(void *, size_t, size_t, int, ...);
} really = {mmap, mmap64, mprotect, mremap};

void remaps_forget(const void *memory, size_t length)
{
    if (!rule_chosen.pages || inside_checker || !shadow_try_lock())
        return;
    pages_forget(memory, length);
    shadow_unlock();
}

static void *seen_mmap(void *at, size_t length, int protection, int flags, int file, off_t offset)
{
    if (flags & MAP_FIXED)
        remaps_forget(at, length);
    return really.mmap(at, length, protection, flags, file, offset);
}

static void *seen_mmap64(void *at, size_t length, int protection, int flags, int file, off64_t offset)
{
    if (flags & MAP_FIXED)
        remaps_forget(at, length);
    return really.mmap64(at, length, protection, flags, file, offset);
}

static int seen_mprotect(void *at, size_t length, int protection)
{
    remaps_forget(at, length);
    return really.mprotect(at, length, protection);
}

/* The fourth argument says whether there is a fifth. */
static void *seen_mremap(void *from, size_t length, size_t wanted, int flags, ...)
{
    void *to = NULL;
    va_list more;
    va_start(more, flags);
    if (flags & MREMAP_FIXED)
        to = va_arg(more, void *);
    va_end(more);
    remaps_forget(from, length);
    if (to)
        remaps_forget(to, wanted);
    return really.mremap(from, length, wanted, flags, to);
}

static const struct imports_entry entries[] = {{"mmap", (imports_function *)seen_mmap},
                                               {"mmap64", (imports_function *)seen_mmap64},
                                               {"mprotect", (imports_function *)seen_mprotect},
                                               {"mremap", (imports_function *)seen_mremap}};

void remaps_begin(void)
{
    void *unused = mmap(NULL, 0, PROT_NONE, 0, -1, 0); /* these calls fail, but bind the program's stubs */
    unused = mmap64(unused, 0, PROT_NONE, 0, -1, 0);
    unused = mremap(unused, 0, 0, 0);
    mprotect(NULL, 0, PROT_NONE);
    loaded_replace(entries, (loaded_original *)&really, sizeof entries / sizeof *entries, NULL);
}
