/* The state table against an independent statement of the specification's: as words, one line a transition. */
#include "verbs/qp/qp_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verbs/kinds/kinds.h"

static const struct {
    const char *name;
    int value;
} attributes[] = {
    {"CUR_STATE", IBV_QP_CUR_STATE},
    {"EN_SQD_ASYNC_NOTIFY", IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {"ACCESS_FLAGS", IBV_QP_ACCESS_FLAGS},
    {"PKEY_INDEX", IBV_QP_PKEY_INDEX},
    {"PORT", IBV_QP_PORT},
    {"QKEY", IBV_QP_QKEY},
    {"AV", IBV_QP_AV},
    {"PATH_MTU", IBV_QP_PATH_MTU},
    {"TIMEOUT", IBV_QP_TIMEOUT},
    {"RETRY_CNT", IBV_QP_RETRY_CNT},
    {"RNR_RETRY", IBV_QP_RNR_RETRY},
    {"RQ_PSN", IBV_QP_RQ_PSN},
    {"MAX_QP_RD_ATOMIC", IBV_QP_MAX_QP_RD_ATOMIC},
    {"ALT_PATH", IBV_QP_ALT_PATH},
    {"MIN_RNR_TIMER", IBV_QP_MIN_RNR_TIMER},
    {"SQ_PSN", IBV_QP_SQ_PSN},
    {"MAX_DEST_RD_ATOMIC", IBV_QP_MAX_DEST_RD_ATOMIC},
    {"PATH_MIG_STATE", IBV_QP_PATH_MIG_STATE},
    {"CAP", IBV_QP_CAP},
    {"DEST_QPN", IBV_QP_DEST_QPN},
    {"RATE_LIMIT", IBV_QP_RATE_LIMIT},
};

static const struct {
    const char *name;
    const struct qp_kind *value;
} types[] = {
    {"RC", &rc_kind},         {"UC", &uc_kind},         {"UD", &ud_kind},
    {"XSND", &xrc_send_kind}, {"XRCV", &xrc_recv_kind}, {"RAW", &raw_kind},
};

static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

enum { TYPES = sizeof(types) / sizeof(*types), STATES = 7, BITS = 31 };

static const struct {
    const char *from, *to, *types, *required, *optional;
} rows[] = {
    {"RESET", "INIT", "RC UC XSND XRCV", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
    {"RESET", "INIT", "UD", "PKEY_INDEX PORT QKEY", ""},
    {"RESET", "INIT", "RAW", "PORT", ""},

    {"INIT", "INIT", "RC UC XSND XRCV", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
    {"INIT", "INIT", "UD", "", "PKEY_INDEX PORT QKEY"},
    {"INIT", "INIT", "RAW", "", ""},

    {"INIT", "RTR", "RC XRCV", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
     "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {"INIT", "RTR", "UC XSND", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {"INIT", "RTR", "UD", "", "PKEY_INDEX QKEY"},
    {"INIT", "RTR", "RAW", "", ""},

    {"RTR", "RTS", "RC", "SQ_PSN TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC",
     "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {"RTR", "RTS", "XSND", "SQ_PSN TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC",
     "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {"RTR", "RTS", "XRCV", "SQ_PSN TIMEOUT", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {"RTR", "RTS", "UC", "SQ_PSN", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {"RTR", "RTS", "UD", "SQ_PSN", "CUR_STATE QKEY"},
    {"RTR", "RTS", "RAW", "", "RATE_LIMIT"},

    {"RTS", "RTS", "RC XRCV", "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {"RTS", "RTS", "UC XSND", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {"RTS", "RTS", "UD", "", "CUR_STATE QKEY"},
    {"RTS", "RTS", "RAW", "", "RATE_LIMIT"},

    {"RTS", "SQD", "RC UC UD XSND XRCV", "", "EN_SQD_ASYNC_NOTIFY"},
    {"RTS", "SQD", "RAW", "", ""},

    {"SQD", "RTS", "RC XRCV", "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {"SQD", "RTS", "UC XSND", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {"SQD", "RTS", "UD", "", "CUR_STATE QKEY"},
    {"SQD", "RTS", "RAW", "", ""},

    {"SQD", "SQD", "RC", "",
     "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX "
     "MIN_RNR_TIMER PATH_MIG_STATE"},
    {"SQD", "SQD", "XSND", "",
     "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    {"SQD", "SQD", "XRCV", "",
     "PORT AV TIMEOUT MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE"},
    {"SQD", "SQD", "UC", "", "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    {"SQD", "SQD", "UD", "", "PKEY_INDEX QKEY"},
    {"SQD", "SQD", "RAW", "", ""},

    {"SQE", "RTS", "UC", "", "CUR_STATE ACCESS_FLAGS"},
    {"SQE", "RTS", "UD", "", "CUR_STATE QKEY"},
    {"SQE", "RTS", "RAW", "", ""},
};

static bool lists(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

static int mask_of(const char *words)
{
    int mask = 0;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
        if (lists(words, attributes[i].name))
            mask |= attributes[i].value;
    return mask;
}

struct expected {
    bool allowed;
    int required, optional;
};

static struct expected expect(int type, int from, int to)
{
    struct expected expected = {.allowed = !strcmp(states[to], "RESET") || !strcmp(states[to], "ERR")};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!strcmp(rows[i].from, states[from]) && !strcmp(rows[i].to, states[to]) &&
            lists(rows[i].types, types[type].name))
            expected = (struct expected){true, mask_of(rows[i].required), mask_of(rows[i].optional)};
    if (from == to)
        expected.optional |= IBV_QP_STATE;
    else
        expected.required |= IBV_QP_STATE;
    return expected;
}

static void answers(int type, int from, int to, int mask, enum reason reason)
{
    const enum reason got = qp_state_check(types[type].value, (enum ibv_qp_state)from, (enum ibv_qp_state)to, mask);
    if (got != reason)
        fail_msg("%s %s -> %s with mask 0x%x: %s instead of %s", types[type].name, states[from], states[to], mask,
                 got ? reason_name(got) : "allowed", reason ? reason_name(reason) : "allowed");
}

static void check_bits(int type, int from, int to, struct expected expected)
{
    answers(type, from, to, expected.required, REASON_NONE);
    answers(type, from, to, expected.required | expected.optional, REASON_NONE);
    for (int bit = 0; bit < BITS; bit++) {
        const int one = 1 << bit;
        if (expected.required & one)
            answers(type, from, to, (expected.required | expected.optional) & ~one, REASON_ATTRIBUTE_MISSING);
        else if (expected.optional & one)
            answers(type, from, to, expected.required | one, REASON_NONE);
        else
            answers(type, from, to, expected.required | one, REASON_ATTRIBUTE_NOT_ALLOWED);
    }
}

static void every_bit_of_every_transition_is_judged_as_the_specification_says(void **unused)
{
    for (int type = 0; type < TYPES; type++)
        for (int from = 0; from < STATES; from++)
            for (int to = 0; to < STATES; to++) {
                const struct expected expected = expect(type, from, to);
                if (expected.allowed)
                    check_bits(type, from, to, expected);
                else
                    for (int bit = 0; bit < BITS; bit++)
                        answers(type, from, to, 1 << bit | IBV_QP_STATE, REASON_STATE_TRANSITION);
            }
}

/* The transitions of every program, in the words of ibv_modify_qp(3). */
static void the_masks_of_the_manual_page_lead_to_rts(void **unused)
{
    static const struct {
        const struct qp_kind *kind;
        int init, rtr, rts;
    } pages[] = {
        {&ud_kind, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, IBV_QP_STATE,
         IBV_QP_STATE | IBV_QP_SQ_PSN},
        {&uc_kind, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, IBV_QP_STATE | IBV_QP_SQ_PSN},
        {&rc_kind, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT},
        {&raw_kind, IBV_QP_STATE | IBV_QP_PORT, IBV_QP_STATE, IBV_QP_STATE},
    };
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        assert_int_equal(qp_state_check(pages[i].kind, IBV_QPS_RESET, IBV_QPS_INIT, pages[i].init), REASON_NONE);
        assert_int_equal(qp_state_check(pages[i].kind, IBV_QPS_INIT, IBV_QPS_RTR, pages[i].rtr), REASON_NONE);
        assert_int_equal(qp_state_check(pages[i].kind, IBV_QPS_RTR, IBV_QPS_RTS, pages[i].rts), REASON_NONE);
    }
}

static void a_state_or_type_that_does_not_exist_is_refused(void **unused)
{
    assert_int_equal(qp_state_check(&rc_kind, IBV_QPS_UNKNOWN, IBV_QPS_RESET, IBV_QP_STATE), REASON_STATE_UNKNOWN);
    assert_int_equal(qp_state_check(&rc_kind, IBV_QPS_RTS, (enum ibv_qp_state)1000, 1), REASON_STATE_UNKNOWN);
    assert_int_equal(qp_state_check(&rc_kind, (enum ibv_qp_state) - 1, IBV_QPS_ERR, 1), REASON_STATE_UNKNOWN);
    assert_int_equal(qp_state_check(qp_kind_find((enum ibv_qp_type)0xff), IBV_QPS_RTS, IBV_QPS_ERR, 1),
                     REASON_STATE_TRANSITION);
    assert_int_equal(qp_state_check(qp_kind_find((enum ibv_qp_type)0), IBV_QPS_RTS, IBV_QPS_ERR, 1),
                     REASON_STATE_TRANSITION);
    assert_int_equal(qp_state_check(qp_kind_find((enum ibv_qp_type)5), IBV_QPS_RESET, IBV_QPS_INIT, 1),
                     REASON_STATE_TRANSITION);
}

int main(void)
{
    kinds_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_every_transition_is_judged_as_the_specification_says),
        cmocka_unit_test(the_masks_of_the_manual_page_lead_to_rts),
        cmocka_unit_test(a_state_or_type_that_does_not_exist_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
