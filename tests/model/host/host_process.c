/* The calls by which a process acts in another one, and looks at it: process_vm_readv, process_vm_writev, robust
 * futexes, and /proc/PID/task. */
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "host.h"
#include "schedule.h"
#include "seam.h"
#include "trace.h"

#define HERE __builtin_return_address(0)

/* --- another process's memory, in two steps: what it changes meanwhile is seen in part */

static size_t copy_piece(uint8_t *to, const uint8_t *from, size_t size, unsigned owner)
{
    const char *fault = memory_fault(from, owner);
    if (fault || memory_fault(from + size - 1, owner))
        return 0;
    for (unsigned half = 0; half < 2; half++) {
        size_t start = half ? size / 2 : 0, end = half ? size : size / 2;
        schedule_step();
        memory_touch(to + start, end - start);
        memcpy(to + start, from + start, end - start);
        for (size_t i = start; i + 8 <= end && i < start + 64; i += 8)
            schedule_saw(memory_load(to + i, 8));
    }
    return size;
}

ssize_t model_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                               const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
    unsigned owner = (unsigned)(pid - HOST_FIRST_PID), at = 0;
    size_t done = 0, used = 0;
    if (owner >= schedule_processes() || schedule_process_at(owner)->dead)
        return host_error(ESRCH);
    for (unsigned long i = 0; i < remote_count; i++)
        for (size_t from = 0; from < remote[i].iov_len && at < local_count;) {
            size_t room = local[at].iov_len - used, some = remote[i].iov_len - from;
            some = some < room ? some : room;
            if (some &&
                !copy_piece((uint8_t *)local[at].iov_base + used, (uint8_t *)remote[i].iov_base + from, some, owner))
                return done ? (ssize_t)done : host_error(EFAULT);
            done += some;
            from += some;
            used += some;
            if (used == local[at].iov_len)
                at++, used = 0;
        }
    trace_line(HERE, "process_vm_readv of %zu bytes", done);
    return (ssize_t)done;
}

/* --- writing there. The call continues when its process is killed or stopped, as signals are looked at where it
 * returns. (A fatal one may end it earlier, which writes less.) Each piece is looked at and stored after those before
 * it, its bytes in any order: here from the end. */

static void store_half(uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        memory_store(to + i, 1, from[i]);
}

static bool store_piece(uint8_t *to, const uint8_t *from, size_t size, unsigned owner, const void *at)
{
    schedule_step();
    enum memory_stores may = memory_stores(to, owner);
    if (may == MEMORY_LOST)
        schedule_violation("%s writes at %s of %s, where something else may lie by now", schedule_who(),
                           trace_place(to), schedule_process_at(owner)->name);
    trace_line(at, "process_vm_writev: %zu bytes at %s%s", size, trace_place(to),
               may == MEMORY_FAULTS ? ": EFAULT" : "");
    schedule_saw(may);
    if (may == MEMORY_FAULTS)
        return false;
    size_t half = size > 8 ? size / 2 : 0;
    store_half(to + half, from + half, size - half);
    if (half) {
        schedule_step();
        store_half(to, from, half);
    }
    return true;
}

static ssize_t write_pieces(unsigned owner, const struct iovec *local, unsigned long local_count,
                            const struct iovec *remote, unsigned long remote_count, const void *at)
{
    size_t done = 0, used = 0;
    unsigned long from = 0;
    for (unsigned long i = 0; i < remote_count; i++)
        for (size_t to = 0; to < remote[i].iov_len && from < local_count;) {
            size_t room = local[from].iov_len - used, some = remote[i].iov_len - to;
            some = some < room ? some : room;
            if (some && !store_piece((uint8_t *)remote[i].iov_base + to, (uint8_t *)local[from].iov_base + used, some,
                                     owner, at))
                return done ? (ssize_t)done : host_error(EFAULT);
            done += some;
            to += some;
            used += some;
            if (used == local[from].iov_len)
                from++, used = 0;
        }
    return (ssize_t)done;
}

