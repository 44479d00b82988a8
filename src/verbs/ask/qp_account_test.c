/* The account of another process is used only if each of its values is a valid one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <infiniband/verbs.h>
#include <string.h>

#include "base/testing/group.h"
#include "diag/diag.h"
#include "verbs/ask/qp_account.h"

enum { NUMBER = 0x1234 };

static struct qp_account usual(void)
{
    return (struct qp_account){.version = QP_ACCOUNT_VERSION,
                               .number = NUMBER,
                               .found = QP_ACCOUNT_FOUND,
                               .count = 1,
                               .numbers = {NUMBER},
                               .state = IBV_QPS_INIT,
                               .rq_psn = 0xffffff,
                               .path_mtu = IBV_MTU_4096,
                               .first_error = REASON_REMOTE_RANGE,
                               .words = "qp 0x1234: out of bounds"};
}

static void one_with_usual_values_is_sound(void **state)
{
    struct qp_account account = usual();
    assert_true(qp_account_is_sound(&account, NUMBER));
    assert_string_equal(account.words, "qp 0x1234: out of bounds");
    account.first_error = REASON_NONE;
    assert_true(qp_account_is_sound(&account, NUMBER));
}

static void one_on_another_number_is_not(void **state)
{
    struct qp_account account = usual();
    assert_false(qp_account_is_sound(&account, NUMBER + 1));
}

static void each_value_that_there_is_not_is_noticed(void **state)
{
    static const struct {
        size_t offset;
        uint32_t value;
    } wrong[] = {
        {offsetof(struct qp_account, version), QP_ACCOUNT_VERSION + 1},
        {offsetof(struct qp_account, found), QP_ACCOUNT_FOUND + 1},
        {offsetof(struct qp_account, numbers[3]), 1 << 24},
        {offsetof(struct qp_account, state), IBV_QPS_ERR + 1},
        {offsetof(struct qp_account, rq_psn), 1 << 24},
        {offsetof(struct qp_account, path_mtu), IBV_MTU_4096 + 1},
        {offsetof(struct qp_account, port_down), 2},
        {offsetof(struct qp_account, shared), 2},
        {offsetof(struct qp_account, first_error), 999},
        {offsetof(struct qp_account, first_error), UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct qp_account account = usual();
        memcpy((char *)&account + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        assert_false(qp_account_is_sound(&account, NUMBER));
    }
}

static void text_without_an_end_is_ended_and_cleaned(void **state)
{
    struct qp_account account = usual();
    memset(account.words, '\033', sizeof account.words);
    assert_true(qp_account_is_sound(&account, NUMBER));
    assert_int_equal(strlen(account.words), QP_ACCOUNT_WORDS - 1);
    assert_int_equal(account.words[0], '?');
}

static void words_that_do_not_fit_end_after_a_word(void **state)
{
    struct qp_account account;
    char words[2 * QP_ACCOUNT_WORDS];
    memset(words, 'x', sizeof words);
    words[QP_ACCOUNT_WORDS - 20] = words[sizeof words - 1] = 0;
    qp_account_put_words(&account, words);
    assert_string_equal(account.words, words);
    words[QP_ACCOUNT_WORDS - 20] = ' ';
    qp_account_put_words(&account, words);
    assert_int_equal(strlen(account.words), QP_ACCOUNT_WORDS - 20 + 3);
    assert_string_equal(account.words + QP_ACCOUNT_WORDS - 20, "...");
    qp_account_put_words(&account, NULL);
    assert_string_equal(account.words, "");
}

TESTS(words_that_do_not_fit_end_after_a_word,
      one_with_usual_values_is_sound,
      one_on_another_number_is_not,
      each_value_that_there_is_not_is_noticed,
      text_without_an_end_is_ended_and_cleaned)
