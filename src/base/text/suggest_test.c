/* Suggestions for misspelt names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "base/text/suggest.h"

static const char *const names[] = {"drop",          "duplicate", "delay", "ibv_reg_mr", "ibv_reg_mr_iova",
                                    "RETRY_EXC_ERR", "on"};

static const struct {
    const char *written, *meant;
} slips[] = {
    {"drop", "drop"},
    {"DROP", "drop"},
    {"drpo", "drop"},
    {"dropp", "drop"},
    {"dely", "delay"},
    {"duplicat", "duplicate"},
    {"dupl", "duplicate"},
    {"reg_mr", "ibv_reg_mr"},
    {"retry_exc", "RETRY_EXC_ERR"},
    {"ibv_regmr", "ibv_reg_mr"},
    {"un", "on"},
    {"xyz", NULL},
    {"explode", NULL},
    {"", NULL},
    {"EX", NULL},
    {"IBV_WC_RETRY_EXC_ERR", "RETRY_EXC_ERR"},
    {"reg-mr", "ibv_reg_mr"},
    {"a name that is much longer than any of the others in the list", NULL},
};

static void the_name_that_was_meant_is_found(void **state)
{
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        struct suggestion suggestion = suggest_begin(slips[i].written);
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            suggest_try(&suggestion, names[n]);
        if (!suggestion.meant || !slips[i].meant)
            assert_ptr_equal(suggestion.meant, slips[i].meant);
        else
            assert_string_equal(suggestion.meant, slips[i].meant);
    }
}

static void letters_are_counted(void **state)
{
    assert_int_equal(suggest_distance("", "four"), 4);
    assert_int_equal(suggest_distance("four", ""), 4);
    assert_int_equal(suggest_distance("kitten", "Sitting"), 3);
    assert_int_equal(suggest_distance("same", "SAME"), 0);
}

TESTS(the_name_that_was_meant_is_found,
      letters_are_counted)
