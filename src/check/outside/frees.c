#include "check/outside/frees.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "calls/imports.h"
#include "check/findings/inside.h"
#include "check/hooks.h"
#include "check/memory.h"

/* Does malloc_usable_size know what free does? Written before the program runs. A program may have an allocator of its
 * own without that function, and then the C library's has no sizes of its memory. */
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
    free(memory);
}

static const struct imports_entry entries[] = {{"free", (imports_function *)seen_free}};

static void replace_free(struct imports_object *object, unsigned which, imports_function **entry)
{
    imports_store(object, entry, entries[which].replacement);
}

/* The C library and its loader free what is theirs, and this library, and those that show lines, hold the checker's
 * locks. */
static bool is_left_alone(const char *path)
{
    static const char *const names[] = {"libc.so",       "ld-linux",   "ld-musl", "libdw",   "libelf",
                                        "libdebuginfod", "linux-vdso", "libasan", "libtsan", "liblsan"};
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (!strncmp(base, names[at], strlen(names[at])))
            return true;
    return false;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *unused)
{
    struct imports_object object;
    if (is_left_alone(info->dlpi_name))
        return 0;
    imports_read(&object, info);
    if (imports_is_inside(&object, (imports_function *)frees_begin))
        return 0;
    imports_visit(&object, entries, sizeof entries / sizeof *entries, replace_free);
    return 0;
}

void frees_begin(void)
{
    has_sizes = is_of_one_object((const void *)free, (const void *)malloc_usable_size);
    dl_iterate_phdr(visit_object, NULL);
}