/* The target is read when the call has begun, from what the other process may be changing. */
static void read_remote(const struct iovec *remote, unsigned long count, struct iovec *copy)
{
    for (unsigned long i = 0; i < count; i++) {
        schedule_step();
        copy[i].iov_base = (void *)(uintptr_t)memory_load(&remote[i].iov_base, 8);
        copy[i].iov_len = memory_load(&remote[i].iov_len, 8);
        schedule_saw((uintptr_t)copy[i].iov_base);
    }
}

static void may_be_interrupted(const void *at)
{
    enum { LONG = 3600 };
    if (!host_refuses(HOST_INTERRUPTS))
        return;
    trace_line(at, "a signal handler computes for long");
    schedule_compute(schedule_clock() + LONG * NANOS_SECOND);
}

ssize_t model_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
    enum { REMOTE_MAX = 16 };
    struct iovec copy[REMOTE_MAX];
    unsigned owner = (unsigned)(pid - HOST_FIRST_PID);
    schedule_step();
    schedule_flush();
    if (owner >= schedule_processes() || schedule_process_at(owner)->dead)
        return host_error(ESRCH);
    if (remote_count > REMOTE_MAX)
        host_unknown("process_vm_writev");
    may_be_interrupted(HERE);
    schedule_call_begin(SYS_process_vm_writev);
    read_remote(remote, remote_count, copy);
    ssize_t done = write_pieces(owner, local, local_count, copy, remote_count, HERE);
    schedule_call_end();
    may_be_interrupted(HERE);
    return done;
}

/* --- a list of one robust futex, which the kernel marks when its thread dies. All of a process have the same number.
 */

long host_robust_list(long call, void *head)
{
    struct robust_list_head *list = head;
    if (call == SYS_gettid)
        return model_getpid();
    schedule_step();
    if (call == SYS_get_robust_list)
        return 0; /* what the thread had before is NULL */
    struct robust_list *entry = list ? list->list.next : NULL;
    if (entry && entry->next != &list->list)
        host_unknown("set_robust_list of several");
    host_change()->vouchers[host_process()] = entry ? (uintptr_t)entry + (uintptr_t)list->futex_offset : 0;
    return 0;
}

void host_robust_list_dies(unsigned process)
{
    uint64_t *voucher = &host_change()->vouchers[process];
    void *word = (void *)(uintptr_t)*voucher;
    if (word && memory_load(word, 4) == HOST_FIRST_PID + process)
        memory_store(word, 4, FUTEX_OWNER_DIED);
    *voucher = 0;
}

/* --- directories: the one of files, and the threads of a process, whose names are their numbers */

static struct dirent entries[HOST_DIRECTORIES];

static unsigned directory_number(DIR *stream)
{
    return (unsigned)((struct dirent *)(void *)stream - entries);
}

/* 0: not of processes. */
static unsigned process_of(const char *path)
{
    int pid, length = 0;
    if (sscanf(path, "/proc/%d/task%n", &pid, &length) != 1 || !length || path[length])
        return 0;
    return (unsigned)(pid - HOST_FIRST_PID) + 1;
}

static bool is_process(unsigned process)
{
    return process < schedule_processes() && !schedule_process_at(process)->dead;
}

DIR *model_opendir(const char *path)
{
    unsigned of = process_of(path), i = 0;
    schedule_step();
    if (of && !is_process(of - 1)) {
        trace_line(HERE, "opendir(%s): ENOENT", path);
        host_error(ENOENT);
        return NULL;
    }
    while (i < HOST_DIRECTORIES && host.directories[i].reader)
        i++;
    if (i == HOST_DIRECTORIES)
        host_unknown("opendir: too many");
    host_change()->directories[i] = (struct host_directory){(uint8_t)(host_process() + 1), (uint8_t)of, 0};
    schedule_saw(i);
    return (DIR *)(void *)&entries[i];
}

static bool next_file(struct host_directory *directory, char *to)
{
    while (directory->listed < HOST_NAMES) {
        const struct host_name *name = &host.names[directory->listed++];
        const char *last = name->kind == NAME_NONE ? NULL : strrchr(name->path, '/');
        if (!last || name->kind == NAME_DIRECTORY)
            continue;
        snprintf(to, HOST_NAME, "%s", last + 1);
        return true;
    }
    return false;
}

