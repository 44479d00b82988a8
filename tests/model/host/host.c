#include "host.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <linux/membarrier.h>

#include "schedule.h"
#include "seam.h"
#include "trace.h"

struct host host;
unsigned host_queue_limit, host_send_limit;
static unsigned refused_calls, refused_processes;
static bool has_membarrier, is_direct;
static struct host then;
static uint64_t hash;
static bool changed;

void host_begin(void)
{
    memset(&host, 0, sizeof host);
    refused_calls = refused_processes = 0;
    has_membarrier = true;
    is_direct = false;
    host_protection_waits(true);
    host_faults(UINT32_MAX);
    host_queue_limit = host_send_limit = HOST_QUEUE;
    changed = true;
}

void host_snapshot(void)
{
    then = host;
}

void host_restore(void)
{
    host = then;
    changed = true;
}

static uint64_t mix_bytes(uint64_t before, const void *from, size_t size)
{
    const uint8_t *bytes = from;
    for (size_t i = 0; i < size; i += 8) {
        before = (before ^ memory_load(bytes + i, size - i < 8 ? (unsigned)(size - i) : 8)) * 0x9e3779b97f4a7c15u;
        before ^= before >> 29;
    }
    return before;
}

static uint64_t mix_sockets(uint64_t before)
{
    for (unsigned i = 0; i < HOST_SOCKETS; i++) {
        const struct host_socket *socket = &host.sockets[i];
        before = mix_bytes(before, socket, offsetof(struct host_socket, queue));
        for (unsigned place = 0; place < socket->queued; place++)
            before = mix_bytes(before, &socket->queue[place],
                               offsetof(struct host_message, bytes) + socket->queue[place].length);
    }
    return before;
}

static uint64_t mix_names(uint64_t before)
{
    for (unsigned i = 0; i < HOST_NAMES; i++)
        if (host.names[i].kind != NAME_NONE)
            before = mix_bytes(before + i, &host.names[i], 2 + strlen(host.names[i].path));
    return before;
}

uint64_t host_hash(void)
{
    const size_t rest = offsetof(struct host, fds);
    if (changed)
        hash = mix_bytes(mix_names(mix_sockets(1)), (const uint8_t *)&host + rest, sizeof host - rest);
    changed = false;
    return hash;
}

void host_refuse(unsigned refusals, unsigned who)
{
    refused_calls = refusals;
    refused_processes = who;
}

void host_membarrier(bool has)
{
    has_membarrier = has;
}

void host_direct(bool direct)
{
    is_direct = direct;
}

void host_limit(unsigned queue, unsigned send_buffer)
{
    host_queue_limit = queue;
    host_send_limit = send_buffer;
}

unsigned host_process(void)
{
    return schedule_process_now()->number;
}

struct host *host_change(void)
{
    changed = true;
    return &host;
}

int host_error(int error)
{
    errno = error;
    schedule_saw((unsigned)error);
    return -1;
}

void host_unknown(const char *call)
{
    schedule_violation("the model does not know this use of %s", call);
}

/* The schedule decides; the first answer is that nothing is refused. */
bool host_refuses(enum host_refusal kind)
{
    if (!(refused_calls & kind) || !(refused_processes >> host_process() & 1))
        return false;
    bool refused = schedule_refuse(2);
    changed = true; /* the question needed the hash, and the call is not through */
    return refused;
}

/* --- descriptors */

int host_open_fd(enum fd_kind kind, unsigned number)
{
    struct host_fd *fds = host_change()->fds[host_process()];
    for (unsigned i = 0; i < HOST_FDS; i++)
        if (fds[i].kind == FD_NONE) {
            fds[i] = (struct host_fd){(uint8_t)kind, (uint8_t)number};
            return (int)i + HOST_FIRST_FD;
        }
    return host_error(EMFILE);
}

