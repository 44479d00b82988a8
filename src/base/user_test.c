/* The owners of files and processes, also where the kernel shows several users by one number. */
#include "base/user.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/nobody.h"

/* A directory that all may read, with a file of the user and, where the test is root's, one of another user. */
struct place {
    char path[32], own[48], others[48], link[48];
};

static void make_file(const char *path, uid_t user)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_true(geteuid() || !fchown(file, user, user));
    close(file);
}

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    *state = place;
    strcpy(place->path, "/tmp/softverbs-user-XXXXXX");
    if (!mkdtemp(place->path) || chmod(place->path, 0755))
        return -1;
    snprintf(place->own, sizeof place->own, "%s/own", place->path);
    snprintf(place->others, sizeof place->others, "%s/others", place->path);
    snprintf(place->link, sizeof place->link, "%s/link", place->path);
    make_file(place->own, NOBODY_OUTSIDE);
    if (!geteuid())
        make_file(place->others, 12345);
    else
        strcpy(place->others, "/"); /* root's */
    if (symlink(place->own, place->link) || (!geteuid() && lchown(place->link, 12345, 12345)))
        return -1;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    unlink(place->own);
    unlink(place->link);
    if (*place->others && strcmp(place->others, "/"))
        unlink(place->others);
    int error = rmdir(place->path);
    free(place);
    return error;
}

/* Asks by the file's path and by open files of both kinds; -1: the answers differ. */
static int owns(const char *path)
{
    struct stat status;
    int flags[] = {O_RDONLY | O_CLOEXEC, O_PATH | O_CLOEXEC | O_NOFOLLOW};
    if (lstat(path, &status))
        return -1;
    int answer = user_owns_file(AT_FDCWD, path, &status);
    for (int i = S_ISLNK(status.st_mode); i < 2; i++) {
        int file = open(path, flags[i]);
        if (file < 0 || user_owns_file(file, "", &status) != answer)
            return -1;
        close(file);
    }
    return answer;
}

static void where_all_users_have_numbers_the_number_decides(void **state)
{
    struct place *place = *state;
    struct stat status;
    assert_true(user_is_own(geteuid()));
    assert_true(user_has_own_number(geteuid()));
    assert_false(user_is_own(geteuid() + 1));
    assert_true(user_is_same(12345, 12345));
    assert_false(user_is_same(12345, 12346));
    assert_true(user_owns_process(geteuid(), 0));
    assert_false(user_owns_process(geteuid() + 1, getpid()));
    assert_int_equal(owns(place->others), 0);
    assert_int_equal(stat(place->path, &status), 0);
    assert_true(user_owns_file(AT_FDCWD, "there is none", &status)); /* no look at the file */
}

static int as_real_nobody(const struct place *place)
{
    struct stat status;
    if (setgid(NOBODY) || setuid(NOBODY) || lstat(place->own, &status))
        return 1;
    if (!user_is_own(NOBODY) || !user_is_same(NOBODY, NOBODY) || !user_owns_process(NOBODY, 0))
        return 2;
    return user_owns_file(AT_FDCWD, "there is none", &status) ? 0 : 3;
}

/* 65534 is a user like others where it shows no others. */
static void who_really_is_nobody_is_known_by_its_number(void **state)
{
    struct place *place = *state;
    struct stat space;
    if (geteuid() || stat("/proc/self/ns/user", &space) || space.st_ino != 0xeffffffd) /* PROC_USER_INIT_INO */
        skip();
    assert_int_equal(chown(place->own, NOBODY, NOBODY), 0);
    pid_t child = fork();
    if (!child)
        _exit(as_real_nobody(place));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int know_files(void *context)
{
    const struct place *place = context;
    struct stat own, others;
    if (stat(place->own, &own) || stat(place->others, &others) || own.st_uid != NOBODY || others.st_uid != NOBODY)
        return 1;
    if (user_is_own(own.st_uid) || !user_has_own_number(own.st_uid) || user_is_same(own.st_uid, others.st_uid))
        return 2;
    errno = EDOM;
    if (owns(place->own) != 1)
        return 3;
    if (owns(place->others) != 0 || owns(place->link) != (geteuid() == NOBODY && place->others[1] ? 0 : 1))
        return 4;
    return errno == EDOM ? 0 : 5;
}

static void nobody_owns_its_own_files_and_no_others(void **state)
{
    int status = nobody_run(know_files, *state);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

/* The question sets a time to the value that it has. */
static int keep_times(void *context)
{
    const struct place *place = context;
    struct stat before, after;
    if (stat(place->own, &before) || !user_owns_file(AT_FDCWD, place->own, &before) || stat(place->own, &after))
        return 1;
    return memcmp(&before.st_atim, &after.st_atim, sizeof before.st_atim) ||
           memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
}

static void asking_changes_no_time_of_the_files_content(void **state)
{
    int status = nobody_run(keep_times, *state);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

/* The parent is root, or another user's. */
static int know_processes(void *context)
{
    pid_t others = getppid(), own = fork();
    if (!own) {
        pause();
        _exit(0);
    }
    bool knows = user_owns_process(NOBODY, own), gone;
    kill(own, SIGKILL);
    waitpid(own, NULL, 0);
    gone = !user_owns_process(NOBODY, own);
    if (!knows || !gone || user_owns_process(NOBODY, 0) || user_owns_process(NOBODY_OUTSIDE, getpid()))
        return 1;
    return *(bool *)context && user_owns_process(NOBODY, others) ? 2 : 0;
}

static void nobody_knows_its_own_processes(void **state)
{
    bool root = !geteuid();
    int status = nobody_run(know_processes, &root);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(where_all_users_have_numbers_the_number_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_really_is_nobody_is_known_by_its_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_owns_its_own_files_and_no_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asking_changes_no_time_of_the_files_content, set_up, tear_down),
        cmocka_unit_test(nobody_knows_its_own_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
