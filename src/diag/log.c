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

#include "base/settings.h"
#include "base/uncancelled.h"
#include "diag/clean.h"
#include "diag/output.h"

int log_threshold;
static struct output output = OUTPUT_STDERR;
static bool silenced;      /* the user said none */
static bool terminal_only; /* stderr is looked at before each line: a program may turn it elsewhere */

static void read_level(const char *level)
{
    static const char *const names[] = {"none", "error", "warn", "info", "debug"};
    for (int i = LOG_NONE; i <= LOG_DEBUG; i++)
        if (!strcmp(level, names[i]))
            log_threshold = i;
    silenced = !strcmp(level, "none");
    terminal_only = !strcmp(level, "terminal");
    if (terminal_only)
        log_threshold = LOG_WARN;
}

static void read_environment(void)
{
    const char *level = setting_environment(SETTING_LOG), *file = setting_environment(SETTING_LOG_FILE);
    if (level)
        read_level(level);
    if (log_threshold == LOG_NONE || !file || !*file)
        return;
    struct output named;
    int error = output_open(&named, file, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK);
    if (!error) {
        output = named;
        terminal_only = false;
    } else
        log_write(LOG_ERROR, "SOFTVERBS_LOG_FILE=%s can't be opened (%s); logging to stderr", file, strerror(error));
}

void log_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}

static bool is_wanted(enum log_level level)
{
    int saved = errno;
    bool wanted = log_wanted(level) && (!terminal_only || isatty(STDERR_FILENO));
    errno = saved;
    return wanted;
}

static void write_line(const char *suffix, const char *format, va_list arguments)
{
    char line[640];
    int saved = errno;
    int length = snprintf(line, 64, "softverbs: %.32s[%d] ", program_invocation_short_name, (int)getpid());
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    if (length < (int)sizeof line)
        length += snprintf(line + length, sizeof line - (size_t)length, "%s", suffix);
    if (length > (int)sizeof line - 1)
        length = sizeof line - 1;
    clean_text(line);
    line[length++] = '\n';
    int before = uncancelled_begin();
    output_write(&output, line, (size_t)length); /* a full disk or closed stderr must not disturb the program */
    uncancelled_end(before);
    errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!is_wanted(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line("", format, arguments);
    va_end(arguments);
}

void log_always(const char *format, ...)
{
    if (silenced)
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line("", format, arguments);
    va_end(arguments);
}

/* How many lines of a reason there were in this second, and behind the reasons of other kinds. Strangers can cause as
 * many as they like. */
enum { REASONS_END = 1024 };
static struct quota {
    atomic_uint second, lines;
} quotas[REASONS_END + LOG_KINDS];

/* May one more be written? *omitted: how many were not in the second before it. Several threads may count a line too
 * many or too few when a second begins. */
static bool is_admitted(unsigned kind, unsigned *omitted)
{
    struct quota *quota = &quotas[kind % (sizeof quotas / sizeof *quotas)];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    unsigned second = atomic_load(&quota->second), lines = 0;
    if (second != (unsigned)now.tv_sec && atomic_compare_exchange_strong(&quota->second, &second, (unsigned)now.tv_sec))
        lines = atomic_exchange(&quota->lines, 0);
    unsigned most = terminal_only ? LOG_LINES_ON_TERMINAL : LOG_LINES_A_SECOND;
    *omitted = lines > most ? lines - most : 0;
    return atomic_fetch_add(&quota->lines, 1) < most;
}

static void write_reason(enum log_level level, enum reason reason, const char *suffix, const char *format,
                         va_list arguments)
{
    unsigned omitted;
    if (!is_wanted(level) || !is_admitted((unsigned)reason % REASONS_END, &omitted))
        return;
    if (omitted)
        log_write(level, "%u more lines of reason %u were left out", omitted, reason);
    write_line(suffix, format, arguments);
}

void log_reason(enum log_level level, enum reason reason, const char *format, ...)
{
    if (!log_wanted(level))
        return;
    char suffix[320];
    snprintf(suffix, sizeof suffix, ": %s (reason %u)", reason_sentence(reason), reason);
    va_list arguments;
    va_start(arguments, format);
    write_reason(level, reason, suffix, format, arguments);
    va_end(arguments);
}

void log_cause(enum log_level level, enum reason reason, const char *format, ...)
{
    if (!log_wanted(level))
        return;
    char suffix[32];
    snprintf(suffix, sizeof suffix, " (reason %u)", reason);
    va_list arguments;
    va_start(arguments, format);
    write_reason(level, reason, suffix, format, arguments);
    va_end(arguments);
}

void log_limited(enum log_level level, unsigned kind, const char *name, const char *format, ...)
{
    unsigned omitted;
    if (!is_wanted(level) || !is_admitted(REASONS_END + kind, &omitted))
        return;
    if (omitted)
        log_write(level, "%u more lines of %s were left out", omitted, name);
    va_list arguments;
    va_start(arguments, format);
    write_line("", format, arguments);
    va_end(arguments);
}
