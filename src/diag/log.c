#include "diag/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/uncancelled.h"
#include "diag/clean.h"

int log_threshold;
static int log_fd = STDERR_FILENO;
static const char *const level_names[] = {"none", "error", "warn", "info", "debug"};

static void read_environment(void)
{
    const char *level = secure_getenv("SOFTVERBS_LOG"), *file = secure_getenv("SOFTVERBS_LOG_FILE");
    for (int i = LOG_NONE; level && i <= LOG_DEBUG; i++)
        if (!strcmp(level, level_names[i]))
            log_threshold = i;
    if (log_threshold == LOG_NONE || !file || !*file)
        return;
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0)
        log_fd = fd;
    else
        log_write(LOG_ERROR, "SOFTVERBS_LOG_FILE=%s can't be opened (%s); logging to stderr", file, strerror(errno));
}

void log_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}

static void write_line(enum log_level level, const char *suffix, const char *format, va_list arguments)
{
    char line[512];
    int saved = errno, length = snprintf(line, sizeof line, "softverbs: %s: ", level_names[level]);
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    if (length < (int)sizeof line)
        length += snprintf(line + length, sizeof line - (size_t)length, "%s", suffix);
    if (length > (int)sizeof line - 1)
        length = sizeof line - 1;
    clean_text(line);
    line[length++] = '\n';
    int before = uncancelled_begin();
    ssize_t written = write(log_fd, line, (size_t)length);
    uncancelled_end(before);
    (void)written; /* a full disk or closed stderr must not disturb the program */
    errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!log_wanted(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line(level, "", format, arguments);
    va_end(arguments);
}

/* How many lines of a reason there were in this second. Strangers can cause as many as they like. */
static struct quota {
    atomic_uint second, lines;
} quotas[1024];

/* May one more be written? *omitted: how many were not in the second before it. Several threads may count a line too
 * many or too few when a second begins. */
static bool is_admitted(enum reason reason, unsigned *omitted)
{
    struct quota *quota = &quotas[(unsigned)reason % (sizeof quotas / sizeof *quotas)];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    unsigned second = atomic_load(&quota->second), lines = 0;
    if (second != (unsigned)now.tv_sec && atomic_compare_exchange_strong(&quota->second, &second, (unsigned)now.tv_sec))
        lines = atomic_exchange(&quota->lines, 0);
    *omitted = lines > LOG_LINES_A_SECOND ? lines - LOG_LINES_A_SECOND : 0;
    return atomic_fetch_add(&quota->lines, 1) < LOG_LINES_A_SECOND;
}

void log_reason(enum log_level level, enum reason reason, const char *format, ...)
{
    unsigned omitted;
    if (!log_wanted(level) || !is_admitted(reason, &omitted))
        return;
    if (omitted)
        log_write(level, "%u more lines of reason %u were left out", omitted, reason);
    char suffix[256];
    snprintf(suffix, sizeof suffix, ": reason %u: %s", reason, reason_sentence(reason));
    va_list arguments;
    va_start(arguments, format);
    write_line(level, suffix, format, arguments);
    va_end(arguments);
}
