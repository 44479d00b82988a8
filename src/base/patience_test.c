/* How long tests wait, and how often they try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"

static void a_wait_is_multiplied(void **state)
{
    unsetenv("TEST_PATIENCE");
    assert_int_equal(patience(200), 200);
    setenv("TEST_PATIENCE", "2.5", 1);
    assert_int_equal(patience(200), 500);
    assert_int_equal(PATIENCE, 50000);
    assert_true(PATIENCE_SECONDS == 50.0);
}

static void what_is_no_factor_changes_nothing(void **state)
{
    static const char *const words[] = {"", "0", "-3", "long"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        setenv("TEST_PATIENCE", words[i], 1);
        assert_int_equal(patience(200), 200);
    }
}

static void a_long_wait_ends_at_what_poll_takes(void **state)
{
    setenv("TEST_PATIENCE", "1e9", 1);
    assert_int_equal(patience(20000), INT_MAX);
}

static bool at_the_third(void *context)
{
    return ++*(int *)context == 3;
}

/* The number that `patience_tries` prints for at most `most` tries. */
static const char *said_of(int most, bool expected)
{
    static char text[256];
    int ends[2], screen = dup(STDOUT_FILENO), count = 0;
    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDOUT_FILENO);
    bool succeeds = patience_tries("a thing", most, "chance", at_the_third, &count);
    fflush(stdout);
    dup2(screen, STDOUT_FILENO);
    close(screen);
    close(ends[1]);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[length < 0 ? 0 : length] = '\0';
    assert_int_equal(succeeds, expected);
    return text;
}

static void several_tries_are_told(void **state)
{
    assert_string_equal(said_of(5, true), "# tries: 3 of 5: a thing: chance\n");
    assert_string_equal(said_of(2, false), "# tries: 2 of 2, all in vain: a thing: chance\n");
}

TESTS(a_wait_is_multiplied,
      what_is_no_factor_changes_nothing,
      a_long_wait_ends_at_what_poll_takes,
      several_tries_are_told)
