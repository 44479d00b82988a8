/* libsoftverbs-test.so: what <softverbs.h> finds under softverbs. The verbs of this process know nothing of it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interface/softverbs.h"

extern const struct softverbs_interface softverbs_interface_1;

enum { ANSWER = 512, NUMBER = 24 };

struct question {
    const char *verb;
    long pid;
    const char *text;
    unsigned long long times;
    int milliseconds;
};

/* Finds softverbs-ask, beside this library. */
static bool find_program(char path[PATH_MAX])
{
    Dl_info here;
    if (!dladdr(&softverbs_interface_1, &here) || !here.dli_fname)
        return false;
    const char *slash = strrchr(here.dli_fname, '/');
    int length = slash ? (int)(slash - here.dli_fname) : 0;
    return slash && snprintf(path, PATH_MAX, "%.*s/softverbs-ask", length, here.dli_fname) < PATH_MAX;
}

/* The environment without the libraries that `run` preloads, which are for programs that use verbs. */
static char **make_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **made = calloc(count + 1, sizeof *made);
    for (size_t i = 0; made && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11))
            made[kept++] = environ[i];
    return made;
}

static int spawn(const struct question *question, int out, pid_t *child)
{
    char path[PATH_MAX], pid[NUMBER], times[NUMBER], milliseconds[NUMBER];
    char *arguments[] = {path, (char *)question->verb, pid, (char *)question->text, times, milliseconds, NULL};
    posix_spawn_file_actions_t actions;
    if (!find_program(path))
        return ENOSYS;
    snprintf(pid, sizeof pid, "%ld", question->pid ? question->pid : (long)getpid());
    snprintf(times, sizeof times, "%llu", question->times);
    snprintf(milliseconds, sizeof milliseconds, "%d", question->milliseconds);
    char **environment = make_environment();
    int error = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (!error)
            error = posix_spawn(child, path, &actions, NULL, arguments, environment);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(environment);
    return error;
}

/* Reads the answer to its end. */
static void read_answer(int from, char answer[ANSWER])
{
    size_t used = 0;
    ssize_t some;
    while ((some = read(from, answer + used, ANSWER - 1 - used)) > 0 || (some < 0 && errno == EINTR))
        used += some > 0 ? (size_t)some : 0;
    answer[used] = 0;
}

static int exchange(const struct question *question, char answer[ANSWER])
{
    int ends[2], error;
    pid_t child;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    error = spawn(question, ends[1], &child);
    close(ends[1]);
    if (!error) {
        read_answer(ends[0], answer);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) { /* the program may have reaped it */
        }
    }
    close(ends[0]);
    return error;
}

/* errno stays as it was, and a cancelled thread ends only afterwards. */
static int ask(const struct question *question, unsigned long long *times, char *why, size_t size)
{
    char answer[ANSWER] = "";
    unsigned long long seen = 0;
    int before, told, used = 0, kept = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    int error = exchange(question, answer);
    if (!error)
        error = sscanf(answer, "%d %llu %n", &told, &seen, &used) == 2 && used ? told : EIO;
    pthread_setcancelstate(before, NULL);
    if (times && !error)
        *times = seen;
    if (why && size)
        snprintf(why, size, "%s", answer + used);
    errno = kept;
    return error;
}

static int inject(long pid, const char *rules, char *why, size_t size)
{
    return ask(&(struct question){"inject", pid, rules, 0, 0}, NULL, why, size);
}

static int clear(long pid)
{
    return ask(&(struct question){"clear", pid, "", 0, 0}, NULL, NULL, 0);
}

static int watch(long pid, const char *event)
{
    return ask(&(struct question){"watch", pid, event, 0, 0}, NULL, NULL, 0);
}

static int count(long pid, const char *event, unsigned long long *times)
{
    return ask(&(struct question){"count", pid, event, 0, 0}, times, NULL, 0);
}

static int wait_for(long pid, const char *event, unsigned long long times, int milliseconds)
{
    return ask(&(struct question){"wait", pid, event, times, milliseconds}, NULL, NULL, 0);
}

__attribute__((visibility("default"))) const struct softverbs_interface softverbs_interface_1 = {
    .inject = inject, .clear = clear, .watch = watch, .count = count, .wait = wait_for};
