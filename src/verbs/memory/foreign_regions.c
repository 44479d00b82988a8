#include "verbs/memory/foreign_regions.h"

#include "base/static_lock.h"
#include "process/progress.h"
#include "process/restraints.h"

LOCK_STATIC(listing, LOCK_INNERMOST);
static LIST_HEAD(, foreign_region) regions;
static unsigned region_count; /* in the list; under process->control */

/* Only for the helper, so that no other thread ever calls a driver to copy. */
static const struct foreign *find_region(const void *at, size_t *length)
{
    const struct foreign_region *each, *found = NULL;
    if (!restraints_is_helper())
        return NULL;
    lock_take(&listing);
    LIST_FOREACH (each, &regions, siblings)
        if ((uintptr_t)at - each->start < each->length) {
            found = each;
            break;
        }
    const struct foreign *foreign = found ? found->foreign : NULL;
    if (found)
        *length = each->length - ((uintptr_t)at - each->start);
    lock_release(&listing);
    return foreign;
}

void foreign_regions_enter(struct process *process, struct foreign_region *region, const void *start, size_t length)
{
    lock_assert_held(&process->control);
    region->start = (uintptr_t)start;
    region->length = length;
    if (!region_count++) {
        foreign_find_by(find_region);
        restraints_leave_to_helper(process);
    }
    lock_take(&listing);
    LIST_INSERT_HEAD(&regions, region, siblings);
    lock_release(&listing);
}

void foreign_regions_remove(struct process *process, struct foreign_region *region)
{
    lock_assert_held(&process->control);
    if (!region->foreign)
        return;
    lock_take(&listing);
    LIST_REMOVE(region, siblings);
    lock_release(&listing);
    region->foreign = NULL;
    if (!--region_count)
        restraints_lift(process);
}
