#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "link/ring_layout.h"

#include "base/file_limit.h"
#include "base/mapping.h"

static const int seals = F_SEAL_SHRINK | F_SEAL_GROW; /* those that a reader needs */

static size_t span(uint32_t size)
{
    return RING_DATA + 2 * (size_t)size;
}

static bool is_size(uint64_t size)
{
    return size >= RING_SIZE_MIN && size <= RING_SIZE_MAX && !(size & (size - 1));
}

/* Maps the header page and the data, then the data once more. */
static int map(struct ring *ring, int fd, uint32_t size, int data_protection)
{
    const int both = PROT_READ | PROT_WRITE, fixed = MAP_SHARED | MAP_FIXED;
    uint8_t *base = mapping_make(span(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return errno;
    if (mmap(base, RING_DATA, both, fixed, fd, 0) == MAP_FAILED ||
        mmap(base + RING_DATA, size, data_protection, fixed, fd, RING_DATA) == MAP_FAILED ||
        mmap(base + RING_DATA + size, size, data_protection, fixed, fd, RING_DATA) == MAP_FAILED) {
        int error = errno;
        munmap(base, span(size));
        return error;
    }
    *ring = (struct ring){.shared = (struct ring_shared *)base, .data = base + RING_DATA, .size = size};
    return 0;
}

static int ring_memory_make(uint32_t size, int *fd)
{
    if (!is_size(size))
        return EINVAL;
    if (file_limit_forbids(RING_DATA + size))
        return EFBIG;
    *fd = memfd_create("softverbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return errno;
    if (!ftruncate(*fd, RING_DATA + size) && !fcntl(*fd, F_ADD_SEALS, seals | F_SEAL_SEAL))
        return 0;
    int error = errno;
    close(*fd);
    return error;
}

int ring_create(struct ring *ring, uint32_t size, int *fd)
{
    int error = ring_memory_make(size, fd);
    if (error)
        return error;
    error = map(ring, *fd, size, PROT_READ | PROT_WRITE);
    if (error) {
        close(*fd);
        return error;
    }
    ring->shared->magic = RING_MAGIC;
    ring->shared->layout = RING_LAYOUT;
    ring->shared->size = size;
    return 0;
}

/* A file that could shrink, or is in a file system that may run out of space, would cause a SIGBUS later. */
static bool is_safe(int fd, uint64_t *size)
{
    struct stat status;
    struct statfs system;
    int present = fcntl(fd, F_GET_SEALS);
    if (present < 0 || (present & seals) != seals || fstat(fd, &status) || fstatfs(fd, &system))
        return false;
    *size = (uint64_t)status.st_size - RING_DATA;
    return system.f_type == TMPFS_MAGIC && status.st_size > RING_DATA && is_size(*size);
}

int ring_map(struct ring *ring, int fd)
{
    uint64_t size;
    if (!is_safe(fd, &size))
        return EINVAL;
    int error = map(ring, fd, (uint32_t)size, PROT_READ);
    if (error)
        return error;
    const struct ring_shared *shared = ring->shared;
    if (shared->magic == RING_MAGIC && shared->layout == RING_LAYOUT && shared->size == size)
        return 0;
    ring_unmap(ring);
    return EINVAL;
}

void ring_unmap(struct ring *ring)
{
    if (ring->shared)
        munmap(ring->shared, span(ring->size));
    *ring = (struct ring){0};
}

struct direct_seats *ring_seats(const struct ring *ring)
{
    return ring->shared ? &ring->shared->seats : NULL;
}

void ring_discard(struct ring *ring)
{
    if (ring->shared)
        madvise(ring->data, ring->size, MADV_REMOVE);
}
