#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/text/text.h"
#include "checks.h"
#include "ipc/node.h"
#include "link/copy/cma.h"
#include "packages.h"

enum verdict check_processors(char *say, size_t size)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
    if (count > 1)
        return SAY_AND(VERDICT_OK, say, size, "%d processors may be used.", count);
    return SAY_AND(VERDICT_WARNING, say, size,
                   "Only one processor may be used: a program that polls takes it from the peer that it waits for, so "
                   "latency depends on the scheduler. Allow more (taskset, the container's limits).");
}

enum verdict check_descriptors(char *say, size_t size)
{
    enum { ENOUGH = 1024 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= ENOUGH)
        return SAY_AND(VERDICT_OK, say, size, "The limit of open files is high enough.");
    return SAY_AND(VERDICT_WARNING, say, size,
                   "Only %" PRIu64 " files may be open at once; completion channels and connections to other processes "
                   "take some each. Raise it: ulimit -n %d.",
                   (uint64_t)limit.rlim_cur, ENOUGH);
}

/* Rings between processes are memory that the sender can't take away from under the receiver. */
enum verdict check_sealed_memory(char *say, size_t size)
{
    int fd = memfd_create("doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool sealed = fd >= 0 && !ftruncate(fd, 4096) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (sealed)
        snprintf(say, size, "memfd_create gives memory that can be sealed.");
    else
        snprintf(say, size,
                 "memfd_create with sealing is refused (%s), so processes can't share rings. A kernel from 3.17 on "
                 "has it; a seccomp filter may forbid it.",
                 strerror(error));
    return sealed ? VERDICT_OK : VERDICT_PROBLEM;
}

/* Writes the parent of the directory where processes meet, which may not be there yet. */
static bool find_parent(char *to)
{
    char *slash = node_directory(to) ? strrchr(to, '/') : NULL;
    if (slash)
        slash[slash == to] = 0;
    return slash;
}

enum verdict check_shared_memory(char *say, size_t size)
{
    enum { MEBIBYTE = 1 << 20, LITTLE = 16 };
    char parent[NODE_DIRECTORY_MAX + 1];
    struct statvfs status;
    if (!find_parent(parent) || statvfs(parent, &status))
        return SAY_AND(VERDICT_WARNING, say, size, "The directory above $SOFTVERBS_DIR can't be looked at: %s.",
                       strerror(errno));
    uint64_t free = (uint64_t)status.f_bavail * status.f_frsize / MEBIBYTE;
    return SAY_AND(free < LITTLE ? VERDICT_WARNING : VERDICT_OK, say, size,
                   free < LITTLE ? "%s has only %" PRIu64
                                   " MiB left; the table of processes needs a few. Free some, or "
                                   "choose another place with SOFTVERBS_DIR."
                                 : "%s has %" PRIu64 " MiB left; a few are needed. (noexec there does not matter.)",
                   parent, free);
}

/* The number after `prefix` at the start of a line of the file, or -1. */
static long read_number(const char *path, const char *prefix)
{
    char line[256];
    long number = -1;
    FILE *file = fopen(path, "re");
    while (file && number < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, prefix, strlen(prefix)))
            number = strtol(line + strlen(prefix), NULL, 10);
    if (file)
        fclose(file);
    return number;
}

/* Reads the parent's memory in a child, which has no more rights over it than any process of the user: 0 or errno. */
static int read_parent(void)
{
    static const char secret[] = "what the parent holds";
    char copy[sizeof secret] = "";
    struct iovec local = {copy, sizeof copy}, remote = {(void *)(uintptr_t)secret, sizeof secret};
    ssize_t got = process_vm_readv(getppid(), &local, 1, &remote, 1, 0);
    return got == (ssize_t)sizeof copy && !memcmp(copy, secret, sizeof copy) ? 0 : got < 0 ? errno : EIO;
}

