#include "verbs/create/mr_register.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adverse/adverse.h"
#include "events/refusal.h"
#include "events/words.h"
#include "link/vma.h"
#include "process/rest.h"
#include "verbs/memory/cuda.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/mr.h"
#include "verbs/memory/past_regions.h"
#include "verbs/memory/publish.h"
#include "verbs/memory/quiesce.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"

enum {
    ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
                   IBV_ACCESS_HUGETLB | NEWER_ACCESS_FLUSH_GLOBAL,
    ACCESS_NEEDS_LOCAL_WRITE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

enum { CALL = 96 };

static const char *name_call(const void *address, size_t length, char call[CALL])
{
    snprintf(call, CALL, "%s of %zu bytes at %p", refusal_call(), length, address);
    return call;
}

static int memory_refuse(int error, enum reason reason, const void *address, size_t length, unsigned access)
{
    char call[CALL], words[WORDS_SIZE];
    return refuse_in(name_call(address, length, call), error, reason, "%s", words_access(access, words));
}

/* Checks the access of any region: 0, or the errno of the refusal. */
static int check_access(const void *address, size_t length, unsigned access)
{
    if ((access & ACCESS_NEEDS_LOCAL_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return memory_refuse(EINVAL, REASON_MR_LOCAL_WRITE, address, length, access);
    return 0;
}

/* Returns true for a region without bytes at a page boundary; elsewhere it touches a page, as in a kernel. */
static bool touches_no_page(const void *address, size_t length)
{
    return !length && (uintptr_t)address % (uintptr_t)sysconf(_SC_PAGESIZE) == 0;
}

/* Checks a region of the program's memory: 0, or the errno of the refusal. Memory that pages on demand need not
 * exist yet; the whole address space can be registered so, but not with huge pages. *foreign: copies memory that the
 * processor can't reach; `foreign` NULL: such memory is refused. */
static int check_memory(const void *address, size_t length, unsigned access, const struct foreign **foreign)
{
    bool all = !address && length == SIZE_MAX, on_demand = access & IBV_ACCESS_ON_DEMAND;
    if (access & ~(unsigned)(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
        return memory_refuse(EINVAL, REASON_MR_ACCESS, address, length, access);
    if (on_demand && all && access & IBV_ACCESS_HUGETLB)
        return memory_refuse(EINVAL, REASON_MR_ACCESS, address, length, access);
    if (touches_no_page(address, length))
        return memory_refuse(EINVAL, REASON_MR_EMPTY, address, length, access);
    int error = check_access(address, length, access);
    if (error || (on_demand && all))
        return error;
    if ((uintptr_t)address + length < (uintptr_t)address)
        return memory_refuse(EFAULT, REASON_MR_UNMAPPED, address, length, access);
    if (on_demand)
        return 0;
    if (!vma_permits(address, length ? length : 1, access & IBV_ACCESS_LOCAL_WRITE)) {
        if (foreign && (*foreign = cuda_find(address, length)))
            return 0;
        return memory_refuse(EFAULT, REASON_MR_UNMAPPED, address, length, access);
    }
    if (!vma_is_copyable(address, length ? length : 1))
        return memory_refuse(EFAULT, REASON_MR_UNCOPYABLE, address, length, access);
    return 0;
}

static void fill_region(struct mr *mr, const struct mr_source *source)
{
    mr->region.kind = source->kind;
    mr->region.memory = source->memory;
    mr->region.length = source->length;
    mr->region.base = source->access & IBV_ACCESS_ZERO_BASED ? 0 : source->base;
    mr->region.access = source->access;
    mr->dm = source->dm;
    mr->foreign.foreign = source->foreign;
    mr->mapped = source->mapped;
    mr->mapped_length = source->mapped_length;
    mr->ibv.addr = source->address;
    mr->ibv.length = source->length;
}

static void mr_destroy_left(struct object *object)
{
    struct mr *mr = object_whole(object);
    mr->ibv.handle = object->handle;
    mr_deregister(&mr->ibv);
}

const struct object_class mr_class = {
    .kind = OBJECT_MR,
    .name = "memory region",
    .offset = offsetof(struct mr, object),
    .shared = true,
    .destroy = mr_destroy_left,
};

/* Enters the region under an rkey that differs from its lkey, if the process is adverse; peers find it under that. */
static int enter_remote(struct rkey_table *keys, struct mr *mr)
{
    struct region *remote = &mr->remote;
    if (!adverse_shows(ADVERSE_NUMBERS) || mr->region.kind != REGION_MEMORY)
        return 0;
    *remote = mr->region;
    remote->kind = REGION_REMOTE;
    mr->region.kind = REGION_LOCAL;
    int error = rkeys_enter(keys, remote);
    if (!error)
        mr->ibv.rkey = remote->key;
    adverse_note(ADVERSE_NUMBERS);
    return error;
}

/* Enters the keys of a region, which no other thread knows yet. */
static int keys_enter(struct rkey_table *keys, struct mr *mr)
{
    int error = rkeys_enter(keys, &mr->region);
    if (error)
        return error;
    mr->ibv.lkey = mr->ibv.rkey = mr->region.key;
    error = enter_remote(keys, mr);
    if (error)
        rkeys_remove(keys, &mr->region);
    return error;
}

static void keys_remove(struct rkey_table *keys, struct mr *mr)
{
    rkeys_remove(keys, &mr->region);
    if (mr->remote.key)
        rkeys_remove(keys, &mr->remote);
}

static void keys_hide(struct rkey_table *keys, struct mr *mr)
{
    rkeys_hide(keys, &mr->region);
    if (mr->remote.key)
        rkeys_hide(keys, &mr->remote);
}

/* Lets lookups find the keys, with the region as it is now. */
static void keys_show(struct rkey_table *keys, struct mr *mr)
{
    uint32_t key = mr->remote.key;
    if (key) {
        mr->remote = mr->region;
        mr->remote.kind = REGION_REMOTE;
        mr->remote.key = key;
        rkeys_show(keys, &mr->remote);
    }
    rkeys_show(keys, &mr->region);
}

static int memory_enter(struct context *context, struct mr *mr)
{
    lock_assert_held(&context->process->control);
    int error = keys_enter(process_objects(context->process)->keys, mr);
    if (error)
        return error;
    if (mr->foreign.foreign)
        foreign_regions_enter(context->process, &mr->foreign, mr->region.memory, mr->region.length);
    mr->ibv.handle = object_enter(context, &mr->object, &mr_class, context->device->limits.max_mr, mr->parent);
    if (!mr->ibv.handle) {
        error = errno;
        keys_remove(process_objects(context->process)->keys, mr);
        foreign_regions_remove(context->process, &mr->foreign);
        return error;
    }
    mapping_avoid(&mr->avoided, mr->region.memory, mr->region.length);
    if (mr->dm)
        mr->dm->object.uses++;
    if (mr->dmah)
        mr->dmah->uses++;
    publish_region(context->process, mr);
    return 0;
}

struct ibv_mr *mr_register_from(struct ibv_pd *pd, const struct mr_source *source)
{
    struct context *context = context_of(pd->context);
    int error = pd_is_known(pd) ? check_access(source->memory, source->length, source->access) : refused(ENOENT);
    if (error)
        return refused_null(error);
    struct mr *mr = calloc(1, sizeof *mr);
    if (!mr)
        return NULL;
    mr->region.pd = pd_of(pd);
    mr->parent = pd_object(pd);
    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->dmah = source->dmah;
    fill_region(mr, source);
    control_lock(context);
    error = memory_enter(context, mr);
    control_unlock(context);
    if (!error)
        return &mr->ibv;
    free(mr);
    return refused_null(error);
}

/* Returns true if iova and address differ within a page: a kernel compares them before any driver sees the call. */
static bool lies_elsewhere_in_its_page(const void *address, uint64_t base)
{
    return ((uintptr_t)address ^ base) & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static int refuse_iova(const void *address, size_t length, uint64_t base)
{
    uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    char call[CALL];
    return refuse_in(name_call(address, length, call), EINVAL, REASON_MR_IOVA, "iova 0x%llx: 0x%llx and 0x%llx",
                     (unsigned long long)base, (unsigned long long)((uintptr_t)address & mask),
                     (unsigned long long)(base & mask));
}

struct ibv_mr *mr_register(struct ibv_pd *pd, void *address, size_t length, uint64_t base, unsigned access)
{
    return mr_register_hinted(pd, address, length, base, access, NULL);
}

struct ibv_mr *mr_register_hinted(struct ibv_pd *pd, void *address, size_t length, uint64_t base, unsigned access,
                                  struct object *dmah)
{
    const struct foreign *foreign = NULL;
    int error = lies_elsewhere_in_its_page(address, base) ? refuse_iova(address, length, base)
                                                          : check_memory(address, length, access, &foreign);
    if (error)
        return refused_null(error);
    struct mr_source source = {.memory = address,
                               .address = address,
                               .length = length,
                               .base = base,
                               .access = access,
                               .kind = foreign ? REGION_FOREIGN : REGION_MEMORY,
                               .foreign = foreign,
                               .dmah = dmah};
    return mr_register_from(pd, &source);
}

/* Takes the region out of sight, unless a window is bound to it. A bind that had found it before is over when the queue
 * pairs are quiet, so the second look is final. */
static int hide(struct process *process, struct mr *mr)
{
    if (process->inherited)
        return 0; /* windows that the child inherited stay bound when they are deallocated */
    if (!atomic_load(&mr->windows)) {
        keys_hide(process_objects(process)->keys, mr);
        publish_no_region(process, mr);
        quiesce_memory(process);
        if (!atomic_load(&mr->windows))
            return 0;
        keys_show(process_objects(process)->keys, mr);
        publish_region(process, mr);
    }
    return refuse(EBUSY, REASON_MR_BOUND, "the region with lkey 0x%x, to which %u windows are bound", mr->region.key,
                  atomic_load(&mr->windows));
}

int mr_deregister(struct ibv_mr *ibv)
{
    struct mr *mr = mr_of(ibv);
    struct context *context = mr->object.context;
    rest_look_first(context->process);
    control_lock(context);
    bool known = ibv->handle == mr->object.handle && !mr->object.gone;
    int error = known ? hide(context->process, mr) : 0;
    if (!error)
        error = object_leave(&mr->object, ibv->handle, mr->parent);
    if (!error) {
        past_regions_note(&mr->region);
        if (mr->remote.key)
            past_regions_note(&mr->remote);
        keys_remove(process_objects(context->process)->keys, mr);
        if (mr->dm)
            mr->dm->object.uses--;
        if (mr->dmah)
            mr->dmah->uses--;
        foreign_regions_remove(context->process, &mr->foreign);
        mapping_allow(&mr->avoided);
        if (mr->mapped)
            munmap(mr->mapped, mr->mapped_length);
        object_release(&((struct mr *)ibv)->object);
    }
    control_unlock(context);
    return error;
}

/* Returns the name of a special kind of memory; NULL: the region is ordinary memory. */
static const char *name_special(const struct mr *mr)
{
    if (mr->foreign.foreign)
        return "a GPU's memory";
    return mr->dm ? "device memory" : mr->mapped ? "a file" : NULL;
}

/* The null region can't change; of a region of device memory, a GPU or a file, only the domain and access can. */
static int check_kind(const struct mr *mr, int flags)
{
    if (!region_is_memory(&mr->region))
        return refuse(EINVAL, REASON_REREG_FIXED, "the null region");
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && name_special(mr))
        return refuse(EINVAL, REASON_REREG_FIXED, "a region of %s", name_special(mr));
    return 0;
}

/* Makes the checks of libibverbs itself, which fail with IBV_REREG_MR_ERR_INPUT. Later checks are the driver's, and
 * fail with IBV_REREG_MR_ERR_CMD; here the old region stays valid then, too. */
static int check_input(struct mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length, int access)
{
    if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "flags are 0x%x", flags);
    if ((flags & IBV_REREG_MR_CHANGE_PD) && !pd)
        return refuse(EINVAL, REASON_NULL_ARGUMENT, "pd is NULL, and flags have IBV_REREG_MR_CHANGE_PD");
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!address || !length))
        return refuse(EINVAL, REASON_REREG_RANGE, "%zu bytes at %p", length, address);
    if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
        return refuse(EINVAL, REASON_REREG_ACCESS, "access is 0x%x", access);
    return check_kind(mr, flags);
}

static int check_reregister(struct mr *mr, int flags, void *address, size_t length, int access)
{
    bool translates = flags & IBV_REREG_MR_CHANGE_TRANSLATION, special = name_special(mr);
    unsigned wanted = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : mr->region.access;
    if (!flags)
        return refuse(EINVAL, REASON_REREG_FLAGS, "flags are 0");
    if (mr->dm && !(wanted & IBV_ACCESS_ZERO_BASED))
        return refuse(EINVAL, REASON_DM_ACCESS, "access is 0x%x", wanted);
    if (special)
        return check_access(mr->region.memory, mr->region.length, wanted);
    return check_memory(translates ? address : mr->region.memory, translates ? length : mr->region.length, wanted,
                        NULL);
}

static void change(struct mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length, unsigned access)
{
    struct region *region = &mr->region;
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        mr->parent->uses--;
        mr->parent = pd_object(pd);
        mr->parent->uses++;
        region->pd = pd_of(pd);
        mr->ibv.pd = pd;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS)
        region->access = access;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->ibv.addr = region->memory = address;
        mr->ibv.length = region->length = length;
        region->base = (uintptr_t)address;
        mapping_allow(&mr->avoided);
        mapping_avoid(&mr->avoided, address, length);
    }
    if (region->access & IBV_ACCESS_ZERO_BASED)
        region->base = 0;
}

