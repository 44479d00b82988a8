#include "diag/log_wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

static char text[256];

static const char *wrapped(const char *line, size_t columns)
{
    size_t length = log_wrap(line, columns, text, sizeof text - 1);
    text[length] = '\0';
    return text;
}

static void a_line_that_fits_stays(void **state)
{
    assert_string_equal(wrapped("0123456789012345678901234567890123456789", 40), "");
}

static void a_wider_line_is_broken_between_words(void **state)
{
    assert_string_equal(wrapped("softverbs: writer[7] a WRITE of queue pair 0x11 ended with REM_ACCESS_ERR", 40),
                        "softverbs: writer[7] a WRITE of queue\n"
                        "    pair 0x11 ended with REM_ACCESS_ERR");
}

static void a_word_ends_at_the_last_column(void **state)
{
    assert_string_equal(wrapped("0123456789 123456789 123456789 123456789 next", 40),
                        "0123456789 123456789 123456789 123456789\n"
                        "    next");
}

static void a_word_that_no_line_has_room_for_is_not_cut(void **state)
{
    assert_string_equal(wrapped("0123456789012345678901234567890123456789012345 next", 40),
                        "0123456789012345678901234567890123456789012345\n"
                        "    next");
}

static void a_window_without_a_width_changes_nothing(void **state)
{
    assert_string_equal(wrapped("0123456789 123456789 123456789 123456789 next", 0), "");
    assert_string_equal(wrapped("0123456789 123456789 123456789 123456789 next", 39), "");
}

static void a_line_without_room_is_left_whole(void **state)
{
    char small[44];
    const char *line = "0123456789 123456789 123456789 123456789 next";
    assert_int_equal(log_wrap(line, 40, small, sizeof small), 0);
    assert_int_equal(log_wrap(line, 40, text, 49), 49);
}

TESTS(a_line_that_fits_stays, a_wider_line_is_broken_between_words, a_word_ends_at_the_last_column,
      a_word_that_no_line_has_room_for_is_not_cut, a_window_without_a_width_changes_nothing,
      a_line_without_room_is_left_whole)