/* Tries whether a process may read another's memory, permitted as a program permits its peers: 0 or errno. */
static int try_reading(void)
{
    int status = 0;
    bool permitted = cma_permit();
    pid_t child = fork();
    int error = child < 0 ? errno : 0;
    if (!child)
        _exit(read_parent());
    while (!error && waitpid(child, &status, 0) != child)
        error = errno == EINTR ? 0 : errno;
    if (permitted)
        cma_withdraw();
    return error ? error : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

enum verdict check_reading(char *say, size_t size)
{
    int error = try_reading();
    if (!error)
        return SAY_AND(VERDICT_OK, say, size,
                       "Processes of this user may read one another's memory (process_vm_readv), so large messages are "
                       "copied once, and READs and WRITEs need no processor on the other side.");
    const char *cure = "A container's seccomp filter may be the cause: allow process_vm_readv and process_vm_writev.";
    if (read_number("/proc/sys/kernel/yama/ptrace_scope", "") > 0)
        cure = "Yama forbids it (kernel.yama.ptrace_scope). With scope 1 programs permit it to their peers, unless "
               "SOFTVERBS_NO_PULL is set, and nothing is to be done; scopes 2 and 3 protect the whole system, which is "
               "worth more than the second copy.";
    else if (read_number("/proc/self/status", "Seccomp:") <= 0)
        cure = "The cause is not known.";
    return SAY_AND(
        VERDICT_WARNING, say, size,
        "process_vm_readv between processes of this user is refused (%s), so large messages are copied twice, "
        "through shared memory, and READs and WRITEs wait for the other side's processor. %s",
        strerror(error), cure);
}

/* As mlx5/queues/registers.c asks for it: 0 or errno. */
static int try_userfaultfd(void)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    int descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (descriptor < 0)
        return errno;
    int error = ioctl(descriptor, UFFDIO_API, &api) ? errno : 0;
    close(descriptor);
    return error;
}

enum verdict check_doorbells(char *say, size_t size)
{
    int error = try_userfaultfd();
    if (!error)
        return SAY_AND(
            VERDICT_OK, say, size,
            "userfaultfd is permitted, so programs with queues in memory (mlx5=queues) use no processor while "
            "they are idle.");
    return SAY_AND(
        VERDICT_WARNING, say, size,
        "userfaultfd is refused (%s), so doorbells of queues in memory (mlx5=queues) are noticed by SIGSEGV. "
        "If a thread of the program blocks that signal, the library looks at the queues all the time and uses "
        "a processor. Nothing else needs userfaultfd; a container's seccomp filter may forbid it.",
        strerror(error));
}

/* The line that changes a setting which forbids user namespaces to others than root; NULL: no setting forbids them. */
static const char *find_obstacle(void)
{
    static const struct {
        const char *file;
        long forbids;
        const char *line;
    } obstacles[] = {
        {"/proc/sys/user/max_user_namespaces", 0, "user.max_user_namespaces=10000"},
        {"/proc/sys/kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone=1"},
        {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1, "kernel.apparmor_restrict_unprivileged_userns=0"},
    };
    for (size_t i = 0; i < sizeof obstacles / sizeof *obstacles; i++)
        if (!access(obstacles[i].file, R_OK) && read_number(obstacles[i].file, "") == obstacles[i].forbids)
            return obstacles[i].line;
    return NULL;
}

enum verdict check_namespaces(char *say, size_t size)
{
    const char *line = find_obstacle();
    if (line)
        snprintf(say, size,
                 "User namespaces are forbidden here, and \"softverbs lab\" needs root; nothing else needs them. "
                 "\"sysctl %s\" as root allows them.",
                 line);
    else
        snprintf(say, size, "User namespaces are not forbidden here, so \"softverbs lab\" needs no root.");
    return VERDICT_OK;
}

static int is_name(const struct dirent *entry)
{
    return *entry->d_name != '.';
}

enum verdict check_devices(char *say, size_t size)
{
    struct dirent **list;
    int count = scandir("/sys/class/infiniband", &list, is_name, alphasort);
    if (setting_environment(SETTING_PATHS))
        snprintf(say, size, "Not looked for: this runs under \"softverbs run\", which hides them.");
    else if (count > 0)
        snprintf(say, size, "The kernel has %d, %s first; under \"softverbs run\" programs don't see them.", count,
                 list[0]->d_name);
    else
        snprintf(say, size, "The kernel has no RDMA device that would have to be hidden.");
    for (int i = 0; i < count; i++)
        free(list[i]);
    if (count >= 0)
        free(list);
    return VERDICT_OK;
}

enum verdict check_packages(char *say, size_t size)
{
    packages_lacking(packages_os_release, packages_are_here, say, size);
    return VERDICT_OK;
}
