#include "harness.h"

#include <dirent.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "record.h"
#include "remote_end.h"

enum { CASE_SECONDS = 120, END_SECONDS = 10 };

#define LOG_NAME ".log" /* in the host's directory */

static const char *const link_names[] = {"none", "self", "shm", "pieces", "packets", "lossy", "twice", "slow"};

static struct {
    enum link_kind link;
    struct remote_end near, far;
    bool far_dead;
    const char *wanted; /* NULL: all */
    char name[160];     /* of the case that runs */
    unsigned count, failed;
    long logged; /* bytes of the log before this case */
    jmp_buf out;
    char directory[64];
} harness;

struct remote_end *harness_near(void)
{
    return harness.link == LINK_NONE ? NULL : &harness.near;
}

struct remote_end *harness_far(void)
{
    return harness.link == LINK_NONE ? NULL : &harness.far;
}

enum link_kind harness_link(void)
{
    return harness.link;
}

static bool is_faulty(void)
{
    return harness.link == LINK_LOSSY || harness.link == LINK_TWICE;
}

bool harness_promises(int type)
{
    return type == IBV_QPT_RC || !is_faulty();
}

void harness_far_is_dead(void)
{
    harness.far_dead = true;
}

/* The name of a function read as a sentence. */
static void set_name(const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof harness.name; i++)
        harness.name[i] = name[i] == '_' ? ' ' : name[i];
    harness.name[i] = 0;
}

enum { ENDED_WELL, ENDED_FAILED, ENDED_SKIPPED };

/* meson shows nothing of a failed test in TAP but its stderr. Not twice on one screen. */
static bool is_heard_twice(void)
{
    struct stat out, error;
    return fstat(STDOUT_FILENO, &out) || fstat(STDERR_FILENO, &error) ||
           (out.st_dev == error.st_dev && out.st_ino == error.st_ino);
}

static long size_of_log(void)
{
    char path[128];
    struct stat log;
    snprintf(path, sizeof path, "%s/" LOG_NAME, harness.directory);
    return stat(path, &log) ? 0 : (long)log.st_size;
}

/* The last two lines that the library logged, in any process of the case; "" when it logged nothing. The one before a
 * reason often says why. */
static void find_last_lines(char *to, size_t size)
{
    char path[128], line[1024], before[1024] = "";
    snprintf(path, sizeof path, "%s/" LOG_NAME, harness.directory);
    FILE *log = fopen(path, "re");
    to[0] = '\0';
    if (log)
        fseek(log, harness.logged, SEEK_SET);
    while (log && fgets(line, sizeof line, log)) {
        snprintf(to, size, "%s%s# %s", *before ? "# " : "", before, line);
        memcpy(before, line, sizeof before);
    }
    if (log)
        fclose(log);
}

static __attribute__((format(printf, 1, 2))) void say_failed(const char *format, ...)
{
    char what[1024], lines[2100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    find_last_lines(lines, sizeof lines);
    printf("not ok %u - %s\n# %s\n%s", ++harness.count, harness.name, what, lines);
    fflush(stdout);
    if (!is_heard_twice())
        fprintf(stderr, "not ok %u - %s\n# %s\n%s", harness.count, harness.name, what, lines);
    harness.failed++;
}

void harness_fail(const char *file, int line, const char *format, ...)
{
    char what[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    say_failed("%s:%d: %s", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, what);
    longjmp(harness.out, ENDED_FAILED);
}

/* NULL: not an error code, or the C library is too old to know. */
static const char *errno_name(long long value)
{
#if __GLIBC_PREREQ(2, 32)
    return value > 0 && value < 134 ? strerrorname_np((int)value) : NULL;
#else
    return NULL;
#endif
}

void harness_fail_comparison(const char *file, int line, const char *left, long long left_value, const char *comparison,
                             const char *right, long long right_value)
{
    const char *name = errno_name(left_value);
    harness_fail(file, line, "%s is %lld%s%s, expected %s %s (%lld)", left, left_value, name ? ", as errno " : "",
                 name ? name : "", comparison, right, right_value);
}

void harness_skip(const char *why)
{
    printf("ok %u - %s # SKIP %s\n", ++harness.count, harness.name, why);
    fflush(stdout); /* ThreadSanitizer writes what is left in the buffers of a child that ends, too */
    longjmp(harness.out, ENDED_SKIPPED);
}

static void begin_far(void)
{
    if (harness.link == LINK_SELF)
        remote_begin_here(&harness.far);
    else
        remote_begin_child(&harness.far, harness.link == LINK_PIECES ? "SOFTVERBS_NO_PULL" : NULL, "1");
}

/* The errno of the first object that could not be destroyed. */
static int clear_both(void)
{
    int error = 0;
    if (harness.link == LINK_NONE)
        return 0;
    remote_clear(&harness.near);
    error = harness.near.error;
    if (harness.far_dead)
        begin_far();
    else if (remote_clear(&harness.far), !error)
        error = harness.far.error;
    harness.far_dead = false;
    return error;
}

void harness_run(const char *name, void (*body)(const void *row), const void *row)
{
    set_name(name);
    if (harness.wanted && !strstr(harness.name, harness.wanted))
        return;
    alarm((unsigned)patience(CASE_SECONDS));
    record_begin();
    harness.logged = size_of_log();
    int ended = setjmp(harness.out);
    if (!ended)
        body(row);
    int error = clear_both();
    alarm(0);
    if (ended != ENDED_WELL)
        return;
    if (error) {
        say_failed("afterwards an object could not be destroyed: %s", strerror(error));
        return;
    }
    if (record_disagreement()) {
        say_failed("%s", record_disagreement());
        return;
    }
    record_end(harness.name);
    printf("ok %u - %s\n", ++harness.count, harness.name);
    fflush(stdout);
}

/* A line of /proc for each thread: its name, its state, its times on a processor (proc(5), stat), and where in the
 * kernel it waits. The process ends soon, also where a lock of the C library is held here. */
static void tell_threads(void)
{
    static const char *const files[] = {"stat", "wchan"};
    char path[320], line[512];
    signal(SIGALRM, SIG_DFL);
    alarm((unsigned)patience(END_SECONDS));
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));)
        for (unsigned at = 0; at < 2 && *task->d_name != '.'; at++) {
            snprintf(path, sizeof path, "/proc/self/task/%s/%s", task->d_name, files[at]);
            FILE *file = fopen(path, "r");
            if (file && fgets(line, sizeof line, file))
                printf("# thread %s, %s: %.*s\n", task->d_name, files[at], (int)strcspn(line, "\n"), line);
            if (file)
                fclose(file);
        }
    fflush(stdout);
}

