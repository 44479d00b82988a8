#include <errno.h>

#include "events/refusal.h"
#include "imitate/layer.h"
#include "link/vma.h"

/* Refuses accesses that the device lacks, but not IBV_ACCESS_OPTIONAL_RANGE, which devices may ignore. */
static int check_access(unsigned access)
{
    uint64_t lacks =
        access & ~profile_value(imitated, PROFILE_access, UINT64_MAX) & ~(uint64_t)IBV_ACCESS_OPTIONAL_RANGE;
    if (!lacks)
        return 0;
    return refuse(imitate_errno(PROFILE_errno_access), REASON_PROFILE_ACCESS, "profile %s: access has 0x%llx",
                  imitated->name, (unsigned long long)lacks);
}

/* Linux pins memory that a device writes only if the file system of its mapping need not see the writes. */
static int check_file(const void *address, size_t length, unsigned access)
{
    char name[VMA_NAME];
    if (profile_value(imitated, PROFILE_files, 0) || !vma_is_pinned_to_write(access) ||
        !vma_is_written_back(address, length, name))
        return 0;
    return refuse(EFAULT, REASON_PROFILE_FILE, "profile %s: the memory is a shared mapping of %s", imitated->name,
                  name);
}

static int check_region(const void *address, size_t length, unsigned access)
{
    int error = check_access(access);
    uint64_t most = profile_value(imitated, PROFILE_max_mr_size, UINT64_MAX);
    if (error)
        return error;
    if (length <= most)
        return check_file(address, length, access);
    return refuse(imitate_errno(PROFILE_errno_mr_size), REASON_PROFILE_MR_SIZE,
                  "profile %s: length is %zu, and max_mr_size %llu", imitated->name, length, (unsigned long long)most);
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    int error = check_region(address, length, (unsigned)access);
    return error ? refused_null(error) : calls_get(&imitate_layer.below, ibv_reg_mr)(pd, address, length, access);
}

static struct ibv_mr *reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access)
{
    int error = check_region(address, length, (unsigned)access);
    return error ? refused_null(error)
                 : calls_get(&imitate_layer.below, ibv_reg_mr_iova)(pd, address, length, iova, access);
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
    int error = check_region(address, length, access);
    return error ? refused_null(error)
                 : calls_get(&imitate_layer.below, ibv_reg_mr_iova2)(pd, address, length, iova, access);
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    if (!imitate_has(PROFILE_mw_types, type))
        return refused_null(
            refuse(EINVAL, REASON_PROFILE_MW_TYPE, "profile %s: type is %u", imitated->name, (unsigned)type));
    return calls_get(&imitate_layer.below, ibv_alloc_mw)(pd, type);
}

void imitate_add_memory(struct calls *calls)
{
    calls->ibv_reg_mr = reg_mr;
    calls->ibv_reg_mr_iova = reg_mr_iova;
    calls->ibv_reg_mr_iova2 = reg_mr_iova2;
    calls->ibv_alloc_mw = alloc_mw;
}
