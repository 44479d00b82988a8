#include "verbs/create/mr_special.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mapping.h"
#include "events/refusal.h"
#include "events/words.h"
#include "link/vma.h"
#include "verbs/create/mr_register.h"
#include "verbs/memory/cuda.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/mr.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"

enum {
    ACCESS_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    ACCESS_FD = IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE | IBV_ACCESS_OPTIONAL_RANGE,
    ACCESS_DM = ACCESS_FD | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND,
};

static int check_dm(const struct context *context, const struct dm *dm, uint64_t offset, size_t length, unsigned access)
{
    char words[WORDS_SIZE];
    if (!object_is_here(&dm->object, context))
        return refused(ENOENT);
    if (access & ~(unsigned)ACCESS_DM)
        return refuse(EINVAL, REASON_MR_ACCESS, "%s", words_access(access, words));
    if (!(access & IBV_ACCESS_ZERO_BASED))
        return refuse(EINVAL, REASON_DM_ACCESS, "%s", words_access(access, words));
    if (offset > dm->length || length > dm->length - offset)
        return refuse(EINVAL, REASON_DM_RANGE, "%zu bytes at offset %llu, the device memory has %zu", length,
                      (unsigned long long)offset, dm->length);
    return 0;
}

struct ibv_mr *mr_special_register_dm(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
                                      unsigned access)
{
    struct dm *dm = dm_of(ibv);
    int error = check_dm(context_of(pd->context), dm, offset, length, access);
    if (error)
        return refused_null(error);
    struct mr_source source = {.memory = dm->memory + offset, .length = length, .access = access, .dm = dm};
    return mr_register_from(pd, &source);
}

/* The file must be long enough: memory beyond its end can't be reached. Devices don't report their length. */
static bool is_long_enough(int fd, uint64_t offset, size_t length)
{
    off_t size = lseek(fd, 0, SEEK_END);
    return size < 0 || (offset <= (uint64_t)size && length <= (uint64_t)size - offset);
}

/* Memory that can't be mapped is not supported here; the errno of its exporter's mmap may be an internal one of the
 * kernel (524). */
static int map(int fd, uint64_t offset, size_t length, bool write, struct mr_source *source)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), within = offset & (page - 1);
    source->mapped_length = length + within;
    source->mapped = mapping_make(source->mapped_length, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd,
                                  (off_t)(offset - within));
    if (source->mapped == MAP_FAILED)
        return errno == ENOMEM || errno == EAGAIN ? ENOMEM
                                                  : refuse(EOPNOTSUPP, REASON_FD_MAP, "fd %d: %s", fd, strerror(errno));
    source->memory = (char *)source->mapped + within;
    return 0;
}

/* 0, or the errno of a refusal. Sets *foreign if the iova is the address of a GPU's memory of this program, as with all
 * programs that register a GPU's dma-buf: it copies that memory.
 *
 * Programs find out whether dma-bufs are supported with a wrong descriptor, -1 (UCX, NCCL; the latter with length
 * 0): any errno except EOPNOTSUPP means yes to them, and they then register a GPU's memory. So they get EBADF if the
 * GPU's driver can be asked to copy. */
static int check_fd(uint64_t offset, size_t length, uint64_t iova, int fd, unsigned access,
                    const struct foreign **foreign)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char words[WORDS_SIZE];
    if (fcntl(fd, F_GETFD) < 0)
        return refuse_offer(cuda_is_loaded() ? EBADF : EOPNOTSUPP, REASON_FD_CLOSED, "fd %d", fd);
    if (access & ~(unsigned)ACCESS_FD)
        return refuse(EINVAL, REASON_MR_ACCESS, "%s", words_access(access, words));
    if (!length || offset + length < offset)
        return refuse(EINVAL, REASON_FD_RANGE, "%zu bytes at offset 0x%llx", length, (unsigned long long)offset);
    if ((iova ^ offset) & (page - 1))
        return refuse(EINVAL, REASON_FD_OFFSET, "offset 0x%llx, iova 0x%llx", (unsigned long long)offset,
                      (unsigned long long)iova);
    *foreign = cuda_find((const void *)(uintptr_t)iova, length);
    if (!*foreign && !is_long_enough(fd, offset, length))
        return refuse(EINVAL, REASON_FD_LENGTH, "%zu bytes at offset 0x%llx of fd %d, which has %lld", length,
                      (unsigned long long)offset, fd, (long long)lseek(fd, 0, SEEK_END));
    return 0;
}

