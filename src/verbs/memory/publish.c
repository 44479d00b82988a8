#include "verbs/memory/publish.h"

#include "link/published.h"
#include "process/process.h"

/* Returns false for other kinds of regions, memory of a device, of a file mapped for the region, and on demand: these
 * are for the responder. Also for a region without bytes. */
static bool is_plain(const struct mr *mr)
{
    return mr->region.kind == REGION_MEMORY && !mr->dm && !mr->mapped && mr->region.length &&
           !(mr->region.access & IBV_ACCESS_ON_DEMAND);
}

void publish_region(struct process *process, const struct mr *mr)
{
    lock_assert_held(&process->control);
    const struct region *region = &mr->region;
    bool writes = region->access & IBV_ACCESS_REMOTE_WRITE, reads = region->access & IBV_ACCESS_REMOTE_READ;
    struct published_key key = {
        .access = (writes ? PUBLISHED_WRITE : 0) | (reads ? PUBLISHED_READ : 0),
        .domain = (uintptr_t)region->pd,
        .base = region->base,
        .length = region->length,
        .memory = (uintptr_t)region->memory,
    };
    if (process_publishes(process) && is_plain(mr) && key.access)
        published_key(node_published(process->node), region->key, &key);
}

void publish_no_region(struct process *process, const struct mr *mr)
{
    lock_assert_held(&process->control);
    if (published_withdraw_key(node_published(process->node), mr->region.key))
        node_quiesce(process->node);
}