static void on_alarm(int signal)
{
    static const char text[] = "\nBail out! The case hangs: ";
    ssize_t ignored = write(1, text, sizeof text - 1);
    ignored = write(1, harness.name, strlen(harness.name));
    ignored = write(1, "\n", 1);
    (void)ignored, (void)signal;
    tell_threads();
    _exit(1);
}

/* The files that are left in the host's directory when every process has gone: nothing but the table, the file in which
 * XRC domains are locked, and the last lines of processes (diag/last_lines.h). */
static void nothing_is_left(const void *row)
{
    DIR *directory = opendir(harness.directory);
    EXPECT_TRUE(directory);
    unsigned files = 0;
    char names[256] = "";
    size_t length = 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "xrc-domains") && strncmp(entry->d_name, "last-", 5)) {
            files++;
            length += (size_t)snprintf(names + length, sizeof names - length, " %s", entry->d_name);
            length = length < sizeof names ? length : sizeof names - 1;
        }
    closedir(directory);
    if (files > 1)
        harness_fail(__FILE__, __LINE__, "%u files:%s", files, names);
}

static void remove_directory(void)
{
    char path[512];
    DIR *directory = opendir(harness.directory);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", harness.directory, entry->d_name);
        unlink(path);
    }
    closedir(directory);
    rmdir(harness.directory);
}

/* A separate directory: other tests of this machine run at the same time, perhaps of another version. */
static void make_directory(void)
{
    char path[128];
    strcpy(harness.directory, "/dev/shm/softverbs-api-XXXXXX");
    if (!mkdtemp(harness.directory)) {
        strcpy(harness.directory, "/tmp/softverbs-api-XXXXXX");
        if (!mkdtemp(harness.directory))
            perror(harness.directory), exit(1);
    }
    setenv("SOFTVERBS_DIR", harness.directory, 1);
    snprintf(path, sizeof path, "%s/" LOG_NAME, harness.directory);
    if (!getenv("SOFTVERBS_LOG")) /* for the reason of a failure */
        setenv("SOFTVERBS_LOG", "warn", 1), setenv("SOFTVERBS_LOG_FILE", path, 1);
}

static bool read_link(const char *name)
{
    for (size_t i = 0; i < COUNT(link_names); i++)
        if (!strcmp(name, link_names[i])) {
            harness.link = (enum link_kind)i;
            return true;
        }
    return false;
}

static void end_both(void)
{
    if (harness.link == LINK_NONE)
        return;
    remote_finish(&harness.far);
    remote_finish(&harness.near);
}

static void far_end_leaves_with_status_0(const void *row)
{
    EXPECT(harness.far.error, ==, 0);
}

int harness_main(int argc, char **argv, void (*all)(void))
{
    if (argc == 3 && !strcmp(argv[1], "--remote")) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return remote_serve(atoi(argv[2]));
    }
    if (argc < 2 || !read_link(argv[1])) {
        fprintf(stderr, "usage: %s none|self|shm|pieces|packets|lossy|twice|slow [WORDS]\n", argv[0]);
        return 2;
    }
    harness.wanted = argc > 2 ? argv[2] : NULL;
    signal(SIGALRM, on_alarm);
    make_directory();
    if (harness.link == LINK_LOSSY)
        setenv("SOFTVERBS_FAULT", "drop=2%,dup=2%,reorder=3%,seed=7", 1);
    if (harness.link == LINK_SLOW)
        setenv("SOFTVERBS_FAULT", "delay=200us", 1);
    if (harness.link == LINK_TWICE)
        setenv("SOFTVERBS_FAULT", "dup=30%,seed=7", 1);
    if (harness.link == LINK_PIECES)
        setenv("SOFTVERBS_NO_PULL", "1", 1);
    if (harness.link == LINK_PACKETS)
        setenv("SOFTVERBS_DIRECT", "0", 1);
    if (harness.link != LINK_NONE) {
        remote_begin_here(&harness.near);
        begin_far();
    }
    all();
    end_both();
    harness.link = LINK_NONE;
    if (harness.far.fd > 0)
        CASE(far_end_leaves_with_status_0);
    CASE(nothing_is_left);
    remove_directory();
    printf("1..%u\n", harness.count);
    if (!harness.failed)
        return 0;
    fflush(stdout); /* what a failed case left open is left alone: its process can't be woken without the directory */
    _exit(1);
}
