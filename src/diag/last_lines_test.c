/* The last lines of a process in their file. */
#include "diag/last_lines.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "base/testing/nobody.h"

static char directory[32], path[64];

static void make_directory(unsigned slot)
{
    strcpy(directory, "/tmp/softverbs-last-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/" LAST_LINES_PREFIX "%d-%u", directory, (int)getpid(), slot);
    last_lines_keep(directory, slot);
}

static void remove_directory(void)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* The text of line `number`, or "". */
static const char *kept(uint64_t number)
{
    static struct last_line line;
    FILE *file = fopen(path, "r");
    memset(&line, 0, sizeof line);
    if (!file)
        return "";
    bool read = !fseek(file, (long)(sizeof(struct last_lines_head) + number % LAST_LINES * sizeof line), SEEK_SET) &&
                fread(&line, sizeof line, 1, file) == 1;
    fclose(file);
    return read && line.number == number ? line.text : "";
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    DIR *stream = opendir("/proc/self/fd");
    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count;
}

/* UCX's gtest fails if a descriptor is open after a test that was not open before it. */
static void no_descriptor_stays_open(void **state)
{
    unsigned before = descriptors();
    make_directory(2);
    assert_int_equal(descriptors(), before);
    last_lines_add("first");
    assert_int_equal(descriptors(), before);
    assert_int_equal(unlink(path), 0);
    last_lines_add("second");
    assert_int_equal(descriptors(), before);
    assert_string_equal(kept(1), "first");
    assert_string_equal(kept(2), "second");
    remove_directory();
}

static void a_file_that_was_taken_away_is_made_again(void **state)
{
    make_directory(3);
    last_lines_add("third");
    assert_string_equal(kept(3), "third");
    assert_int_equal(unlink(path), 0);
    last_lines_add("fourth");
    assert_string_equal(kept(3), "third");
    assert_string_equal(kept(4), "fourth");
    remove_directory();
}

/* Leaves a line as if a process of that user had kept it in this slot. */
static void leave_line(unsigned slot, const char *text, uid_t user)
{
    char name[80];
    last_lines_keep(directory, slot);
    last_lines_add(text);
    snprintf(name, sizeof name, "%s/" LAST_LINES_PREFIX "%d-%u", directory, (int)getpid(), slot);
    assert_int_equal(chmod(name, 0644) || chown(name, user, user), 0);
}

static int read_own_alone(void *context)
{
    const pid_t *process = context;
    struct last_lines_found found;
    if (!last_lines_find(directory, *process, 5, "of its own", &found))
        return 1;
    return last_lines_find(directory, *process, 6, "of another", &found) ? 2 : 0;
}

/* The user namespace shows both users by one number. */
static void nobody_reads_its_own_lines_and_no_others(void **state)
{
    pid_t self = getpid();
    if (geteuid())
        skip(); /* only root can give files away */
    make_directory(4);
    assert_int_equal(chmod(directory, 0755), 0);
    leave_line(5, "softverbs: [1] of its own", NOBODY_OUTSIDE);
    leave_line(6, "softverbs: [1] of another", 12345);
    int status = nobody_run(read_own_alone, &self);
    for (unsigned slot = 4; slot < 7; slot++) {
        snprintf(path, sizeof path, "%s/" LAST_LINES_PREFIX "%d-%u", directory, (int)self, slot);
        unlink(path);
    }
    assert_int_equal(rmdir(directory), 0);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

/* The files are too old; the process may remove only its user's. */
static int sweep_own_alone(void *context)
{
    last_lines_make_room(directory);
    return 0;
}

static void nobody_sweeps_its_own_files_and_no_others(void **state)
{
    const struct timespec old[] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char own[64], others[64];
    if (geteuid())
        skip(); /* only root can give files away */
    make_directory(7);
    snprintf(own, sizeof own, "%s/" LAST_LINES_PREFIX "1-8", directory);
    snprintf(others, sizeof others, "%s/" LAST_LINES_PREFIX "1-9", directory);
    for (int i = 0; i < 2; i++) {
        int file = open(i ? others : own, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_int_equal(fchown(file, i ? 12345 : NOBODY_OUTSIDE, (gid_t)-1) || futimens(file, old), 0);
        close(file);
    }
    assert_int_equal(chmod(directory, 0777), 0);
    int status = nobody_run(sweep_own_alone, NULL);
    assert_int_equal(unlink(others), 0);
    bool swept = unlink(own);
    remove_directory(); /* with the lines of this process */
    if (status == NOBODY_SKIPPED)
        skip();
    assert_true(swept);
}

/* Directories list their files in any order: in /dev/shm the newest is first. */
static void of_files_of_one_second_the_oldest_is_removed(void **state)
{
    char file_path[LAST_LINES_FILES][64];
    unsigned left = 0, oldest = LAST_LINES_FILES / 2;
    time_t now = time(NULL);
    strcpy(directory, "/tmp/softverbs-last-XXXXXX");
    assert_non_null(mkdtemp(directory));
    for (unsigned i = 0; i < LAST_LINES_FILES; i++) {
        const struct timespec time = {.tv_sec = now, .tv_nsec = i == oldest ? 1 : 2 + i};
        snprintf(file_path[i], sizeof file_path[i], "%s/" LAST_LINES_PREFIX "1-%u", directory, i);
        int file = open(file_path[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(futimens(file, (struct timespec[]){time, time}), 0);
        close(file);
    }
    last_lines_make_room(directory);
    assert_int_not_equal(access(file_path[oldest], F_OK), 0);
    for (unsigned i = 0; i < LAST_LINES_FILES; i++)
        left += !unlink(file_path[i]);
    assert_int_equal(left, LAST_LINES_FILES - 1);
    assert_int_equal(rmdir(directory), 0);
}

TESTS(no_descriptor_stays_open,
      a_file_that_was_taken_away_is_made_again,
      of_files_of_one_second_the_oldest_is_removed,
      nobody_reads_its_own_lines_and_no_others,
      nobody_sweeps_its_own_files_and_no_others)
