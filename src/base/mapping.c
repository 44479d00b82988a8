#include "base/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/static_lock.h"

static LIST_HEAD(, mapping_avoided) all;
LOCK_STATIC(avoiding,
            LOCK_ATTACHING); /* maps are made with innermost locks held, and never while tables are replaced */

/* --- what is avoided */

void mapping_avoid(struct mapping_avoided *avoided, const void *start, size_t length)
{
    const size_t most = (size_t)1 << (sizeof(size_t) * 8 * 11 / 16); /* 16 TiB */
    uintptr_t begin = (uintptr_t)start;
    if (!begin || !length || length > most)
        return;
    avoided->begin = begin;
    avoided->end = begin + length;
    lock_take(&avoiding);
    LIST_INSERT_HEAD(&all, avoided, siblings);
    lock_release(&avoiding);
}

void mapping_allow(struct mapping_avoided *avoided)
{
    if (!avoided->begin)
        return;
    lock_take(&avoiding);
    LIST_REMOVE(avoided, siblings);
    lock_release(&avoiding);
    avoided->begin = 0;
}

/* The lowest byte of the regions that overlap [begin, end); 0: no region does. */
static uintptr_t find_avoided(uintptr_t begin, uintptr_t end)
{
    const struct mapping_avoided *each;
    uintptr_t lowest = 0;
    lock_take(&avoiding);
    LIST_FOREACH (each, &all, siblings)
        if (each->begin < end && begin < each->end && (!lowest || each->begin < lowest))
            lowest = each->begin;
    lock_release(&avoiding);
    return lowest;
}

/* --- maps */

/* The next place to try, at this distance below a region. 0: there is no room below. */
static uintptr_t next_place(uintptr_t region, uintptr_t distance)
{
    const uintptr_t lowest = 1 << 20; /* the kernel keeps the first addresses free */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return region > distance && region - distance > lowest ? (region - distance) & ~(page - 1) : 0;
}

/* Maps without access, so that no peer reaches the memory while it may be in a region. The kernel takes an address for
 * a hint, and chooses another where other memory is in the way; so the distance doubles each time. */
static void *find_place(size_t length, int flags, int descriptor, off_t offset)
{
    uintptr_t hint = 0, lowest = UINTPTR_MAX;
    for (uintptr_t distance = length;; distance *= 2) {
        void *at = mmap((void *)hint, length, PROT_NONE, flags, descriptor, offset);
        uintptr_t region = at == MAP_FAILED ? 0 : find_avoided((uintptr_t)at, (uintptr_t)at + length);
        if (!region)
            return at;
        munmap(at, length);
        lowest = region < lowest ? region : lowest;
        hint = next_place(lowest, distance);
        if (!hint) {
            errno = ENOMEM;
            return MAP_FAILED;
        }
    }
}

void *mapping_make(size_t length, int protection, int flags, int descriptor, off_t offset)
{
    void *at = find_place(length, flags, descriptor, offset);
    if (at == MAP_FAILED || protection == PROT_NONE || !mprotect(at, length, protection))
        return at;
    int error = errno;
    munmap(at, length);
    errno = error;
    return MAP_FAILED;
}

/* --- blocks */

#ifdef __SANITIZE_ADDRESS__
static const size_t large = SIZE_MAX; /* ASan's allocator checks the end of a block, and finds pointers in it */
#else
static const size_t large = 128 << 10; /* malloc maps blocks of this size on, unless its user has changed that */
#endif

void *mapping_allocate(size_t alignment, size_t size)
{
    size_t whole = (size + alignment - 1) & ~(alignment - 1);
    if (size < large)
        return aligned_alloc(alignment, whole ? whole : alignment);
    void *memory = mapping_make(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void mapping_free(void *memory, size_t size)
{
    if (size < large)
        free(memory);
    else if (memory)
        munmap(memory, size);
}