static bool is_domain_of(const struct context *context, struct ibv_pd *pd)
{
    return pd_is_known(pd) && object_is_here(&((struct pd *)pd)->object, context);
}

/* No thread finds the region between the first field that changes and the last. The keys stay: programs that only
 * change the access do not send them to their peers anew. */
int mr_reregister(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *address, size_t length, int access)
{
    struct mr *mr = mr_of(ibv);
    struct context *context = mr->object.context;
    int error = check_input(mr, flags, pd, address, length, access);
    if (error) {
        errno = error;
        return IBV_REREG_MR_ERR_INPUT;
    }
    bool known = mr_is_known(ibv) && (!(flags & IBV_REREG_MR_CHANGE_PD) || is_domain_of(context, pd));
    error = known ? check_reregister(mr, flags, address, length, access) : refused(ENOENT);
    if (!error) {
        rest_look_first(context->process);
        control_lock(context);
        error = hide(context->process, mr);
        if (!error) {
            change(mr, flags, pd, address, length, (unsigned)access);
            keys_show(process_objects(context->process)->keys, mr);
            publish_region(context->process, mr);
            ibv->pd = mr->ibv.pd;
            ibv->length = mr->ibv.length;
        }
        control_unlock(context);
    }
    if (!error)
        return 0;
    errno = error;
    return IBV_REREG_MR_ERR_CMD;
}
