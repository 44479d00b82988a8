/* The possible contents of the file of the host's connections. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/nobody.h"
#include "check/outside/meeting.h"

enum { ONE = 0x111, OTHER = 0x222, SOMEBODY = 65534 };

static char directory[] = "/tmp/softverbs-meeting-XXXXXX", path[sizeof directory + 16];

/* Returns true if the later one reads the connection that the earlier has written, with this MTU. */
static bool meet_with(enum ibv_mtu mtu)
{
    struct shadow_connection one = {.peer = OTHER, .mtu = mtu, .sq_psn = 5}, read = {0};
    struct shadow_connection other = {.peer = ONE, .mtu = IBV_MTU_1024};
    meeting_exchange(ONE, &one, &read);
    return meeting_exchange(OTHER, &other, &read) && read.sq_psn == 5;
}

static void entries_of_peers_are_read(void **state)
{
    assert_true(meet_with(IBV_MTU_256));
    assert_true(meet_with(IBV_MTU_4096));
}

static void an_entry_without_a_known_mtu_is_not_read(void **state)
{
    assert_false(meet_with(0));
    assert_false(meet_with(IBV_MTU_4096 + 1));
    assert_false(meet_with((enum ibv_mtu)0x7fffffff));
}

static void the_file_of_another_user_is_not_used(void **state)
{
    struct stat status;
    if (geteuid())
        skip();
    unlink(path);
    int file = open(path, O_RDWR | O_CREAT, 0666);
    assert_int_equal(fchown(file, SOMEBODY, SOMEBODY), 0);
    assert_false(meet_with(IBV_MTU_1024));
    assert_int_equal(fstat(file, &status), 0);
    assert_int_equal(status.st_size, 0);
    close(file);
    unlink(path);
}

static int use_own_alone(void *context)
{
    bool met = meet_with(IBV_MTU_1024);
    return met == *(bool *)context ? 0 : 1;
}

/* The user namespace shows both users by one number. */
static void nobody_uses_its_own_file_and_no_others(void **state)
{
    bool own = false;
    if (geteuid())
        skip();
    assert_int_equal(chmod(directory, 0777), 0);
    unlink(path);
    int file = open(path, O_RDWR | O_CREAT, 0600), status = 0;
    assert_int_equal(fchmod(file, 0666), 0);
    for (int i = 0; !status && i < 2; i++, own = true) {
        assert_int_equal(fchown(file, own ? NOBODY_OUTSIDE : 12345, (gid_t)-1), 0);
        status = nobody_run(use_own_alone, &own);
    }
    close(file);
    assert_int_equal(chmod(directory, 0700), 0);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_of_peers_are_read),
        cmocka_unit_test(an_entry_without_a_known_mtu_is_not_read),
        cmocka_unit_test(the_file_of_another_user_is_not_used),
        cmocka_unit_test(nobody_uses_its_own_file_and_no_others),
    };
    if (!mkdtemp(directory))
        return 1;
    snprintf(path, sizeof path, "%s/last-connected", directory);
    setenv("SOFTVERBS_DIR", directory, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(directory);
    return failed;
}
