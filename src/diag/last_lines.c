#include "diag/last_lines.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/uncancelled.h"
#include "base/user.h"
#include "diag/alone.h"
#include "diag/clean.h"
#include "diag/output.h"

/* Guards `last`. A line is lost if another thread is within for long. */
static alone within;

static struct {
    pid_t pid; /* whose lines these are; if not this process's number, they are the parent's */
    uint64_t count;
    struct last_line lines[LAST_LINES];
    char directory[PATH_MAX / 16];
    unsigned slot;
    bool made, fails; /* this process has made the file; the file could not be made or written */
} last;

/* Drops the state that a fork copied, which is the parent's. */
static void own(pid_t pid)
{
    if (last.pid == pid)
        return;
    last.made = last.fails = false;
    last.count = 0;
    memset(last.lines, 0, sizeof last.lines);
    last.pid = pid;
}

/* -- files of processes that have ended */

struct sweep {
    unsigned files;
    char oldest[NAME_MAX + 1];
    struct timespec oldest_time;
};

/* Compares nanoseconds, too: programs that end one after another leave all their files within a second. */
static bool is_before(const struct timespec *time, const struct timespec *other)
{
    return time->tv_sec != other->tv_sec ? time->tv_sec < other->tv_sec : time->tv_nsec < other->tv_nsec;
}

static void sweep_one(struct sweep *sweep, int directory, const char *name, time_t now)
{
    struct stat status;
    if (strncmp(name, LAST_LINES_PREFIX, sizeof LAST_LINES_PREFIX - 1) ||
        fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) || !user_owns_file(directory, name, &status))
        return;
    if (now - status.st_mtime > LAST_LINES_DAYS * 24 * 3600) {
        unlinkat(directory, name, 0);
        return;
    }
    if (!sweep->files++ || is_before(&status.st_mtim, &sweep->oldest_time)) {
        snprintf(sweep->oldest, sizeof sweep->oldest, "%s", name);
        sweep->oldest_time = status.st_mtim;
    }
}

/* Removes the files that are too old, and the oldest other one where there is no place for one more. True: there still
 * is no place. */
static bool sweep(const char *path)
{
    struct sweep sweep = {0};
    struct dirent *entry;
    time_t now = time(NULL);
    DIR *stream = opendir(path);
    if (!stream)
        return false;
    while ((entry = readdir(stream)))
        sweep_one(&sweep, dirfd(stream), entry->d_name, now);
    if (sweep.files >= LAST_LINES_FILES)
        unlinkat(dirfd(stream), sweep.oldest, 0);
    closedir(stream);
    return sweep.files > LAST_LINES_FILES;
}

void last_lines_make_room(const char *path)
{
    enum { AT_ONCE = 16 };
    for (int i = 0; i < AT_ONCE && sweep(path); i++)
        ;
}

/* -- lines of another process, which may have ended */

struct file {
    struct last_lines_head head;
    struct last_line lines[LAST_LINES];
};

static bool read_file(const char *path, struct file *file)
{
    struct stat status;
    memset(file, 0, sizeof *file);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool ours = fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) && user_owns_file(fd, "", &status) &&
                read(fd, file, sizeof *file) > (ssize_t)sizeof file->head;
    if (fd >= 0)
        close(fd);
    return ours && file->head.version == LAST_LINES_VERSION &&
           !memcmp(file->head.name, "softverbs lines", sizeof file->head.name);
}

static struct last_line *find_last(struct file *file, const char *text)
{
    struct last_line *last_one = NULL;
    for (unsigned i = 0; i < LAST_LINES; i++) {
        struct last_line *line = &file->lines[i];
        line->text[LAST_LINES_TEXT - 1] = 0;
        if (line->number && strstr(line->text, text) && (!last_one || line->number > last_one->number))
            last_one = line;
    }
    return last_one;
}

static void copy(const struct file *file, const struct last_line *line, struct last_lines_found *to)
{
    const char *rest = strstr(line->text, "] ");
    snprintf(to->line, sizeof to->line, "%s", rest ? rest + 2 : line->text);
    snprintf(to->program, sizeof to->program, "%.31s", file->head.program);
    clean_text(to->line);
    clean_text(to->program);
}

bool last_lines_find(const char *directory, int pid, unsigned slot, const char *text, struct last_lines_found *to)
{
    char path[PATH_MAX / 16 + 64];
    int error = errno, before = uncancelled_begin();
    struct file *file = malloc(sizeof *file); /* the helper thread has a small stack */
    snprintf(path, sizeof path, "%s/" LAST_LINES_PREFIX "%d-%u", directory, pid, slot);
    struct last_line *last_one = file && read_file(path, file) ? find_last(file, text) : NULL;
    bool found = last_one;
    if (found)
        copy(file, last_one, to);
    free(file);
    uncancelled_end(before);
    errno = error;
    return found;
}

/* -- lines of this process */

static bool write_at(const struct output *file, const void *data, size_t size, size_t offset)
{
    return lseek(file->descriptor, (off_t)offset, SEEK_SET) == (off_t)offset && output_write(file, data, size) == size;
}

static bool write_line(const struct output *file, unsigned place)
{
    return write_at(file, &last.lines[place], sizeof last.lines[place],
                    sizeof(struct last_lines_head) + place * sizeof(struct last_line));
}

static bool write_head(const struct output *file)
{
    struct last_lines_head head = {.name = "softverbs lines", .version = LAST_LINES_VERSION, .pid = last.pid};
    snprintf(head.program, sizeof head.program, "%.31s", program_invocation_short_name);
    return write_at(file, &head, sizeof head, 0);
}

static bool write_all(const struct output *file)
{
    bool fine = write_head(file);
    for (unsigned i = 0; fine && i < LAST_LINES; i++)
        fine = !last.lines[i].number || write_line(file, i);
    return fine;
}

/* Opens the file for this call only, as programs search for leaked descriptors. Other processes may remove the oldest
 * files, also a living process's: then the file is made again. */
static bool keep_place(unsigned place)
{
    char path[sizeof last.directory + 64];
    struct output file;
    snprintf(path, sizeof path, "%s/" LAST_LINES_PREFIX "%d-%u", last.directory, (int)last.pid, last.slot);
    bool there = last.made && !output_open(&file, path, O_RDWR);
    if (!there)
        last_lines_make_room(last.directory);
    if (!there && output_open(&file, path, O_RDWR | O_CREAT | O_TRUNC))
        return false;
    last.made = true;
    bool fine = there ? write_line(&file, place) : write_all(&file);
    output_close(&file);
    return fine;
}

static void add(const char *line)
{
    struct last_line *place = &last.lines[++last.count % LAST_LINES];
    memset(place->text, 0, sizeof place->text);
    memcpy(place->text, line, strnlen(line, sizeof place->text - 1));
    place->number = last.count;
    place->time = (int64_t)read_clock(CLOCK_REALTIME);
    if (*last.directory && !last.fails)
        last.fails = !keep_place((unsigned)(place - last.lines));
}

void last_lines_keep(const char *directory, unsigned slot)
{
    pid_t pid = getpid();
    if (strlen(directory) >= sizeof last.directory || !alone_enter(&within, pid))
        return;
    own(pid);
    last.made = false;
    strcpy(last.directory, directory);
    last.slot = slot;
    last.fails = last.count && !keep_place(0);
    alone_leave(&within);
}

void last_lines_add(const char *line)
{
    pid_t pid = getpid();
    int error = errno, before = uncancelled_begin();
    if (alone_enter(&within, pid)) {
        own(pid);
        add(line);
        alone_leave(&within);
    }
    uncancelled_end(before);
    errno = error;
}
