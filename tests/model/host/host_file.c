/* Files: the host's table with its record locks, names in one directory, and memfds with their mappings. */
#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "schedule.h"
#include "seam.h"
#include "trace.h"

#define HERE __builtin_return_address(0)

enum { DEVICE = 1, INODE_FILE = 10, INODE_OTHER = 1000 };

/* --- names */

struct host_name *host_find_name(const char *path)
{
    for (unsigned i = 0; i < HOST_NAMES; i++)
        if (host.names[i].kind != NAME_NONE && !strcmp(host.names[i].path, path))
            return &host.names[i];
    return NULL;
}

struct host_name *host_add_name(const char *path, enum name_kind kind, unsigned number)
{
    for (unsigned i = 0; i < HOST_NAMES; i++)
        if (host.names[i].kind == NAME_NONE) {
            struct host_name *name = &host_change()->names[i];
            memset(name, 0, sizeof *name);
            name->kind = (uint8_t)kind;
            name->number = (uint8_t)number;
            snprintf(name->path, sizeof name->path, "%s", path);
            return name;
        }
    host_unknown("names: too many");
}

static void remove_name(struct host_name *name)
{
    struct host_name gone = *name;
    memset(name, 0, sizeof *name);
    host_change();
    if (gone.kind == NAME_FILE)
        host_file_drop(gone.number);
}

int model_mkdir(const char *path, mode_t mode)
{
    schedule_step();
    if (host_find_name(path))
        return host_error(EEXIST);
    host_add_name(path, NAME_DIRECTORY, 0);
    return 0;
}

int model_unlink(const char *path)
{
    schedule_step();
    schedule_flush();
    struct host_name *name = host_find_name(path);
    trace_line(HERE, "unlink(%s): %s", path, name ? "ok" : "ENOENT");
    if (!name)
        return host_error(ENOENT);
    remove_name(name);
    schedule_saw(0);
    return 0;
}

int model_link(const char *from, const char *to)
{
    schedule_step();
    struct host_name *name = host_find_name(from);
    int error = !name ? ENOENT : host_find_name(to) ? EEXIST : 0;
    trace_line(HERE, "link(%s, %s): %s", from, to, error ? strerror(error) : "ok");
    if (error)
        return host_error(error);
    host.files[name->number].references++;
    host_add_name(to, NAME_FILE, name->number);
    schedule_saw(0);
    return 0;
}

int model_rename(const char *from, const char *to)
{
    schedule_step();
    struct host_name *name = host_find_name(from), *there = host_find_name(to);
    trace_line(HERE, "rename(%s, %s): %s", from, to, name ? "ok" : "ENOENT");
    if (!name)
        return host_error(ENOENT);
    if (there)
        remove_name(there);
    snprintf(name->path, sizeof name->path, "%s", to);
    host_change();
    schedule_saw(0);
    return 0;
}

/* --- files */

static int make_file(const char *path)
{
    for (unsigned i = 0; i < MEMORY_FILES; i++)
        if (!host.files[i].references && !host.files[i].size) { /* the memory of one that is gone isn't used again */
            host_change()->files[i] = (struct host_file){.references = 1};
            host_add_name(path, NAME_FILE, i);
            return (int)i;
        }
    host_unknown("open: too many files");
}

int model_open(const char *path, int flags, ...)
{
    schedule_step();
    struct host_name *name = host_find_name(path);
    if (name && flags & O_CREAT && flags & O_EXCL)
        return host_error(EEXIST);
    if (!name && !(flags & O_CREAT))
        return host_error(ENOENT);
    int file = name ? name->number : make_file(path);
    host.files[file].references++;
    int descriptor = host_open_fd(FD_FILE, (unsigned)file);
    trace_line(HERE, "open(%s): %d", path, descriptor);
    schedule_saw((unsigned)descriptor);
    return descriptor;
}

int model_mkostemp(char *path, int flags)
{
    char *place = path + strlen(path) - 6;
    for (int try = 0;; try++) {
        snprintf(place, 7, "%03u%03u", (unsigned)try % 1000, (unsigned)model_getpid() % 1000);
        if (!host_find_name(path))
            return model_open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
    }
}

void host_file_drop(unsigned number)
{
    host_change()->files[number].references--;
}

static void describe(struct stat *status, mode_t mode, ino_t inode, off_t size)
{
    memset(status, 0, sizeof *status);
    status->st_mode = mode;
    status->st_dev = DEVICE;
    status->st_ino = inode;
    status->st_size = size;
    status->st_uid = geteuid();
    schedule_saw((uint64_t)inode << 32 ^ (uint64_t)size);
}

static int stat_name(const char *path, struct stat *status)
{
    schedule_step();
    struct host_name *name = host_find_name(path);
    if (!name)
        return host_error(ENOENT);
    if (name->kind == NAME_FILE)
        describe(status, S_IFREG | 0600, (ino_t)(INODE_FILE + name->number), host.files[name->number].size);
    else
        describe(status, name->kind == NAME_DIRECTORY ? S_IFDIR | 0700 : S_IFSOCK | 0600, INODE_OTHER, 0);
    return 0;
}

