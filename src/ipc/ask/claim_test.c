/* Processes of two directories do not share an interface. */
#include "ipc/ask/claim.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/nobody.h"

enum { INTERFACE = 987654321, OTHER = 987654322 }; /* no real ones */

struct place {
    char here[64], there[64];
};

static char why[512];

static int set_up(void **state)
{
    struct place *place = malloc(sizeof *place);
    *state = place;
    if (!place)
        return -1;
    *place = (struct place){"/tmp/softverbs-claim-XXXXXX", "/tmp/softverbs-claim-XXXXXX"};
    return mkdtemp(place->here) && mkdtemp(place->there) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    int error = rmdir(place->here) | rmdir(place->there);
    free(place);
    return error;
}

static void those_of_one_directory_share(void **state)
{
    struct place *place = *state;
    char same[80];
    int first, second;
    snprintf(same, sizeof same, "%s/../%s", place->here, place->here + strlen("/tmp/"));
    assert_int_equal(claim_take(place->here, INTERFACE, &first, why, sizeof why), 0);
    assert_true(first >= 0);
    assert_int_equal(claim_take(same, INTERFACE, &second, why, sizeof why), 0);
    close(first);
    if (second >= 0)
        close(second);
}

static void those_of_another_are_refused_and_told_who_is_there(void **state)
{
    struct place *place = *state;
    char process[32];
    int first, second;
    snprintf(process, sizeof process, " %d ", (int)getpid());
    assert_int_equal(claim_take(place->here, INTERFACE, &first, why, sizeof why), 0);
    assert_true(claim_is_others(place->there, INTERFACE, why, sizeof why));
    assert_non_null(strstr(why, place->here));
    assert_non_null(strstr(why, process));
    assert_int_equal(claim_take(place->there, INTERFACE, &second, why, sizeof why), EBUSY);
    assert_int_equal(second, -1);
    assert_true(claim_is_others("/a directory that is still to be made", INTERFACE, why, sizeof why));
    assert_false(claim_is_others(place->here, INTERFACE, why, sizeof why)); /* a refused process left no trace */
    close(first);
}

static void another_interface_is_free(void **state)
{
    struct place *place = *state;
    int first;
    assert_int_equal(claim_take(place->here, INTERFACE, &first, why, sizeof why), 0);
    assert_false(claim_is_others(place->there, OTHER, why, sizeof why));
    assert_false(claim_is_others(place->there, INTERFACE / 10, why, sizeof why));
    close(first);
}

/* A process of that user with a socket of this name; and its end. */
static pid_t listen_as(uid_t user, const char *text)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        size_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        memcpy(name.sun_path + 1, text, strlen(text));
        _exit(setuid(user) || bind(fd, (struct sockaddr *)&name, (socklen_t)length) || listen(fd, 1) ||
              write(ready[1], "", 1) != 1 || pause());
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void what_another_user_claims_does_not_count(void **state)
{
    struct place *place = *state;
    char name[64];
    if (geteuid())
        skip();
    snprintf(name, sizeof name, "softverbs-4791 %d 9:9 1 /somewhere", INTERFACE);
    pid_t child = listen_as(12345, name);
    assert_false(claim_is_others(place->here, INTERFACE, why, sizeof why));
    end(child);
    child = listen_as(0, name); /* our own does */
    assert_true(claim_is_others(place->here, INTERFACE, why, sizeof why));
    end(child);
}

static int see_own_alone(void *context)
{
    const struct place *place = context;
    char name[64];
    if (claim_is_others(place->here, INTERFACE, why, sizeof why))
        return 1;
    snprintf(name, sizeof name, "softverbs-4791 %d 9:9 1 /elsewhere", INTERFACE);
    pid_t child = listen_as(NOBODY, name);
    bool seen = claim_is_others(place->here, INTERFACE, why, sizeof why);
    end(child);
    return seen ? 0 : 2;
}

/* The user namespace shows both users by one number. */
static void nobody_counts_its_own_claims_and_no_others(void **state)
{
    struct place *place = *state;
    char name[64];
    if (geteuid())
        skip();
    assert_int_equal(chmod(place->here, 0755), 0);
    snprintf(name, sizeof name, "softverbs-4791 %d 9:9 1 /somewhere", INTERFACE);
    pid_t child = listen_as(12345, name);
    int status = nobody_run(see_own_alone, place);
    end(child);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

static void lines_in_a_name_are_no_claims(void **state)
{
    struct place *place = *state;
    char name[100];
    snprintf(name, sizeof name, "x\n0: 2 0 1 1 1 9 @softverbs-4791 %d 9:9 1 /somewhere", INTERFACE);
    pid_t child = listen_as(geteuid(), name);
    assert_false(claim_is_others(place->here, INTERFACE, why, sizeof why));
    end(child);
}

static void who_was_killed_claims_nothing(void **state)
{
    struct place *place = *state;
    int claim, ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        _exit(claim_take(place->here, INTERFACE, &claim, why, sizeof why) || write(ready[1], "", 1) != 1 || pause());
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_true(claim_is_others(place->there, INTERFACE, why, sizeof why));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(claim_is_others(place->there, INTERFACE, why, sizeof why));
    close(ready[0]);
    close(ready[1]);
}

static void a_long_name_is_cut_and_still_told_apart(void **state)
{
    struct place *place = *state;
    char longer[160] = "";
    int claim;
    for (int i = 0; i < 60; i++)
        strcat(longer, "/.");
    memmove(longer + strlen(place->here), longer, strlen(longer) + 1);
    memcpy(longer, place->here, strlen(place->here));
    assert_int_equal(claim_take(longer, INTERFACE, &claim, why, sizeof why), 0);
    assert_true(claim >= 0);
    assert_false(claim_is_others(place->here, INTERFACE, why, sizeof why));
    assert_true(claim_is_others(place->there, INTERFACE, why, sizeof why));
    close(claim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_of_one_directory_share, set_up, tear_down),
        cmocka_unit_test_setup_teardown(those_of_another_are_refused_and_told_who_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_interface_is_free, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_another_user_claims_does_not_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_counts_its_own_claims_and_no_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_in_a_name_are_no_claims, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_was_killed_claims_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_name_is_cut_and_still_told_apart, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
