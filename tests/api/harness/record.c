#include "record.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 256 }; /* more than there are functions */

static struct {
    pthread_mutex_t lock;
    const char *path, *names[NAMES];
    unsigned count;
    bool has_begun;
} recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add(const char *name)
{
    for (unsigned i = 0; i < recorder.count; i++)
        if (!strcmp(recorder.names[i], name))
            return;
    if (recorder.count < NAMES)
        recorder.names[recorder.count++] = name;
}

/* The record of the thread's newest call. */
static _Thread_local struct {
    const char *name;
    int before;
} call;

static char disagreement[160];

void record(const char *name)
{
    call.name = name;
    call.before = errno;
    if (!recorder.path)
        return;
    pthread_mutex_lock(&recorder.lock);
    add(name);
    pthread_mutex_unlock(&recorder.lock);
}

static void expect_errno(bool agrees, long long answer)
{
    const int after = errno;
    if (agrees)
        return;
    pthread_mutex_lock(&recorder.lock);
    if (!*disagreement)
        snprintf(disagreement, sizeof disagreement, "%s answers %lld, but errno was %d and is %d", call.name, answer,
                 call.before, after);
    pthread_mutex_unlock(&recorder.lock);
    errno = after;
}

int record_code(int error)
{
    expect_errno(errno == (error ? error : call.before), error);
    return error;
}

int record_poll(int error)
{
    return error == ENOENT ? record_code(0), ENOENT : record_code(error);
}

int record_minus(int result)
{
    expect_errno(result < 0 ? errno > 0 : errno == call.before, result);
    return result;
}

int64_t record_negative(int64_t result)
{
    expect_errno(errno == (result < 0 ? -result : call.before), result);
    return result;
}

void *record_pointer(const void *made)
{
    expect_errno(made ? errno == call.before : errno > 0, made ? 1 : 0);
    return (void *)made;
}

const char *record_disagreement(void)
{
    return *disagreement ? disagreement : NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&recorder.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&recorder.lock);
}

/* Other threads may read the path later, and one that forks needs the lock in its child. */
static void begin_once(void)
{
    recorder.path = getenv("SOFTVERBS_TEST_RECORD");
    pthread_atfork(before_fork, after_fork, after_fork);
}

void record_begin(void)
{
    *disagreement = 0;
    if (!recorder.has_begun)
        begin_once();
    recorder.has_begun = true;
    recorder.count = 0;
}

void record_end(const char *name_of_case)
{
    FILE *file = recorder.path ? fopen(recorder.path, "a") : NULL;
    if (!file)
        return;
    fputs(name_of_case, file);
    for (unsigned i = 0; i < recorder.count; i++)
        fprintf(file, "\t%s", recorder.names[i]);
    fputc('\n', file);
    fclose(file);
}
