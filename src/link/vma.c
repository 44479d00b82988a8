#include "link/vma.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "base/mapping.h"
#include "link/guard.h"
#include "wire/guarded.h"

/* Constants of Linux 5.14 and 6.11, which older headers don't have. */
#ifndef MADV_POPULATE_READ
enum { MADV_POPULATE_READ = 22, MADV_POPULATE_WRITE = 23 };
#endif

struct map_query { /* the argument of ioctl(PROCMAP_QUERY) */
    uint64_t size, flags, address;
    uint64_t start, end, found_flags, page_size, offset, inode;
    uint32_t device[2];
    uint32_t name_size, build_id_size;
    uint64_t name, build_id;
};
enum { MAP_READABLE = 1, MAP_WRITABLE = 2, MAP_IS_SHARED = 8 };
#define MAP_QUERY _IOWR('f', 17, struct map_query)

/* The end of the mapping with this byte, of any protection if no flags are set; 0: not mapped; 1: not known. */
static uintptr_t ask_where_it_ends(int maps, uintptr_t at, uint64_t flags)
{
    struct map_query query = {.size = sizeof query, .flags = flags, .address = at};
    return !ioctl(maps, MAP_QUERY, &query) ? query.end : errno != ENOENT;
}

/* Asks by PROCMAP_QUERY. Returns 1: all is permitted; 0: some is not; -1: the kernel doesn't answer this call. */
static int ask_kernel(int maps, uintptr_t at, uintptr_t end, bool write)
{
    while (at < end) {
        uintptr_t next = ask_where_it_ends(maps, at, write ? MAP_WRITABLE : MAP_READABLE);
        if (!next && guard_protected_end(at))
            next = ask_where_it_ends(maps, at, 0) ? guard_protected_end(at) : 0;
        if (next <= 1)
            return next ? -1 : 0;
        at = next;
    }
    return 1;
}

/* The end of what is permitted from this byte on, within its line of the list; 0: this byte is not permitted. */
static uintptr_t end_of_permitted(uintptr_t at, uintptr_t to, bool permitted)
{
    uintptr_t end = permitted ? to : guard_protected_end(at);
    return end < to ? end : to;
}

/* Reads the whole list of mappings. Returns 1: all is permitted; 0: some is not; -1: the list can't be read. */
static int read_maps(int maps, uintptr_t at, uintptr_t end, bool write)
{
    char permissions[5];
    uint64_t from, to;
    uintptr_t next;
    FILE *list = fdopen(dup(maps), "r");
    if (!list)
        return -1;
    int state = 0;
    while (!state && fscanf(list, "%lx-%lx %4s%*[^\n]", &from, &to, permissions) == 3) {
        if (to <= at)
            continue;
        while (from <= at && at < to && (next = end_of_permitted(at, to, permissions[write] != '-')))
            at = next;
        state = at >= end;
        if (at < to)
            break;
    }
    fclose(list);
    return state;
}

/* Finds out, without /proc, whether the pages are mapped; no more can be found out without touching them. */
static bool is_mapped(uintptr_t at, uintptr_t end)
{
    enum { PAGES = 1024 };
    unsigned char present[PAGES];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (at &= ~(page - 1); at < end; at += PAGES * page) {
        size_t span = end - at < PAGES * page ? end - at : PAGES * page;
        if (mincore((void *)at, span, present) && errno == ENOMEM)
            return false;
    }
    return true;
}

bool vma_permits(const void *address, size_t length, bool write)
{
    uintptr_t at = (uintptr_t)address, end = at + length;
    if (end < at)
        return false;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int state = maps < 0 ? -1 : ask_kernel(maps, at, end, write);
    if (maps >= 0 && state < 0)
        state = read_maps(maps, at, end, write);
    descriptor_close(&maps);
    return state < 0 ? is_mapped(at, end) : state;
}

bool vma_is_copyable(const void *address, size_t length)
{
    const char *first = address, *last = first + length - 1;
    char bytes[2];
    struct iovec to = {bytes, sizeof bytes}, from[] = {{(void *)first, 1}, {(void *)last, 1}};
    int kept = errno;
    errno = 0;
    ssize_t got = process_vm_readv(getpid(), &to, 1, from, 2, 0);
    bool refused = got == 1 || (got < 0 && errno == EFAULT);
    const char *at = got == 1 ? last : first;
    bool reached =
        refused && !guard_protected_end((uintptr_t)at) && vma_permits(at, 1, false) && guarded_is_readable(at, 1);
    errno = kept;
    return !reached;
}

/* -- mappings and their files */

/* Asks by PROCMAP_QUERY. Returns 1: found; 0: not mapped; -1: the kernel doesn't answer this call. */
static int query_mapping(int maps, uintptr_t at, struct vma *vma, char name[VMA_NAME])
{
    struct map_query query = {.size = sizeof query, .address = at, .name = (uintptr_t)name, .name_size = VMA_NAME};
    *name = '\0';
    if (ioctl(maps, MAP_QUERY, &query))
        return errno == ENOENT ? 0 : -1;
    *vma = (struct vma){.begin = query.start,
                        .end = query.end,
                        .device = query.inode ? makedev(query.device[0], query.device[1]) : 0,
                        .inode = query.inode,
                        .offset = query.offset,
                        .shared = query.found_flags & MAP_IS_SHARED,
                        .writable = query.found_flags & MAP_WRITABLE};
    return 1;
}

