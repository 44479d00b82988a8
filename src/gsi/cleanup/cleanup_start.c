#include "gsi/cleanup/cleanup_start.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/mapping.h"
#include "gsi/cleanup/cleanup_layout.h"
#include "gsi/cleanup/cleanup_process.h"

enum { STACK = 64 << 10, LIFTED = 16 /* descriptors from here on don't belong to the cleanup process */ };

/* All that the new process needs is made before: it shares the program's memory until it becomes another program. */
struct start {
    char loader[PATH_MAX], library[PATH_MAX];
    char *arguments[3], *environment[4];
    int descriptors[CLEANUP_DESCRIPTORS]; /* in the order of their future numbers */
    uint8_t *stacks;                      /* two of them, of STACK bytes each */
    int error;
};

/* --- obstacles */

/* Returns true if this code is in the library's file, and not in a program that is linked with it statically. */
static bool can_be_run(void)
{
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
    return (uintptr_t)&__ehdr_start + __ehdr_start.e_entry == (uintptr_t)cleanup_entry;
}

/* The path of the file that is mapped at this address. */
static bool find_file(uintptr_t address, char path[PATH_MAX])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t first, end;
        found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %4095[^\n]", &first, &end, path) == 3 &&
                address >= first && address < end;
    }
    if (maps)
        fclose(maps);
    return found && !access(path, R_OK);
}

/* Finds the loader's file. If the kernel has started the loader itself (`ld.so PROGRAM`), AT_BASE is 0. */
static bool find_loader(char path[PATH_MAX])
{
    uintptr_t base = getauxval(AT_BASE);
    if (base)
        return find_file(base, path);
    snprintf(path, PATH_MAX, "/proc/self/exe");
    return true;
}

/* The number in the line of /proc/PID/status that begins with this name; -1: there is no such line. */
static long read_status(const char *path, const char *name)
{
    FILE *status = fopen(path, "re");
    char line[256];
    long value = -1;
    while (status && value < 0 && fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name)))
            value = strtol(line + strlen(name), NULL, 10);
    if (status)
        fclose(status);
    return value;
}

/* Returns true if the program has set a filter by itself, which, unlike its container's, may kill a process that starts
 * programs. */
static bool is_sandboxed(void)
{
    static const char self[] = "/proc/thread-self/status", first[] = "/proc/1/status";
    static const char count[] = "Seccomp_filters:", mode[] = "Seccomp:";
    if (read_status(self, mode) <= 0)
        return false;
    long own = read_status(self, count), others = read_status(first, count);
    return own < 0 ? read_status(first, mode) <= 0 : own > others;
}

/* Returns true if the next child would be the first process of a new namespace, which ends with that child. */
static bool has_namespace_waiting(void)
{
    char own[64] = "", next[64] = "";
    return readlink("/proc/self/ns/pid", own, sizeof own - 1) > 0 &&
           readlink("/proc/self/ns/pid_for_children", next, sizeof next - 1) > 0 && strcmp(own, next) != 0;
}

static int find_obstacle(struct start *start, const char **why)
{
    *why = "the library is inside the program";
    if (!can_be_run())
        return ENOEXEC;
    *why = "process 1 of a container takes all others along when it ends (docker run --init)";
    if (getpid() == 1)
        return EPERM;
    *why = "the program's next child begins a namespace of process numbers";
    if (has_namespace_waiting())
        return EBUSY;
    *why = "the program restricts its system calls (seccomp)";
    if (is_sandboxed())
        return EACCES;
    *why = "the files of the library and of ld.so, as /proc/self/maps has them";
    return find_loader(start->loader) && find_file((uintptr_t)cleanup_entry, start->library) ? 0 : ENOENT;
}

/* --- the start: two steps, so that the process is not the program's child */

