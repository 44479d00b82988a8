#include "diag/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/uncancelled.h"
#include "diag/clean.h"
#include "diag/last_lines.h"
#include "diag/log_github.h"
#include "diag/log_quota.h"
#include "diag/log_room.h"
#include "diag/log_wrap.h"
#include "diag/output.h"

enum { LINE = LAST_LINES_TEXT };

_Atomic int log_threshold;
static enum log_level printed; /* lines up to this level are printed; others are kept only (last_lines.h) */
static struct output output = OUTPUT_STDERR;
static bool silenced;      /* SOFTVERBS_LOG=none */
static bool terminal_only; /* each line is printed only if stderr is a terminal then: a program may redirect it */
static bool for_github;

static void read_level(const char *level)
{
    static const char *const names[] = {"none", "error", "warn", "info", "debug"};
    for (int i = LOG_NONE; i <= LOG_DEBUG; i++)
        if (!strcmp(level, names[i]))
            printed = (enum log_level)i;
    silenced = !strcmp(level, "none");
    terminal_only = !strcmp(level, "terminal");
    if (terminal_only)
        printed = LOG_WARN;
}

static void open_named(const char *file)
{
    struct output named;
    int error = output_open(&named, file, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK);
    if (!error) {
        output = named;
        terminal_only = false;
    } else
        log_write(LOG_ERROR, "SOFTVERBS_LOG_FILE=%s can't be opened (%s); logging to stderr", file, strerror(error));
}

static void read_environment(void)
{
    const char *level = setting_environment(SETTING_LOG), *file = setting_environment(SETTING_LOG_FILE),
               *format = setting_environment(SETTING_LOG_FORMAT);
    if (level)
        read_level(level);
    for_github = format && !strcmp(format, "github");
    log_threshold = silenced ? LOG_NONE : printed > LOG_WARN ? printed : LOG_WARN;
    if (printed != LOG_NONE && file && *file)
        open_named(file);
}

void log_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}

bool log_shown(enum log_level level)
{
    int saved = errno;
    bool shown = level <= printed && (!terminal_only || isatty(STDERR_FILENO));
    errno = saved;
    return shown;
}

/* -- one line */

/* Writes the line to `to` in the form for its reader, and returns the length; 0: the reader gets the line as it is. */
static size_t for_reader(const char *line, char *to, size_t size)
{
    if (for_github)
        return log_github_command(line, to, size);
    return terminal_only ? log_wrap(line, log_wrap_columns(STDERR_FILENO), to, size) : 0;
}

static void print_line(char *line, size_t length)
{
    char changed[2 * LINE];
    size_t size = for_reader(line, changed, sizeof changed - 1);
    char *text = size ? changed : line;
    length = size ? size : length;
    text[length++] = '\n';
    log_room_write(&output, text, length); /* a full disk or closed stderr must not disturb the program */
}

/* `line` has room for a line end. */
static void deliver(bool print, char *line, size_t length)
{
    int saved = errno, before = uncancelled_begin();
    last_lines_add(line);
    if (print && for_github)
        log_github_summary(line);
    if (print)
        print_line(line, length);
    uncancelled_end(before);
    errno = saved;
}

static void write_line(bool print, const char *suffix, const char *format, va_list arguments)
{
    char line[LINE];
    int length = snprintf(line, 64, "softverbs: %.32s[%d] ", program_invocation_short_name, (int)getpid());
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    if (length < (int)sizeof line)
        length += snprintf(line + length, sizeof line - (size_t)length, "%s", suffix);
    if (length > (int)sizeof line - 1)
        length = sizeof line - 1;
    clean_text(line);
    deliver(print, line, (size_t)length);
}

static void tell_omitted(unsigned kind, const char *name, unsigned omitted)
{
    if (name)
        log_write(LOG_WARN, "%u more lines of %s were left out", omitted, name);
    else
        log_write(LOG_WARN, "%u more lines of reason %u were left out", omitted, kind);
}

void log_settle(void)
{
    int saved = errno, before = uncancelled_begin();
    log_quota_settle(true, tell_omitted);
    log_room_settle(&output);
    uncancelled_end(before);
    errno = saved;
}

/* The last destructor of the library, as others may write lines. */
__attribute__((destructor(101))) static void end_log(void)
{
    if (log_room_waits())
        log_room_end(&output);
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!log_wanted(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line(log_shown(level), "", format, arguments);
    va_end(arguments);
}

void log_always(const char *format, ...)
{
    if (silenced)
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line(true, "", format, arguments);
    va_end(arguments);
}

/* The most lines of a kind in a second: fewer where the user asked for no level, or nothing is printed. */
static unsigned lines_most(void)
{
    return terminal_only || printed == LOG_NONE ? LOG_LINES_ON_TERMINAL : LOG_LINES_A_SECOND;
}

static bool is_admitted(enum log_level level, unsigned kind, const char *name)
{
    if (!log_wanted(level))
        return false;
    log_quota_settle(false, tell_omitted);
    return log_quota_admits(kind, name, lines_most());
}

bool log_leaves_out(enum log_level level, enum reason reason)
{
    return !log_wanted(level) || log_quota_is_used_up(reason, lines_most());
}

void log_reason(enum log_level level, enum reason reason, const char *format, ...)
{
    if (!is_admitted(level, reason, NULL))
        return;
    char suffix[320];
    snprintf(suffix, sizeof suffix, ": %s (reason %u)", reason_sentence(reason), reason);
    va_list arguments;
    va_start(arguments, format);
    write_line(log_shown(level), suffix, format, arguments);
    va_end(arguments);
}

void log_cause(enum log_level level, enum reason reason, const char *format, ...)
{
    if (!is_admitted(level, reason, NULL))
        return;
    char suffix[32];
    snprintf(suffix, sizeof suffix, " (reason %u)", reason);
    va_list arguments;
    va_start(arguments, format);
    write_line(log_shown(level), suffix, format, arguments);
    va_end(arguments);
}

void log_limited(enum log_level level, unsigned kind, const char *name, const char *format, ...)
{
    if (!is_admitted(level, LOG_QUOTA_REASONS + kind, name))
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line(log_shown(level), "", format, arguments);
    va_end(arguments);
}