struct host_fd *host_fd(int fd, enum fd_kind kind)
{
    unsigned i = (unsigned)(fd - HOST_FIRST_FD);
    struct host_fd *found = i < HOST_FDS ? &host.fds[host_process()][i] : NULL;
    if (found && found->kind != FD_NONE && (kind == FD_NONE || found->kind == kind))
        return found;
    errno = EBADF;
    return NULL;
}

int host_duplicate(const struct host_fd *fd)
{
    switch (fd->kind) {
    case FD_MEMFD:
        host_memfd_hold(fd->number);
        break;
    case FD_EVENTFD:
        host.eventfds[fd->number].references++;
        break;
    case FD_SOCKET:
        host.sockets[fd->number].references++;
        break;
    default:
        host_unknown("dup");
    }
    return host_open_fd(fd->kind, fd->number);
}

/* POSIX: closing any descriptor of a file gives back all locks of the process on it. */
static void release_fd(unsigned process, unsigned i)
{
    struct host_fd fd = host_change()->fds[process][i];
    host.fds[process][i] = (struct host_fd){FD_NONE, 0};
    host_forget_interest(process, i);
    switch (fd.kind) {
    case FD_SOCKET:
        host_socket_drop(fd.number);
        break;
    case FD_EPOLL:
        if (!--host.epolls[fd.number].references)
            host.epolls[fd.number] = (struct host_epoll){0};
        break;
    case FD_EVENTFD:
        if (!--host.eventfds[fd.number].references)
            host.eventfds[fd.number] = (struct host_counter){0};
        break;
    case FD_TIMER:
        if (!--host.timers[fd.number].references)
            host.timers[fd.number] = (struct host_timer){0};
        break;
    case FD_MEMFD:
        host_memfd_drop(fd.number);
        break;
    case FD_FILE:
        host_unlock(fd.number, process, 0, UINT32_MAX);
        host_file_drop(fd.number);
        break;
    }
}

int model_close(int descriptor)
{
    struct host_fd *fd = host_fd(descriptor, FD_NONE);
    if (!fd)
        schedule_violation("closes descriptor %d, which is not open", descriptor);
    if (fd->kind == FD_SOCKET || fd->kind == FD_FILE) {
        schedule_step();
        schedule_flush();
        trace_line(__builtin_return_address(0), "close(%d)", descriptor);
    }
    release_fd(host_process(), (unsigned)(descriptor - HOST_FIRST_FD));
    return 0;
}

/* The kernel handles robust futexes before it releases record locks. */
void host_process_ends(unsigned process)
{
    host_robust_list_dies(process);
    for (unsigned i = 0; i < HOST_FDS; i++)
        if (host.fds[process][i].kind != FD_NONE)
            release_fd(process, i);
    host_directories_end(process);
}

/* --- memory, time and the rest */

void *model_calloc(size_t count, size_t size)
{
    void *memory = memory_allocate(host_process(), count * size);
    if (!memory)
        schedule_violation("the model's heap of %s is full", schedule_process_now()->name);
    return memory;
}

void model_free(void *memory)
{
    if (memory)
        memory_free(memory);
}

static bool never(const void *nothing)
{
    return false;
}

/* A store buffer does not hold anything back for as long as a millisecond. */
int model_nanosleep(const struct timespec *time, struct timespec *rest)
{
    nanos span = (nanos)time->tv_sec * NANOS_SECOND + (nanos)time->tv_nsec;
    if (!schedule_thread_now())
        return 0;
    trace_line(__builtin_return_address(0), "nanosleep(%llu us)", (unsigned long long)(span / NANOS_MICROSECOND));
    schedule_wait(never, NULL, schedule_clock() + span);
    schedule_flush_all();
    return 0;
}

int model_clock_gettime(clockid_t clock, struct timespec *time)
{
    *time = (struct timespec){.tv_sec = (time_t)(schedule_clock() / NANOS_SECOND),
                              .tv_nsec = (long)(schedule_clock() % NANOS_SECOND)};
    return 0;
}

