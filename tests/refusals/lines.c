#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char log_path[64];
static int log_file;

bool lines_start(void)
{
    static char directory[] = "/tmp/softverbs-refusals-XXXXXX";
    if (!mkdtemp(directory))
        return false;
    snprintf(log_path, sizeof log_path, "%s/log", directory);
    setenv("SOFTVERBS_DIR", directory, 1);
    setenv("SOFTVERBS_LOG", "info", 1); /* from which log_threshold removes what a row is not to have */
    setenv("SOFTVERBS_LOG_FILE", log_path, 1);
    log_start();
    log_threshold = LOG_WARN;
    log_file = open(log_path, O_RDONLY | O_CLOEXEC);
    return log_file >= 0;
}

void lines_end(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %.*s", (int)(strlen(log_path) - strlen("/log")), log_path);
    if (system(command))
        printf("# %s is left\n", log_path);
}

void lines_read(char text[LINES])
{
    size_t length = 0;
    ssize_t more;
    while (length < LINES - 1 && (more = read(log_file, text + length, LINES - 1 - length)) > 0)
        length += (size_t)more;
    text[length] = 0;
}

static bool has(const char *text, size_t length, const char *words)
{
    return memmem(text, length, words, strlen(words));
}

/* Other threads write, too: a line without a reason is not the row's, nor the connection manager's line for an arrived
 * message, such as another identifier's that is repeated meanwhile. */
unsigned lines_count(const char *text, char line[LINE])
{
    unsigned count = 0;
    const char *end;
    line[0] = 0;
    for (; (end = strchr(text, '\n')); text = end + 1) {
        const char *begin = memchr(text, ']', (size_t)(end - text));
        size_t length = (size_t)(end - text);
        if (!begin || !has(text, length, "(reason ") || has(text, length, "] for a program of librdmacm: "))
            continue;
        snprintf(line, LINE, "%.*s", (int)(end - begin - 2), begin + 2);
        count++;
    }
    return count;
}

bool lines_name_reason(const char *line, enum reason reason)
{
    char words[32];
    snprintf(words, sizeof words, "(reason %u)", reason);
    return strstr(line, words);
}

static bool complain(const struct refused *row, const char *what, const char *line)
{
    printf("# %s, %s: %s%s%s\n", row->call, row->wrong, what, line[0] ? ": " : "", line);
    return false;
}

bool lines_check(const struct refused *row, bool (*refused)(const void *), const void *context, char line[LINE],
                 bool *silent)
{
    char text[LINES], what[64];
    lines_read(text);
    log_threshold = row->level;
    errno = 0;
    bool was_refused = refused(context);
    int error = errno;
    log_threshold = LOG_WARN;
    lines_read(text);
    unsigned lines = lines_count(text, line);
    *silent = !lines;
    if (!was_refused)
        return complain(row, "was not refused", line);
    if (row->error && error != row->error) {
        snprintf(what, sizeof what, "errno %d instead of %d", error, row->error);
        return complain(row, what, line);
    }
    if (lines != 1) {
        snprintf(what, sizeof what, "%u lines", lines);
        return complain(row, what, text);
    }
    if (!lines_name_reason(line, row->reason))
        return complain(row, reason_name(row->reason), line);
    return strstr(line, row->name) ? true : complain(row, "does not name the call", line);
}

bool lines_check_in_child(const struct refused *row, bool (*refused)(const void *))
{
    char line[LINE];
    bool silent;
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        bool fine = lines_check(row, refused, NULL, line, &silent);
        fflush(stdout);
        _exit(!fine);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool is_one_cause(const struct refused *a, const struct refused *b)
{
    return !strcmp(a->call, b->call) && !strcmp(a->wrong, b->wrong);
}

bool lines_differ(char (*lines)[LINE], size_t count, struct refused (*row_of)(size_t))
{
    bool fine = true;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            struct refused a = row_of(i), b = row_of(j);
            if (!lines[i][0] || strcmp(lines[i], lines[j]) || is_one_cause(&a, &b))
                continue;
            printf("# %s: \"%s\" and \"%s\" have the line: %s\n", a.call, b.wrong, a.wrong, lines[i]);
            fine = false;
        }
    return fine;
}
