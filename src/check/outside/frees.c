#include "check/outside/frees.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "check/findings/checker_scope.h"
#include "check/hooks_call.h"
#include "check/outside/loaded.h"
#include "check/outside/losses.h"
#include "check/shadow/memory.h"

/* The functions that the replacements call, in the order of `entries`. */
static struct {
    void (*free)(void *);
    void *(*realloc)(void *, size_t);
} really = {free, realloc};

/* Whether malloc_usable_size knows the sizes of memory that free takes. It does not if the program has an allocator
 * without that function. Written by frees_begin. */
static bool has_sizes;

static bool is_of_one_object(const void *one, const void *other)
{
    Dl_info info, beside;
    return dladdr(one, &info) && dladdr(other, &beside) && info.dli_fbase == beside.dli_fbase;
}

/* Notes memory that is freed, unless the lock is taken, which this thread itself may hold in a fork's handler. */
static void note_freed(struct memory_loss *loss)
{
    struct shadow *owner;
    int kept = errno;
    if (!loss->before || !shadow_try_lock())
        return;
    const struct wqe *wqe = memory_find_user(loss, &owner);
    if (wqe)
        HOOKS_CALL(memory.freed, owner, wqe);
    shadow_unlock();
    errno = kept;
    if (wqe)
        loss->before = 0;
}

static struct memory_loss begin_freeing(void *memory, const char *call, const void *caller)
{
    struct memory_loss loss = {.kind = MEMORY_FREED, .call = call, .begin = memory, .length = 1, .caller = caller};
    if (!memory || inside_checker || !shadow_may_hold(memory, 1))
        return loss;
    if (has_sizes)
        loss.length = malloc_usable_size(memory);
    losses_begin(&loss);
    return loss;
}

static void seen_free(void *memory)
{
    struct memory_loss loss = begin_freeing(memory, "free", __builtin_return_address(0));
    note_freed(&loss);
    really.free(memory);
    losses_end(&loss);
}

/* Memory that has moved was freed at its old address, which is only compared. */
static void *seen_realloc(void *memory, size_t size)
{
    struct memory_loss loss = begin_freeing(memory, "realloc", __builtin_return_address(0));
    char *now = really.realloc(memory, size);
    if (now != loss.begin && (now || !size)) {
        note_freed(&loss);
        losses_end(&loss);
    }
    return now;
}

static const struct imports_entry entries[] = {{"free", (imports_function *)seen_free},
                                               {"realloc", (imports_function *)seen_realloc}};

void frees_begin(void)
{
    free(realloc(NULL, 1)); /* so that stubs of the program are bound */
    loaded_replace(entries, (loaded_original *)&really, sizeof entries / sizeof *entries, NULL);
    has_sizes = is_of_one_object((const void *)really.free, (const void *)malloc_usable_size);
    losses_leave_out((const void *)really.free);
}