uid_t model_user(void)
{
    return 0;
}

bool model_user_has_own_number(uid_t user)
{
    return user == model_user();
}

bool model_user_owns_process(uid_t user, pid_t process)
{
    return model_user_has_own_number(user);
}

/* The log of the code under test is not part of any protocol. */
/* No process truncates the model's table. */
struct guard_region;
bool model_guard_region_add(struct guard_region *);
bool model_guard_region_add(struct guard_region *region)
{
    return true;
}

void model_guard_region_remove(struct guard_region *);
void model_guard_region_remove(struct guard_region *region)
{
}

void model_log_reason(unsigned level, unsigned reason, const char *format, ...);
void model_log_reason(unsigned level, unsigned reason, const char *format, ...)
{
}

void model_log_write(unsigned level, const char *format, ...);
void model_log_write(unsigned level, const char *format, ...)
{
}

/* No thread is cancelled. */
int model_setcancelstate(int state, int *before)
{
    *before = PTHREAD_CANCEL_ENABLE;
    return 0;
}

static bool mutex_is_free(const void *mutex)
{
    return !memory_load(mutex, sizeof(int));
}

static void set_mutex(pthread_mutex_t *mutex, int taken)
{
    memory_store(mutex, sizeof taken, (unsigned)taken);
    schedule_saw(0);
}

int model_mutex_lock(pthread_mutex_t *mutex)
{
    schedule_step();
    schedule_flush();
    if (!mutex_is_free(mutex))
        schedule_wait(mutex_is_free, mutex, NANOS_NEVER);
    set_mutex(mutex, 1);
    return 0;
}

int model_mutex_unlock(pthread_mutex_t *mutex)
{
    schedule_step();
    schedule_flush();
    set_mutex(mutex, 0);
    return 0;
}

int model_sched_yield(void)
{
    return 0;
}

pid_t model_getpid(void)
{
    return (pid_t)(HOST_FIRST_PID + host_process());
}

int model_getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    *limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    return 0;
}

ssize_t model_getrandom(void *to, size_t size, unsigned flags)
{
    memset(to, 0x40 + (int)host_process(), size);
    return (ssize_t)size;
}

int model_prctl(int option, ...)
{
    return 0;
}

char *model_getenv(const char *name)
{
    static char yes[] = "1", no[] = "0", by_signal[] = "signal";
    if (!strcmp(name, "SOFTVERBS_DOORBELLS")) /* userfaultfd is not in the model */
        return by_signal;
    return strcmp(name, "SOFTVERBS_DIRECT") ? NULL : is_direct ? yes : no;
}

unsigned long model_getauxval(unsigned long type)
{
    return 0;
}

/* Only membarrier. */
static long membarrier(int command, const void *at)
{
    if (!has_membarrier)
        return host_error(ENOSYS);
    if (command == MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
        return 0;
    schedule_step();
    if (host_refuses(HOST_NO_MEMBARRIER)) {
        trace_line(at, "membarrier: EPERM");
        return host_error(EPERM);
    }
    trace_line(at, "membarrier: all processors have seen all stores");
    schedule_flush_all();
    return 0;
}

long model_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    void *first = number == SYS_set_robust_list ? va_arg(arguments, void *) : NULL;
    int command = number == SYS_membarrier ? va_arg(arguments, int) : 0;
    void *protected = number == SYS_mprotect ? va_arg(arguments, void *) : NULL;
    size_t length = protected ? va_arg(arguments, size_t) : 0;
    int protection = protected ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (protected)
        return host_protect(protected, length, protection, __builtin_return_address(0));
    if (number == SYS_membarrier)
        return membarrier(command, __builtin_return_address(0));
    if (number != SYS_gettid && number != SYS_get_robust_list && number != SYS_set_robust_list)
        host_unknown("syscall");
    return host_robust_list(number, first);
}
