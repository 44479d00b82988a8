#include "counter.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef F_ADD_SEALS /* of Linux, which musl has since 1.1.20 */
#define F_ADD_SEALS 1033
#endif

enum { STACK = 32 << 10, VARIABLES = 64, NUMBER = 32, SEALS = 0xf, DEVICE_MAX = 64 };

static const char port[] = "/ports/1/";
static char program[PLACE_MAX]; /* empty: no program */

/* The child shares the program's memory until it becomes another program, so all that it needs is made before. */
struct question {
    char device[DEVICE_MAX], *arguments[4], *environment[VARIABLES + 1];
    int answer; /* the end that the other program writes to */
    uint8_t *stacks;
};

void counter_find_program(void)
{
    static const char name[] = "softverbs-counter";
    Dl_info here;
    const char *slash = dladdr(program, &here) && here.dli_fname ? strrchr(here.dli_fname, '/') : NULL;
    size_t length = slash ? (size_t)(slash + 1 - here.dli_fname) : 0;
    if (!slash || length + sizeof name > sizeof program)
        return;
    memcpy(program, here.dli_fname, length);
    memcpy(program + length, name, sizeof name);
}

/* --- the other program */

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Keeps the variables that name the place where processes meet and the places of libraries; omits LD_PRELOAD. */
static void choose_environment(char **to)
{
    size_t kept = 0;
    for (char **each = environ; each && *each && kept < VARIABLES; each++)
        if (begins(*each, "SOFTVERBS_") || begins(*each, "XDG_RUNTIME_DIR=") || begins(*each, "LD_LIBRARY_PATH="))
            to[kept++] = *each;
    to[kept] = NULL;
}

/* Becomes softverbs-counter, in which no descriptor of the program stays open. */
static int become_program(void *argument)
{
    const struct question *question = argument;
    int nothing = open("/dev/null", O_RDWR);
    if (dup2(nothing, 0) == 0 && dup2(question->answer, 1) == 1 && dup2(nothing, 2) == 2) {
#ifdef SYS_close_range
        syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
        execve(program, question->arguments, question->environment);
    }
    _exit(1);
}

/* CLONE_VFORK: returns when the other has become another program, or ended. */
static int clone_sharing(int (*function)(void *), void *argument, uint8_t *stack)
{
    return clone(function, stack + STACK, CLONE_VM | CLONE_VFORK, argument);
}

/* A process between, so that the other program is no child of this one: SIGCHLD and wait would show it. */
static int start_program(void *argument)
{
    const struct question *question = argument;
    clone_sharing(become_program, argument, question->stacks + STACK);
    _exit(0);
}

/* No handler of the program runs in a child that shares its memory. */
static void start(struct question *question)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all,
                &before); /* of this thread; pthread_sigmask was another library's before glibc 2.32 */
    pid_t child = clone_sharing(start_program, question, question->stacks);
    while (child > 0 && waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
        ;
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Reads the answer to its end: a number and a newline. */
static size_t read_answer(int from, char answer[NUMBER])
{
    size_t used = 0;
    ssize_t some = 1;
    while (used < NUMBER && some && (some > 0 || errno == EINTR)) {
        some = read(from, answer + used, NUMBER - used);
        used += some > 0 ? (size_t)some : 0;
    }
    return used;
}

/* The length of the answer; 0: no answer came. */
static size_t ask_with(struct question *question, char answer[NUMBER])
{
    int ends[2];
    if (!*program || pipe2(ends, O_CLOEXEC))
        return 0;
    question->answer = ends[1];
    start(question);
    close(ends[1]);
    size_t length = read_answer(ends[0], answer);
    close(ends[0]);
    return length;
}

static size_t ask(struct question *question, char answer[NUMBER])
{
    const size_t room = (size_t)2 * STACK;
    void *stacks = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return 0;
    question->stacks = stacks;
    choose_environment(question->environment);
    size_t length = ask_with(question, answer);
    munmap(stacks, room);
    return length;
}

/* --- the file */

/* The part after the first ports/1/ of the path: "counters/NAME" or "hw_counters/NAME"; NULL: it is another file. */
static const char *find_counter(const char *place)
{
    const char *found = strstr(place, port), *name = found ? found + sizeof port - 1 : NULL;
    if (!name || (!begins(name, "counters/") && !begins(name, "hw_counters/")))
        return NULL;
    const char *slash = strchr(name, '/');
    return slash[1] && !strchr(slash + 1, '/') ? name : NULL;
}

bool counter_is_named(const char *place)
{
    return find_counter(place) != NULL;
}

/* Copies the device's name, the part before ports/1/. False: it is too long. */
static bool copy_device(const char *place, const char *name, char device[DEVICE_MAX])
{
    const char *end = name - (sizeof port - 1), *first = end;
    while (first > place && first[-1] != '/')
        first--;
    size_t length = (size_t)(end - first);
    if (length >= DEVICE_MAX)
        return false;
    memcpy(device, first, length);
    device[length] = 0;
    return true;
}

/* A descriptor, or -1. */
static int make_file(const char *text, size_t length)
{
    int fd = (int)syscall(SYS_memfd_create, "counter", 3u /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
    if (fd < 0)
        return -1;
    if (write(fd, text, length) != (ssize_t)length || fchmod(fd, 0444) || fcntl(fd, F_ADD_SEALS, SEALS)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Uses no snprintf, which is not async-signal-safe. */
void counter_descriptor_path(char *path, int fd)
{
    static const char front[] = "/proc/self/fd/";
    char digits[12], *first = digits + sizeof digits - 1;
    *first = 0;
    do
        *--first = (char)('0' + fd % 10);
    while (fd /= 10);
    memcpy(path, front, sizeof front - 1);
    memcpy(path + sizeof front - 1, first, strlen(first) + 1);
}

static int make(char *place, const char *name)
{
    char answer[NUMBER];
    struct question question = {.arguments = {program, question.device, (char *)name}};
    size_t length = copy_device(place, name, question.device) ? ask(&question, answer) : 0;
    int fd = length ? make_file(answer, length) : -1;
    if (fd < 0)
        strcpy(place, "/sys/class/net/lo/duplex"); /* as tools/sysfs.c does for a place without a GID */
    else
        counter_descriptor_path(place, fd);
    return fd;
}

/* Cancellation is off meanwhile: a cancelled thread would leave descriptors open. */
static int make_uncancelled(char *place, const char *name)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    int fd = make(place, name);
    pthread_setcancelstate(before, NULL);
    return fd;
}

/* Asks no process about a counter that is not in the tree, or never changes (lifespan). */
int counter_make(char *place)
{
    const char *name = find_counter(place);
    int error = errno;
    bool is_counter = name && !strstr(name, "/lifespan") && !access(place, R_OK);
    int fd = is_counter ? make_uncancelled(place, name) : -1;
    errno = error;
    return fd;
}

void counter_close(int held)
{
    int error = errno;
    if (held >= 0)
        close(held);
    errno = error;
}