int model_stat(const char *path, struct stat *status)
{
    return stat_name(path, status);
}

int model_lstat(const char *path, struct stat *status)
{
    return stat_name(path, status);
}

int model_fchmod(int descriptor, mode_t mode)
{
    return host_fd(descriptor, FD_NONE) ? 0 : -1;
}

int model_fstat(int descriptor, struct stat *status)
{
    struct host_fd *fd = host_fd(descriptor, FD_NONE);
    if (!fd)
        return -1;
    if (fd->kind == FD_FILE)
        describe(status, S_IFREG | 0600, (ino_t)(INODE_FILE + fd->number), host.files[fd->number].size);
    else if (fd->kind == FD_MEMFD)
        describe(status, S_IFREG | 0777, INODE_OTHER, host.memfds[fd->number].size);
    else
        host_unknown("fstat");
    return 0;
}

int model_posix_fallocate(int descriptor, off_t offset, off_t size)
{
    struct host_fd *fd = host_fd(descriptor, FD_FILE);
    if (!fd)
        return EBADF;
    host_change()->files[fd->number].size = (uint32_t)(offset + size);
    return size > MEMORY_REGION ? EFBIG : 0;
}

ssize_t model_pread(int descriptor, void *to, size_t size, off_t offset)
{
    struct host_fd *fd = host_fd(descriptor, FD_FILE);
    if (!fd)
        return -1;
    schedule_step();
    memcpy(to, memory_file(fd->number)->base + offset, size);
    for (size_t i = 0; i + 8 <= size; i += 8)
        schedule_saw(memory_load((uint8_t *)to + i, 8));
    return (ssize_t)size;
}

/* --- record locks */

static bool overlaps(const struct host_lock *lock, unsigned file, uint32_t start, uint32_t end)
{
    return lock->taken && lock->file == file && lock->start < end && start < lock->end;
}

static const struct host_lock *find_lock(unsigned file, unsigned not_of, uint32_t start, uint32_t end)
{
    for (unsigned i = 0; i < HOST_LOCKS; i++)
        if (overlaps(&host.locks[i], file, start, end) && host.locks[i].process != not_of)
            return &host.locks[i];
    return NULL;
}

/* The code under test gives back what it took, or all. */
void host_unlock(unsigned file, unsigned process, uint32_t start, uint32_t end)
{
    for (unsigned i = 0; i < HOST_LOCKS; i++) {
        struct host_lock *lock = &host.locks[i];
        if (overlaps(lock, file, start, end) && lock->process == process) {
            if (lock->start < start || lock->end > end)
                host_unknown("F_UNLCK of a part");
            *lock = (struct host_lock){0};
        }
    }
    host_change();
}

static void add_lock(unsigned file, unsigned process, uint32_t start, uint32_t end)
{
    for (unsigned i = 0; i < HOST_LOCKS; i++)
        if (!host.locks[i].taken) {
            host_change()->locks[i] = (struct host_lock){(uint8_t)file, (uint8_t)process, true, start, end};
            return;
        }
    host_unknown("F_SETLK: too many");
}

static int set_lock(unsigned file, const struct flock *lock, uint32_t start, uint32_t end, const void *at)
{
    unsigned process = host_process();
    bool taken = lock->l_type != F_UNLCK && find_lock(file, process, start, end);
    trace_line(at, "%s of bytes %u to %u of the table: %s", lock->l_type == F_UNLCK ? "F_UNLCK" : "F_SETLK", start,
               end - 1, taken ? "another has it" : "ok");
    if (taken)
        return host_error(EAGAIN);
    host_unlock(file, process, start, end);
    if (lock->l_type != F_UNLCK)
        add_lock(file, process, start, end);
    schedule_saw(0);
    return 0;
}

static int get_lock(unsigned file, struct flock *lock, uint32_t start, uint32_t end, const void *at)
{
    const struct host_lock *found = find_lock(file, host_process(), start, end);
    trace_line(at, "F_GETLK of byte %u: %s", start,
               found ? schedule_process_at(found->process)->name : "nobody has it");
    lock->l_type = found ? F_WRLCK : F_UNLCK;
    lock->l_pid = found ? HOST_FIRST_PID + found->process : 0;
    schedule_saw(found ? found->process + 1u : 0);
    return 0;
}

static int fcntl_lock(unsigned file, int command, struct flock *lock, const void *at)
{
    uint32_t start = (uint32_t)lock->l_start, end = lock->l_len ? start + (uint32_t)lock->l_len : UINT32_MAX;
    if (!memory_is_constant(memory_file(file)->base) || schedule_anyone_may_die())
        schedule_step();
    schedule_flush();
    if (command == F_GETLK)
        return get_lock(file, lock, start, end, at);
    return set_lock(file, lock, start, end, at);
}

int host_file_number(const char *path)
{
    struct host_name *name = host_find_name(path);
    return name && name->kind == NAME_FILE ? name->number : -1;
}

