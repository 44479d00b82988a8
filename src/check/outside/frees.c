#include "check/outside/frees.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

#include "check/findings/inside.h"
#include "check/hooks.h"
#include "check/memory.h"
#include "check/outside/loaded.h"

typedef void free_function(void *);

/* What seen_free calls. */
static free_function *really_free = free;

/* Does malloc_usable_size know what free does? Written in frees_begin. A program may have an allocator of its own
 * without that function, and then the C library's has no sizes of its memory. */
static bool has_sizes;

static bool is_of_one_object(const void *one, const void *other)
{
    Dl_info info, beside;
    return dladdr(one, &info) && dladdr(other, &beside) && info.dli_fbase == beside.dli_fbase;
}

/* Not where the lock is taken: this may be a handler of a fork, in a thread that holds it. */
static void note_freed(const char *memory)
{
    struct shadow *owner;
    if (!shadow_try_lock())
        return;
    size_t length = has_sizes ? malloc_usable_size((void *)memory) : 1;
    const struct wqe *wqe = memory_find_user(memory, length, &owner);
    if (wqe)
        HOOKS_CALL(freed, owner, wqe);
    shadow_unlock();
}

static void seen_free(void *memory)
{
    if (!inside_checker && shadow_may_hold(memory))
        note_freed(memory);
    really_free(memory);
}

static const struct imports_entry entries[] = {{"free", (imports_function *)seen_free}};

void frees_begin(void)
{
    free(NULL); /* so that a stub of the program is bound */
    loaded_replace(entries, (loaded_original *)&really_free, sizeof entries / sizeof *entries, NULL);
    has_sizes = is_of_one_object((const void *)really_free, (const void *)malloc_usable_size);
}