static bool next_thread(struct host_directory *directory, char *to)
{
    while (directory->listed < schedule_threads()) {
        struct thread_seen seen = schedule_look(directory->listed++);
        if (seen.process != directory->of - 1u || seen.place == THREAD_ENDED)
            continue;
        snprintf(to, HOST_NAME, "%u", directory->listed - 1u);
        return true;
    }
    return false;
}

struct dirent *model_readdir(DIR *stream)
{
    unsigned i = directory_number(stream);
    struct host_directory *directory = &host_change()->directories[i];
    bool any = directory->of ? next_thread(directory, entries[i].d_name) : next_file(directory, entries[i].d_name);
    schedule_saw(directory->listed);
    return any ? &entries[i] : NULL;
}

int model_closedir(DIR *stream)
{
    host_change()->directories[directory_number(stream)] = (struct host_directory){0};
    return 0;
}

int model_dirfd(DIR *stream)
{
    return HOST_FIRST_DIRECTORY + (int)directory_number(stream);
}

void host_directories_end(unsigned process)
{
    for (unsigned i = 0; i < HOST_DIRECTORIES; i++)
        if (host.directories[i].reader == process + 1)
            host_change()->directories[i] = (struct host_directory){0};
}

/* --- files of a thread */

enum { FILE_STAT, FILE_SYSCALL, FILES_OF_THREAD };

static unsigned file_of_thread(int directory, const char *path)
{
    static const char *const names[] = {"stat", "syscall"};
    unsigned thread, file = 0;
    char name[16];
    if (directory < HOST_FIRST_DIRECTORY || sscanf(path, "%u/%15s", &thread, name) != 2)
        host_unknown("text_read_at");
    while (file < FILES_OF_THREAD && strcmp(name, names[file]))
        file++;
    if (file == FILES_OF_THREAD || thread >= schedule_threads())
        host_unknown("text_read_at");
    return thread * FILES_OF_THREAD + file;
}

static void describe_stat(const struct thread_seen *seen, char *to, size_t size)
{
    static const char states[] = {
        [THREAD_RUNS] = 'R', [THREAD_WAITS] = 'S', [THREAD_STOPPED] = 'T', [THREAD_ENDED] = 'Z', [THREAD_CALLS] = 'R'};
    snprintf(to, size, "1 (a name) of a thread) %c 1", states[seen->place]);
}

/* A thread within a call may look as if it ran; the model always shows its call, from which the reader concludes more.
 */
static void describe_syscall(const struct thread_seen *seen, char *to, size_t size)
{
    if (seen->place == THREAD_RUNS)
        snprintf(to, size, "running\n");
    else
        snprintf(to, size, "%ld 0x1 0x2\n", seen->place == THREAD_CALLS ? seen->call : (long)SYS_ppoll);
}

bool model_text_read_at(int directory, const char *path, char *text, size_t size)
{
    *text = 0;
    if (directory == AT_FDCWD) /* /proc/self/stat */
        return false;
    unsigned number = file_of_thread(directory, path);
    schedule_step();
    struct thread_seen seen = schedule_look(number / FILES_OF_THREAD);
    if (!is_process(seen.process))
        return false;
    (number % FILES_OF_THREAD == FILE_STAT ? describe_stat : describe_syscall)(&seen, text, size);
    trace_line(HERE, "reads of %s's thread: %s", schedule_process_at(seen.process)->name, text);
    schedule_saw(seen.place);
    return true;
}

/* --- ipc/peer_threads_runs.c as a whole: the kernel's clocks are not modelled, only the answers that they may give */

bool model_elsewhere_runs(pid_t pid, long call)
{
    unsigned process = (unsigned)(pid - HOST_FIRST_PID), running = 0, within = 0;
    schedule_step();
    for (unsigned i = 0; i < schedule_threads(); i++) {
        struct thread_seen seen = schedule_look(i);
        running += seen.process == process && seen.place == THREAD_RUNS;
        within += seen.process == process && seen.place == THREAD_CALLS && seen.call == call;
    }
    bool seen = is_process(process) && running == 1 && !within;
    trace_line(HERE, "one thread is %sseen in user mode, and no other runs", seen ? "" : "not ");
    schedule_saw(seen);
    return seen;
}
