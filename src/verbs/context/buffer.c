#include "verbs/context/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "events/refusal.h"
#include "verbs/create/mr_register.h"
#include "verbs/create/mr_special.h"
#include "verbs/memory/dmah.h"

enum {
    FROM_FILE = NEWER_MR_FD | NEWER_MR_FD_OFFSET,
    KNOWN = NEWER_MR_IOVA | NEWER_MR_ADDR | FROM_FILE | NEWER_MR_DMAH | NEWER_MR_BUF,
};

struct newer_buf {
    struct ibv_pd *pd;
    char *memory;
    size_t size;
};

void *buffer_allocate(struct ibv_pd *pd, size_t size, struct newer_buf **buffer)
{
    struct newer_buf *made = malloc(sizeof *made);
    void *memory = NULL;
    if (!made || posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), size ? size : 1)) {
        free(made);
        return refused_null(ENOMEM);
    }
    *made = (struct newer_buf){.pd = pd, .memory = memory, .size = size};
    *buffer = made;
    return memory;
}

void buffer_free(struct newer_buf *buffer)
{
    if (buffer)
        free(buffer->memory);
    free(buffer);
}

const void *buffer_memory(const struct newer_buf *buffer)
{
    return buffer->memory;
}

/* Checks that the range is a part of the buffer, and that no attribute names other memory. */
static int buffer_check_range(const struct ibv_pd *pd, const struct newer_mr_init_attr *attr)
{
    const struct newer_buf *buffer = attr->buf;
    uintptr_t offset = (uintptr_t)attr->addr - (uintptr_t)buffer->memory; /* huge when it is before the buffer */
    if (pd != buffer->pd)
        return refuse(EINVAL, REASON_BUFFER_PD, "the buffer at %p", (void *)buffer->memory);
    if (!(attr->comp_mask & NEWER_MR_ADDR) || attr->comp_mask & FROM_FILE)
        return refuse(EINVAL, REASON_BUFFER_NAMED, "comp_mask is 0x%llx", (unsigned long long)attr->comp_mask);
    if (offset > buffer->size || attr->length > buffer->size - offset)
        return refuse(EINVAL, REASON_BUFFER_RANGE, "%zu bytes at %p, and the buffer has %zu at %p", attr->length,
                      attr->addr, buffer->size, (void *)buffer->memory);
    return 0;
}

/* A file needs its offset and the address that keys speak of; memory needs its address, and nothing of a file. */
static bool buffer_names_one_memory(uint64_t mask)
{
    if (mask & NEWER_MR_FD)
        return (mask & NEWER_MR_FD_OFFSET) && (mask & NEWER_MR_IOVA) && !(mask & NEWER_MR_ADDR);
    return (mask & NEWER_MR_ADDR) && !(mask & NEWER_MR_FD_OFFSET);
}

/* Refuses a hint for pages on demand, as adapters do: a hint is for pages that an adapter reads in place. */
static int buffer_check_dmah(const struct ibv_pd *pd, const struct newer_mr_init_attr *attr)
{
    if (attr->dmah->context != pd->context)
        return refuse(EINVAL, REASON_OTHER_CONTEXT, "the DMA handle");
    if (attr->access & IBV_ACCESS_ON_DEMAND)
        return refuse(EOPNOTSUPP, REASON_DMAH_ON_DEMAND, "access is 0x%x", (unsigned)attr->access);
    return 0;
}

static int buffer_check(const struct ibv_pd *pd, const struct newer_mr_init_attr *attr)
{
    const unsigned long long mask = attr->comp_mask;
    if (mask & ~(uint64_t)KNOWN)
        return refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "comp_mask is 0x%llx", mask);
    int error = mask & NEWER_MR_BUF ? buffer_check_range(pd, attr) : 0;
    if (error)
        return error;
    if (!buffer_names_one_memory(mask))
        return refuse(EINVAL, REASON_MR_EX_ATTRIBUTES, "comp_mask is 0x%llx", mask);
    return attr->comp_mask & NEWER_MR_DMAH ? buffer_check_dmah(pd, attr) : 0;
}

struct ibv_mr *buffer_register(struct ibv_pd *pd, const struct newer_mr_init_attr *attr)
{
    int error = buffer_check(pd, attr);
    if (error)
        return refused_null(error);
    struct object *dmah = attr->comp_mask & NEWER_MR_DMAH ? dmah_object(attr->dmah) : NULL;
    if (attr->comp_mask & NEWER_MR_FD)
        return mr_special_register_fd(pd, attr->fd_offset, attr->length, attr->iova, attr->fd, (unsigned)attr->access,
                                      dmah);
    uint64_t base = attr->comp_mask & NEWER_MR_IOVA ? attr->iova : (uintptr_t)attr->addr;
    return mr_register_hinted(pd, attr->addr, attr->length, base, (unsigned)attr->access, dmah);
}
