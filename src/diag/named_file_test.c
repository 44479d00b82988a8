/* Where others can write, their links and files are neither followed nor written to. Needs root, which can act as any
 * user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/nobody.h"
#include "diag/named_file.h"

enum { STRANGER = 65534, SKIPPED = 77, APPEND = O_WRONLY | O_APPEND | O_CREAT };

static char top[] = "/tmp/named-file-XXXXXX";

/* Relative to a directory of our own that is made for each test: "shared" can be written by everybody. */
static int begin(void **state)
{
    strcpy(top + sizeof top - 7, "XXXXXX");
    return !mkdtemp(top) || chdir(top) || chmod(top, 0755) || mkdir("shared", 0700) || chmod("shared", 01777) ||
           mkdir("own", 0755);
}

static int end(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", top);
    return chdir("/") || system(command);
}

static void make(const char *path, uid_t owner)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(file >= 0);
    assert_int_equal(fchown(file, owner, owner), 0);
    close(file);
}

static void link_to(const char *target, const char *path, uid_t owner)
{
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(lchown(path, owner, owner), 0);
}

static void expect_opened(const char *path, const char *really)
{
    struct stat opened, named;
    int file = named_file_open(path, APPEND);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &opened), 0);
    assert_int_equal(stat(really, &named), 0);
    assert_true(opened.st_ino == named.st_ino && opened.st_dev == named.st_dev);
    assert_true(fcntl(file, F_GETFD) & FD_CLOEXEC);
    close(file);
}

static void expect_refused(const char *path, int error)
{
    errno = 0;
    assert_int_equal(named_file_open(path, APPEND), -1);
    assert_int_equal(errno, error);
}

static void files_are_made_and_found(void **state)
{
    char absolute[128];
    struct stat status;
    expect_opened("log", "log");
    assert_int_equal(stat("log", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    expect_opened("log", "log");
    expect_opened("shared//log", "shared/log");
    expect_opened("./own/../shared/log", "shared/log");
    snprintf(absolute, sizeof absolute, "%s/own/log", top);
    expect_opened(absolute, "own/log");
    expect_refused("", ENOENT);
    expect_refused("missing/log", ENOENT);
    expect_refused("log/log", ENOTDIR);
    expect_refused("own/", EISDIR);
    assert_int_equal(named_file_open("missing", O_RDWR), -1);
}

static void ones_own_links_are_followed(void **state)
{
    make("own/file", 0);
    link_to("../own/file", "shared/mine", 0);
    link_to("own", "directory", 0);
    link_to("directory/../shared/mine", "first", 0);
    link_to("loop", "loop", 0);
    link_to("own/new", "dangling", 0);
    expect_opened("shared/mine", "own/file");
    expect_opened("directory/file", "own/file");
    expect_opened("first", "own/file");
    expect_opened("dangling", "own/new");
    expect_refused("loop", ELOOP);
}

static void links_of_strangers_are_followed_only_where_they_alone_can_write(void **state)
{
    make("own/file", 0);
    link_to("../own/file", "shared/log", STRANGER);
    link_to("../own", "shared/directory", STRANGER);
    link_to("shared/log", "by-way-of", 0);
    link_to("file", "own/theirs", STRANGER);
    expect_refused("shared/log", EACCES);
    expect_refused("shared/directory/file", EACCES);
    expect_refused("by-way-of", EACCES);
    expect_opened("own/theirs", "own/file");
}

static void files_of_strangers_are_not_written_to(void **state)
{
    make("shared/file", STRANGER);
    make("own/theirs", STRANGER);
    assert_int_equal(mkfifo("shared/fifo", 0666), 0);
    assert_int_equal(chown("shared/fifo", STRANGER, STRANGER), 0);
    expect_refused("shared/file", EACCES);
    expect_refused("shared/fifo", EACCES); /* and no open waits for its reader */
    expect_opened("own/theirs", "own/theirs");
    make("own/profile", 0);
    assert_int_equal(link("own/profile", "shared/second-name"), 0);
    expect_refused("shared/second-name", EACCES);
}

static int open_own_alone(void *context)
{
    int own = named_file_open("shared/own", O_RDONLY), others = named_file_open("shared/others", O_RDONLY);
    bool refused = others < 0 && errno == EACCES;
    int link = named_file_open("shared/link", O_RDONLY);
    return own < 0 ? 1 : !refused ? 2 : link < 0 && errno == EACCES ? 0 : 3;
}

/* The user namespace shows root, the directory's owner, and both other users by one number. */
static void nobody_opens_its_own_files_and_no_others(void **state)
{
    make("shared/own", NOBODY_OUTSIDE);
    make("shared/others", STRANGER);
    assert_int_equal(chmod("shared/others", 0666), 0);
    link_to("own", "shared/link", STRANGER);
    int status = nobody_run(open_own_alone, NULL);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

static void the_streams_of_a_process_can_be_named(void **state)
{
    int pipes[2];
    char path[64];
    assert_int_equal(pipe(pipes), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", pipes[1]);
    expect_opened(path, path);
    snprintf(path, sizeof path, "/dev/fd/%d", pipes[1]);
    expect_opened(path, path);
    expect_opened("/dev/null", "/dev/null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_made_and_found, begin, end),
        cmocka_unit_test_setup_teardown(ones_own_links_are_followed, begin, end),
        cmocka_unit_test_setup_teardown(links_of_strangers_are_followed_only_where_they_alone_can_write, begin, end),
        cmocka_unit_test_setup_teardown(files_of_strangers_are_not_written_to, begin, end),
        cmocka_unit_test_setup_teardown(nobody_opens_its_own_files_and_no_others, begin, end),
        cmocka_unit_test_setup_teardown(the_streams_of_a_process_can_be_named, begin, end),
    };
    return geteuid() ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
