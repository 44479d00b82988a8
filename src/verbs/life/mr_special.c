#include "verbs/life/mr_special.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag/log.h"
#include "verbs/life/mr_register.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/mr.h"
#include "verbs/memory/rkeys.h"
#include "verbs/memory/vma.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"

enum {
    ACCESS_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    ACCESS_FD = IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE | IBV_ACCESS_OPTIONAL_RANGE,
    ACCESS_DM = ACCESS_FD | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND,
};

static struct ibv_mr *special_refuse(enum reason reason, int error, const char *what)
{
    if (!object_has_told(reason))
        log_reason(LOG_INFO, reason, "%s", what);
    errno = error;
    return NULL;
}

struct ibv_mr *mr_special_register_dm(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
                                      unsigned access)
{
    struct dm *dm = dm_of(ibv);
    if (!object_is_here(&dm->object, context_of(pd->context)))
        return special_refuse(REASON_OTHER_CONTEXT, ENOENT, "ibv_reg_dm_mr");
    if (!(access & IBV_ACCESS_ZERO_BASED) || (access & ~(unsigned)ACCESS_DM))
        return special_refuse(REASON_DM_ACCESS, EINVAL, "ibv_reg_dm_mr");
    if (offset > dm->length || length > dm->length - offset)
        return special_refuse(REASON_DM_RANGE, EINVAL, "ibv_reg_dm_mr");
    struct mr_source source = {.memory = dm->memory + offset, .length = length, .access = access, .dm = dm};
    return mr_register_from(pd, &source);
}

/* Whether dma-bufs are supported at all is what programs find out with a descriptor that is none, -1 (UCX, NCCL; the
 * latter with length 0): any errno but EOPNOTSUPP means yes to them, and they then register a GPU's memory, which no
 * processor can map. */
static bool is_descriptor(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* The file must be long enough: what lies behind its end can't be reached. Devices don't tell how long they are. */
static bool is_long_enough(int fd, uint64_t offset, size_t length)
{
    off_t size = lseek(fd, 0, SEEK_END);
    return size < 0 || (offset <= (uint64_t)size && length <= (uint64_t)size - offset);
}

/* Whatever its exporter's mmap says, which may be an errno of the kernel's own (524), memory that can't be mapped is
 * not supported here. */
static int map(int fd, uint64_t offset, size_t length, bool write, struct mr_source *source)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), within = offset & (page - 1);
    source->mapped_length = length + within;
    source->mapped = mmap(NULL, source->mapped_length, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd,
                          (off_t)(offset - within));
    if (source->mapped == MAP_FAILED)
        return errno == ENOMEM || errno == EAGAIN ? ENOMEM : EOPNOTSUPP;
    source->memory = (char *)source->mapped + within;
    return 0;
}

struct ibv_mr *mr_special_register_fd(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                      unsigned access, struct object *dmah)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct mr_source source = {.length = length, .base = iova, .access = access, .dmah = dmah};
    if (!is_descriptor(fd))
        return special_refuse(REASON_FD_MAP, EOPNOTSUPP, "ibv_reg_dmabuf_mr of a descriptor that is not open");
    if (access & ~(unsigned)ACCESS_FD)
        return special_refuse(REASON_MR_ACCESS, EINVAL, "ibv_reg_dmabuf_mr");
    if ((iova ^ offset) & (page - 1) || !length || offset + length < offset)
        return special_refuse(REASON_FD_OFFSET, EINVAL, "ibv_reg_dmabuf_mr");
    if (!is_long_enough(fd, offset, length))
        return special_refuse(REASON_FD_LENGTH, EINVAL, "ibv_reg_dmabuf_mr");
    int error = map(fd, offset, length, access & IBV_ACCESS_LOCAL_WRITE, &source);
    if (error)
        return special_refuse(REASON_FD_MAP, error, "ibv_reg_dmabuf_mr");
    struct ibv_mr *mr = mr_register_from(pd, &source);
    error = errno;
    if (!mr)
        munmap(source.mapped, source.mapped_length);
    errno = error;
    return mr;
}

struct ibv_mr *mr_special_allocate_null(struct ibv_pd *pd)
{
    struct mr_source source = {.kind = REGION_NULL, .length = SIZE_MAX, .access = IBV_ACCESS_LOCAL_WRITE};
    if (!vma_of_nothing(true)) {
        errno = ENOMEM;
        return NULL;
    }
    struct ibv_mr *mr = mr_register_from(pd, &source);
    if (mr)
        mr->rkey = 0; /* "only the lkey is valid" */
    return mr;
}

/* Under process->control, so that the region stays. Which errno stands for what is the manual page's list. */
static int special_find(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, const struct ibv_sge *sge, char **memory)
{
    const struct process *process = context_of(pd->context)->process;
    const struct region *region = rkeys_at(process->keys, sge->lkey);
    if (!region)
        return EFAULT;
    if (region->kind == REGION_WINDOW || !(region->access & IBV_ACCESS_ON_DEMAND))
        return EINVAL;
    if (region->key != sge->lkey)
        return ENOENT;
    if (region->pd != pd_of(pd))
        return EPERM;
    if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && !(region->access & IBV_ACCESS_LOCAL_WRITE))
        return EPERM;
    if (!region_covers(region, sge->addr, sge->length))
        return EFAULT;
    *memory = region->memory + (sge->addr - region->base);
    return 0;
}

static enum vma_fetch fetch_of(enum ibv_advise_mr_advice advice, uint32_t flags)
{
    if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return FETCH_NOTHING;
    if (!(flags & IBV_ADVISE_MR_FLAG_FLUSH))
        return FETCH_LATER;
    return advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? FETCH_WRITE : FETCH_READ;
}

int mr_special_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
                      uint32_t count)
{
    struct context *context = context_of(pd->context);
    int error = 0;
    if (!pd_is_known(pd))
        return ENOENT;
    if ((unsigned)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return ENOTSUP;
    if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !count || !list)
        return EINVAL;
    for (uint32_t i = 0; i < count && !error; i++) {
        char *memory;
        control_lock(context);
        error = special_find(pd, advice, &list[i], &memory);
        control_unlock(context);
        if (!error)
            error = vma_fetch(memory, list[i].length, fetch_of(advice, flags));
    }
    if (error)
        log_reason(LOG_INFO, REASON_ADVICE, "ibv_advise_mr: errno %d", error);
    return error;
}