struct ibv_mr *mr_special_register_fd(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                      unsigned access, struct object *dmah)
{
    struct mr_source source = {.length = length, .base = iova, .access = access, .dmah = dmah};
    int error = check_fd(offset, length, iova, fd, access, &source.foreign);
    if (source.foreign) {
        source.memory = (char *)(uintptr_t)iova;
        source.kind = REGION_FOREIGN;
    } else if (!error)
        error = map(fd, offset, length, access & IBV_ACCESS_LOCAL_WRITE, &source);
    if (error)
        return refused_null(error);
    struct ibv_mr *mr = mr_register_from(pd, &source);
    error = errno;
    if (!mr && source.mapped)
        munmap(source.mapped, source.mapped_length);
    errno = error;
    return mr;
}

struct ibv_mr *mr_special_allocate_null(struct ibv_pd *pd)
{
    struct mr_source source = {.kind = REGION_NULL, .length = SIZE_MAX, .access = IBV_ACCESS_LOCAL_WRITE};
    if (!vma_of_nothing(true))
        return refused_null(ENOMEM);
    struct ibv_mr *mr = mr_register_from(pd, &source);
    if (mr)
        mr->rkey = 0; /* "only the lkey is valid" */
    return mr;
}

/* Finds a region and the memory of an element. Under process->control, so that the region stays. The errnos follow the
 * manual page's list. */
static int special_find(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, const struct ibv_sge *sge, char **memory)
{
    const struct process *process = context_of(pd->context)->process;
    const struct region *region = rkeys_at(process_objects(process)->keys, sge->lkey);
    if (!region)
        return refuse(EFAULT, REASON_ADVICE_KEY, "lkey 0x%x", sge->lkey);
    if (region->kind > REGION_NULL || !(region->access & IBV_ACCESS_ON_DEMAND))
        return refuse(EINVAL, REASON_ADVICE_NOT_ON_DEMAND, "lkey 0x%x", sge->lkey);
    if (region->key != sge->lkey)
        return refuse(ENOENT, REASON_ADVICE_DEREGISTERED, "lkey 0x%x", sge->lkey);
    if (region->pd != pd_of(pd))
        return refuse(EPERM, REASON_ADVICE_PD, "lkey 0x%x", sge->lkey);
    if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && !(region->access & IBV_ACCESS_LOCAL_WRITE))
        return refuse(EPERM, REASON_ADVICE_WRITE, "lkey 0x%x", sge->lkey);
    if (!region_covers(region, sge->addr, sge->length))
        return refuse(EFAULT, REASON_ADVICE_RANGE,
                      "%u bytes at 0x%llx, and the region with lkey 0x%x is 0x%llx to 0x%llx", sge->length,
                      (unsigned long long)sge->addr, sge->lkey, (unsigned long long)region->base,
                      (unsigned long long)(region->base + region->length));
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

static int check_advice(const struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                        const struct ibv_sge *list, uint32_t count)
{
    if (!pd_is_known(pd))
        return refused(ENOENT);
    if ((unsigned)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return refuse(ENOTSUP, REASON_ADVICE, "advice is %u", advice);
    if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "flags are 0x%x", flags);
    if (!count || !list)
        return refuse(EINVAL, REASON_ADVICE_LIST, "num_sge is %u and sg_list %p", count, (const void *)list);
    return 0;
}

int mr_special_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
                      uint32_t count)
{
    struct context *context = context_of(pd->context);
    int error = check_advice(pd, advice, flags, list, count);
    for (uint32_t i = 0; i < count && !error; i++) {
        char *memory = NULL;
        control_lock(context);
        error = special_find(pd, advice, &list[i], &memory);
        control_unlock(context);
        if (!error && vma_fetch(memory, list[i].length, fetch_of(advice, flags)))
            error = refuse(EFAULT, REASON_ADVICE_UNMAPPED, "%u bytes at %p", list[i].length, (void *)memory);
    }
    return error;
}
