/* Text of others that must not reach a terminal. */
#include "diag/clean.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

static void becomes(const char *from, const char *to)
{
    char text[64];
    strcpy(text, from);
    clean_text(text);
    assert_string_equal(text, to);
}

static void printable_text_stays(void **state)
{
    becomes("", "");
    becomes("/dev/shm/softverbs-0: 100 % ~", "/dev/shm/softverbs-0: 100 % ~");
    becomes("/home/j\303\266rg/\346\227\245 \360\237\220\247", "/home/j\303\266rg/\346\227\245 \360\237\220\247");
}

static void control_characters_do_not(void **state)
{
    becomes("\033[31mred\033]0;title\a", "?[31mred?]0;title?");
    becomes("one\ntwo\r\tthree\177", "one?two??three?");
    becomes("\302\233"
            "31m",
            "??31m"); /* CSI in one character */
    becomes("a\342\200\256b\342\201\246c", "a???b???c");
}

static void what_is_no_character_does_not(void **state)
{
    becomes("\233"
            "31m",
            "?31m");
    becomes("\303", "?");
    becomes("\303(", "?(");
    becomes("\342\202", "??");
    becomes("\300\233", "??");           /* an escape in more bytes than it needs */
    becomes("\355\240\200", "???");      /* a surrogate */
    becomes("\364\220\200\200", "????"); /* beyond the last */
    becomes("\370\210\200\200\200", "?????");
}

static void a_json_string_is_one_string_whatever_is_in_it(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"", "\"\""},
        {"a b", "\"a b\""},
        {"a\",\"pid\":1,\"b", "\"a\\u0022,\\u0022pid\\u0022:1,\\u0022b\""},
        {"\\", "\"\\u005c\""},
        {"\n\033\177", "\"\\u000a\\u001b\\u007f\""},
        {"\303\266\303", "\"\303\266\\ufffd\""},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char written[128] = "";
        FILE *to = fmemopen(written, sizeof written, "w");
        clean_json(to, cases[i].from);
        fclose(to);
        assert_string_equal(written, cases[i].to);
    }
}

TESTS(printable_text_stays,
      control_characters_do_not,
      what_is_no_character_does_not,
      a_json_string_is_one_string_whatever_is_in_it)
