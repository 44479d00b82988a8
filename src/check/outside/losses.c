#include "check/outside/losses.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "calls/imports.h"
#include "check/findings/checker_scope.h"
#include "check/hooks_call.h"
#include "check/rule.h"
#include "check/shadow/memory.h"

/* The program or library that has the allocator; empty if that is the C library. Written before the program runs. */
static struct {
    struct imports_range range;
    bool is_program;
} allocator;

static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static bool is_of_allocator(const void *caller)
{
    return (uintptr_t)caller >= allocator.range.begin && (uintptr_t)caller < allocator.range.end;
}

void losses_leave_out(const void *function)
{
    if (object_of(function) != object_of((const void *)abort))
        imports_find_range(function, &allocator.range);
    allocator.is_program = is_of_allocator((const void *)getauxval(AT_ENTRY));
}

void losses_begin(struct memory_loss *loss)
{
    bool skipped = inside_checker || (is_of_allocator(loss->caller) && !allocator.is_program);
    loss->before = 0;
    if (skipped || !shadow_may_hold(loss->begin, loss->length) || !shadow_try_lock())
        return;
    loss->before = shadow_moment();
    shadow_unlock();
}

/* Reports work that uses the lost memory. True: there is such work. */
static bool report_work(const struct memory_loss *loss)
{
    struct shadow *owner;
    const struct wqe *wqe = NULL;
    if (loss->kind == MEMORY_UNMAPPED || loss->kind == MEMORY_REPLACED)
        wqe = memory_find_user(loss, &owner);
    if (wqe)
        HOOKS_CALL(memory.unmapped, owner, wqe);
    return wqe;
}

/* Returns true if the program or library that gives the memory up has registered it. Otherwise a cache of registrations
 * may have done so, which deregisters a region some time after its hook was called (UCX). Takes locks of the loader. */
static bool is_of_one_owner(const struct memory_loss *loss, const void *maker)
{
    return !is_of_allocator(loss->caller) && object_of(loss->caller) == object_of(maker);
}

static bool find_next(const struct memory_loss *loss, uint64_t *serial, const void **maker)
{
    if (!shadow_try_lock())
        return false;
    const struct shadow *mr = memory_find_region(loss, *serial);
    if (mr) {
        *serial = mr->serial;
        *maker = mr->created.count ? mr->created.frames[0] : NULL;
    }
    shadow_unlock();
    return mr;
}

/* Reports the first region that the caller itself has registered, if it is registered still. */
static void report_region(const struct memory_loss *loss)
{
    uint64_t serial = 0;
    const void *maker;
    while (find_next(loss, &serial, &maker))
        if (is_of_one_owner(loss, maker)) {
            if (!shadow_try_lock())
                return;
            struct shadow *mr = memory_find_region(loss, serial - 1);
            if (mr && mr->serial == serial)
                HOOKS_CALL(memory.given_up, mr, loss);
            shadow_unlock();
            return;
        }
}

void losses_end(const struct memory_loss *loss)
{
    int kept = errno;
    if (!loss->before || !shadow_try_lock())
        return;
    bool reported = report_work(loss);
    shadow_unlock();
    if (!reported && rule_chosen.rules[RULE_REGION_GIVEN_UP])
        report_region(loss);
    errno = kept;
}