int host_lock_holder(const char *path, unsigned byte)
{
    struct host_name *name = host_find_name(path);
    const struct host_lock *lock = name ? find_lock(name->number, UINT32_MAX, byte, byte + 1) : NULL;
    return lock ? lock->process : -1;
}

int model_fcntl(int descriptor, int command, ...)
{
    struct host_fd *fd = host_fd(descriptor, FD_NONE);
    va_list arguments;
    va_start(arguments, command);
    uintptr_t argument = va_arg(arguments, uintptr_t);
    va_end(arguments);
    if (!fd)
        return -1;
    if (fd->kind == FD_FILE && (command == F_SETLK || command == F_GETLK))
        return fcntl_lock(fd->number, command, (struct flock *)argument, HERE);
    if (command == F_DUPFD_CLOEXEC)
        return argument ? host_error(EMFILE) : host_duplicate(fd); /* no place is high: base/descriptor.h */
    if (fd->kind != FD_MEMFD)
        host_unknown("fcntl");
    host_change()->last_memfd[host_process()] = (uint8_t)(fd->number + 1);
    if (command == F_GET_SEALS)
        return (int)host.memfds[fd->number].seals;
    if (command != F_ADD_SEALS)
        host_unknown("fcntl");
    host.memfds[fd->number].seals |= (uint32_t)(int)argument;
    return 0;
}

/* --- memfds and mappings */

int model_memfd_create(const char *name, unsigned flags)
{
    for (unsigned i = 0; i < HOST_MEMFDS; i++)
        if (!host.memfds[i].references) {
            host_change()->memfds[i] = (struct host_memfd){.references = 1, .ring = -1};
            return host_open_fd(FD_MEMFD, i);
        }
    host_unknown("memfd_create: too many");
}

int model_ftruncate(int descriptor, off_t size)
{
    struct host_fd *fd = host_fd(descriptor, FD_MEMFD);
    struct host_memfd *memfd = fd ? &host_change()->memfds[fd->number] : NULL;
    if (!memfd)
        return -1;
    memfd->size = (uint32_t)size;
    memfd->ring = (int8_t)(size > MEMORY_RING_HEADER ? memory_take_ring((uint32_t)size - MEMORY_RING_HEADER)
                                                     : memory_take_pages());
    if (memfd->ring < 0)
        host_unknown("ftruncate: no ring of this size, or no pages are left");
    return 0;
}

void host_memfd_hold(unsigned number)
{
    host_change()->memfds[number].references++;
}

void host_memfd_drop(unsigned number)
{
    host_change()->memfds[number].references--;
}

int model_fstatfs(int descriptor, struct statfs *status)
{
    memset(status, 0, sizeof *status);
    status->f_type = TMPFS_MAGIC;
    return 0;
}

int model_dup(int descriptor)
{
    struct host_fd *fd = host_fd(descriptor, FD_NONE);
    return fd ? host_duplicate(fd) : -1;
}

/* A ring's address is its region's. The code reserves address space before it names the memfd, so the reservation is
 * for the memfd that the process looked at last. */
static void *reserve_ring(void)
{
    unsigned memfd = host.last_memfd[host_process()];
    return memfd ? memory_ring(host.memfds[memfd - 1].ring)->base : MAP_FAILED;
}

static void *map_ring(void *address, const struct host_memfd *memfd, off_t offset)
{
    const struct model_region *region = memory_ring(memfd->ring);
    if (region->kind == MEMORY_PUBLISHED && !address)
        address = region->base;
    if ((uint8_t *)address < region->base || (uint8_t *)address >= region->base + MEMORY_REGION)
        host_unknown("mmap of a memfd");
    if (offset == 0)
        memory_map(region, host_process());
    return address;
}

void *model_mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset)
{
    if (descriptor < 0)
        return protection & PROT_WRITE ? host_map_writable(size) : reserve_ring();
    struct host_fd *fd = host_fd(descriptor, FD_NONE);
    if (!fd)
        return MAP_FAILED;
    if (host_refuses(HOST_NO_MAPPING)) {
        trace_line(HERE, "mmap: ENOMEM");
        host_error(ENOMEM);
        return MAP_FAILED;
    }
    if (fd->kind == FD_MEMFD)
        return map_ring(address, &host.memfds[fd->number], offset);
    if (fd->kind != FD_FILE)
        host_unknown("mmap");
    memory_map(memory_file(fd->number), host_process());
    return memory_file(fd->number)->base;
}

int model_munmap(void *address, size_t size)
{
    const struct model_region *region = memory_region(address);
    if (!region || memory_fault(address, host_process()))
        return 0; /* a reservation whose mapping was refused */
    if (schedule_process_now()->threads > 1 || memory_mappers(region) > 1)
        schedule_step();
    trace_line(HERE, "munmap of %s", trace_place(address));
    memory_unmap(region, host_process());
    return 0;
}

int model_madvise(void *address, size_t size, int advice)
{
    schedule_step();
    memory_clear(address, size);
    return 0;
}