/* Moves the descriptors away from their future numbers, and then gives them these. The pidfd may be missing. */
static bool place(const struct start *start)
{
    int lifted[CLEANUP_DESCRIPTORS];
    for (int i = 0; i < CLEANUP_DESCRIPTORS; i++)
        lifted[i] = fcntl(start->descriptors[i], F_DUPFD_CLOEXEC, LIFTED);
    for (int i = 0; i < CLEANUP_DESCRIPTORS; i++)
        if (dup2(lifted[i], i) < 0 && i != CLEANUP_PROGRAM_AT)
            return false;
    if (lifted[CLEANUP_PROGRAM_AT] < 0)
        close(CLEANUP_PROGRAM_AT);
    return true;
}

static int become_process(void *argument)
{
    struct start *start = argument;
    if (place(start))
        execve(start->loader, start->arguments, start->environment);
    start->error = errno;
    _exit(1);
}

/* CLONE_VFORK: returns when the new process has become another program, or ended. No signal reports its end. */
static int clone_sharing(int (*function)(void *), struct start *start, uint8_t *stack)
{
    return clone(function, stack + STACK, CLONE_VM | CLONE_VFORK, start);
}

static int start_process(void *argument)
{
    struct start *start = argument;
    if (clone_sharing(become_process, start, start->stacks + STACK) < 0)
        start->error = errno;
    _exit(0);
}

/* No handler of the program runs in a process that shares its memory. */
static int run_steps(struct start *start)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = clone_sharing(start_process, start, start->stacks);
    if (child < 0)
        start->error = errno;
    else
        waitpid(child, NULL, __WALL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return start->error;
}

static int with_stacks(struct start *start)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
    void *stacks = mapping_make((size_t)2 * STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stacks == MAP_FAILED)
        return errno;
    start->stacks = stacks;
    int error = run_steps(start);
    munmap(stacks, (size_t)2 * STACK);
    return error;
}

__attribute__((weak)) void softverbs_sim_round(unsigned found); /* abi/simulated.c */

/* The library needs the C library that the program found, and in a simulated run that library and its memory. */
static void copy_environment(char **to)
{
    static const char *const names[] = {"LD_LIBRARY_PATH", "LD_PRELOAD", "SOFTVERBS_SIM"};
    size_t count = softverbs_sim_round ? sizeof names / sizeof *names : 1;
    for (size_t i = 0; i < count; i++) {
        const char *value = secure_getenv(names[i]);
        if (value && asprintf(to, "%s=%s", names[i], value) >= 0)
            to++;
    }
    *to = NULL;
}

static void free_environment(char **environment)
{
    for (; *environment; environment++)
        free(*environment);
}

static int start_with(struct start *start, int memory, int end)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), program = (int)syscall(SYS_pidfd_open, getpid(), 0);
    char name[] = "softverbs-cleanup";
    start->arguments[0] = name;
    start->arguments[1] = start->library;
    copy_environment(start->environment);
    for (int i = 0; i < CLEANUP_MEMORY_AT; i++)
        start->descriptors[i] = nothing;
    start->descriptors[CLEANUP_MEMORY_AT] = memory;
    start->descriptors[CLEANUP_END_AT] = end;
    start->descriptors[CLEANUP_PROGRAM_AT] = program;
    int error = nothing < 0 ? errno : with_stacks(start);
    free_environment(start->environment);
    if (nothing >= 0)
        close(nothing);
    if (program >= 0)
        close(program);
    return error;
}

static int start_with_pipe(struct start *start, int memory, int *held)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    int error = start_with(start, memory, ends[0]);
    close(ends[0]);
    if (error) {
        close(ends[1]);
        return error;
    }
    *held = descriptor_raise(ends[1]);
    return 0;
}

int cleanup_start(int memory, int *held, const char **why)
{
    struct start *start = calloc(1, sizeof *start);
    int kept = errno, error = start ? find_obstacle(start, why) : ENOMEM;
    if (!error) {
        *why = "the start of a process";
        error = start_with_pipe(start, memory, held);
    }
    free(start);
    errno = kept;
    return error;
}