/* Finds the mapping in the whole list, and returns what query_mapping returns. */
static int list_mapping(int maps, uintptr_t at, struct vma *vma, char name[VMA_NAME])
{
    char line[VMA_NAME + 100], permissions[5];
    unsigned from, to;
    int named = 0, state = -1;
    FILE *list = lseek(maps, 0, SEEK_SET) ? NULL : fdopen(dup(maps), "r");
    while (list && state < 0 && fgets(line, sizeof line, list)) {
        *vma = (struct vma){0};
        if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &vma->begin, &vma->end, permissions, &vma->offset, &from, &to,
                   &vma->inode, &named) < 7 ||
            vma->end <= at)
            continue;
        vma->device = vma->inode ? makedev(from, to) : 0;
        vma->shared = permissions[3] == 's';
        vma->writable = permissions[1] == 'w';
        snprintf(name, VMA_NAME, "%.*s", (int)strcspn(line + named, "\n"), line + named);
        state = vma->begin <= at;
    }
    if (list)
        fclose(list);
    return state;
}

static bool find_mapping(int maps, uintptr_t at, struct vma *vma, char name[VMA_NAME])
{
    int state = query_mapping(maps, at, vma, name);
    return (state < 0 ? list_mapping(maps, at, vma, name) : state) > 0;
}

static bool continues(const struct vma *first, const struct vma *next)
{
    return first->shared == next->shared && first->writable == next->writable && first->device == next->device &&
           first->inode == next->inode && first->end == next->begin &&
           (!first->inode || first->offset + (first->end - first->begin) == next->offset);
}

bool vma_find(const void *address, size_t length, struct vma *vma)
{
    char name[VMA_NAME];
    struct vma next;
    uintptr_t end = (uintptr_t)address + length;
    int kept = errno, maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool known = maps >= 0 && find_mapping(maps, (uintptr_t)address, vma, name);
    while (known && vma->end < end) {
        known = find_mapping(maps, vma->end, &next, name) && continues(vma, &next);
        vma->end = next.end;
    }
    descriptor_close(&maps);
    errno = kept;
    return known;
}

bool vma_is_pinned_to_write(unsigned access)
{
    enum { WRITES = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND };
    return access & WRITES && !(access & IBV_ACCESS_ON_DEMAND);
}

/* Returns true for the file systems of disks and networks that are certain to write pages back. */
static bool writes_back(const char *name, const struct vma *vma)
{
    enum { EXT = 0xef53, XFS = 0x58465342, F2FS = 0xf2f52010, NFS = 0x6969 };
    struct stat file;
    struct statfs system;
    if (stat(name, &file) || file.st_ino != vma->inode || file.st_dev != vma->device || statfs(name, &system))
        return false;
    uint32_t type = (uint32_t)system.f_type;
    return type == EXT || type == XFS || type == F2FS || type == NFS;
}

bool vma_is_written_back(const void *address, size_t length, char name[VMA_NAME])
{
    struct vma vma;
    uintptr_t at = (uintptr_t)address, end = at + length;
    int kept = errno, maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool refused = false;
    while (maps >= 0 && at < end && !refused && find_mapping(maps, at, &vma, name)) {
        refused = vma.shared && vma.writable && writes_back(name, &vma);
        at = vma.end;
    }
    descriptor_close(&maps);
    errno = kept;
    return refused;
}

static int advice_of(enum vma_fetch fetch)
{
    if (fetch == FETCH_LATER)
        return MADV_WILLNEED;
    return fetch == FETCH_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
}

int vma_fetch(const void *address, size_t length, enum vma_fetch fetch)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)address & ~(page - 1);
    if (!length)
        return 0;
    if (!vma_permits(address, length, fetch == FETCH_WRITE))
        return EFAULT;
    if (fetch == FETCH_NOTHING)
        return 0;
    /* an old kernel can't populate, and pages that it can't read ahead are read at their use: neither is an error */
    size_t span = ((uintptr_t)address + length - start + page - 1) & ~(page - 1);
    return madvise((void *)start, span, advice_of(fetch)) && errno == EFAULT ? EFAULT : 0;
}

enum { SINK = 16 << 20 };
#define NOTHING ((size_t)4 << 30)

static char *nothing_to_read, *nothing_to_write;

/* Maps one small file again and again over the whole range. */
static char *map_sink(void)
{
    int file = file_limit_forbids(SINK) ? -1 : memfd_create("softverbs null region", MFD_CLOEXEC);
    if (file < 0)
        return NULL;
    char *range = mapping_make(NOTHING, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool mapped = range != MAP_FAILED && !ftruncate(file, SINK);
    for (size_t at = 0; mapped && at < NOTHING; at += SINK)
        mapped = mmap(range + at, SINK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    close(file);
    if (!mapped && range != MAP_FAILED)
        munmap(range, NOTHING);
    return mapped ? range : NULL;
}

static void map_nothing(void)
{
    char *zeros = mapping_make(NOTHING, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED)
        return;
    nothing_to_write = map_sink();
    if (nothing_to_write)
        nothing_to_read = zeros;
    else
        munmap(zeros, NOTHING);
}

char *vma_of_nothing(bool write)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, map_nothing);
    return write ? nothing_to_write : nothing_to_read;
}
