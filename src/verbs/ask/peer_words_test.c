/* Each possible fault of a silent peer has its sentence, and a peer without fault gets no sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "process/process.h"
#include "tap/traffic.h"
#include "verbs/ask/peer_words.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/kinds/kinds.h"
#include "verbs/qp/kind.h"
#include "verbs/qp/qp.h"

enum { OWN = 0x21, PEERS = 0x34, PSN = 500 };

#define WHO "process 4711 (server)"

static struct process process;

static const struct qp_kind *kind(const char *name)
{
    const struct qp_kind *const *at = qp_kinds;
    while (*at && strcmp((*at)->name, name))
        at++;
    return *at;
}

static struct qp connected(void)
{
    struct qp qp = {.process = &process, .number = OWN, .attr = {.dest_qp_num = PEERS, .sq_psn = PSN}};
    qp_set_kind(&qp, kind("RC"));
    return qp;
}

/* A peer with which nothing is wrong. */
static struct qp_account well(void)
{
    return (struct qp_account){.version = QP_ACCOUNT_VERSION,
                               .number = PEERS,
                               .found = QP_ACCOUNT_FOUND,
                               .count = 1,
                               .numbers = {PEERS},
                               .state = IBV_QPS_RTS,
                               .type = kind("RC")->type,
                               .peer = OWN,
                               .rq_psn = PSN,
                               .path_mtu = IBV_MTU_1024};
}

static const struct {
    size_t offset; /* the field of the account that is another one */
    uint32_t value;
    const char *sentence;
} silent[] = {
    {offsetof(struct qp_account, state), IBV_QPS_RTR,
     "queue pair 0x34 of " WHO " is in RTR and connected with this one, but answered nothing"},
    {offsetof(struct qp_account, found), QP_ACCOUNT_UNKNOWN, WHO " has no queue pair 0x34: it has 0x34"},
    {offsetof(struct qp_account, found), QP_ACCOUNT_BUSY, "a thread of " WHO " is within a call of queue pair 0x34"},
    {offsetof(struct qp_account, state), IBV_QPS_RESET,
     "queue pair 0x34 of " WHO " is in RESET: it was never brought to RTR"},
    {offsetof(struct qp_account, state), IBV_QPS_INIT,
     "queue pair 0x34 of " WHO " is in INIT: it was never brought to RTR"},
    {offsetof(struct qp_account, state), IBV_QPS_ERR, "queue pair 0x34 of " WHO " is in ERR"},
    {offsetof(struct qp_account, peer), OWN + 1,
     "queue pair 0x34 of " WHO " is connected with queue pair 0x22, and not with this one"},
    {offsetof(struct qp_account, port_down), 1,
     "the port of queue pair 0x34 of " WHO " is down (softverbs event port-up)"},
    {offsetof(struct qp_account, rq_psn), PSN + 1,
     "queue pair 0x34 of " WHO " has rq_psn 501 and this one sq_psn 500: the peer's rq_psn must be this sq_psn"},
};

static void what_is_wrong_with_a_silent_peer_is_said(void **state)
{
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        struct qp qp = connected();
        struct qp_account account = well();
        char said[INQUIRY_WORDS];
        memcpy((char *)&account + silent[i].offset, &silent[i].value, sizeof silent[i].value);
        peer_words_silence(&qp, &account, WHO, said);
        assert_string_equal(said, silent[i].sentence);
    }
}

static void a_peer_that_failed_says_of_what(void **state)
{
    struct qp qp = connected();
    struct qp_account account = well();
    char said[INQUIRY_WORDS], wanted[INQUIRY_WORDS];
    account.state = IBV_QPS_ERR;
    account.first_error = REASON_REMOTE_RANGE;
    strcpy(account.words, "8 bytes at 0x10");
    peer_words_silence(&qp, &account, WHO, said);
    snprintf(wanted, sizeof wanted, "queue pair 0x34 of " WHO " is in ERR, 8 bytes at 0x10: %s (its reason %u)",
             reason_sentence(REASON_REMOTE_RANGE), REASON_REMOTE_RANGE);
    assert_string_equal(said, wanted);
}

static void a_queue_pair_that_sends_to_itself_is_recognized(void **state)
{
    struct qp qp = connected();
    struct qp_account account = well();
    char said[INQUIRY_WORDS];
    qp.attr.dest_qp_num = account.number = account.peer = OWN;
    account.rq_psn = PSN + 1;
    peer_words_silence(&qp, &account, WHO, said);
    assert_string_equal(said, "dest_qp_num is 0x21, the queue pair's own number, and not that of its peer");
    account.rq_psn = PSN; /* as one that is connected with itself on purpose has */
    peer_words_silence(&qp, &account, WHO, said);
    assert_null(strstr(said, "own number"));
}

static void the_types_of_both_are_named(void **state)
{
    struct qp qp = connected();
    struct qp_account account = well();
    char said[INQUIRY_WORDS];
    account.type = kind("UC")->type;
    peer_words_silence(&qp, &account, WHO, said);
    assert_string_equal(said, "queue pair 0x34 of " WHO " is of type UC, and this one RC");
}

static void faults_that_were_asked_for_are_the_cause_of_a_silent_peer_that_is_well(void **state)
{
    struct taps taps = {.faulty = true};
    struct qp qp = connected();
    struct qp_account account = well();
    char said[INQUIRY_WORDS];
    atomic_store(&process.traffic.taps, &taps);
    peer_words_silence(&qp, &account, WHO, said);
    atomic_store(&process.traffic.taps, NULL);
    assert_non_null(strstr(said, "faults that were asked for lose packets here"));
}

static void one_type_after_the_other_is_no_matter_to_datagrams(void **state)
{
    struct qp qp = connected();
    struct qp_account account = well();
    char said[INQUIRY_WORDS];
    qp_set_kind(&qp, kind("UD"));
    account.peer = OWN + 1;
    peer_words_silence(&qp, &account, WHO, said);
    assert_non_null(strstr(said, "answered nothing"));
}

static void more_numbers_than_are_listed_are_counted(void **state)
{
    struct qp qp = connected();
    struct qp_account account = well();
    char said[INQUIRY_WORDS];
    account.found = QP_ACCOUNT_UNKNOWN;
    account.count = UINT32_MAX;
    for (unsigned i = 0; i < QP_ACCOUNT_NUMBERS; i++)
        account.numbers[i] = 0xfffff0 + i;
    peer_words_silence(&qp, &account, WHO, said);
    assert_string_equal(said, WHO " has no queue pair 0x34: it has 0xfffff0, 0xfffff1, 0xfffff2, 0xfffff3 and "
                                  "4294967291 more");
    account.count = 0;
    peer_words_silence(&qp, &account, WHO, said);
    assert_string_equal(said, WHO " has no queue pair 0x34: it has none");
}

static void each_way_not_to_be_heard_has_its_words(void **state)
{
    static const char *const ways[] = {
        [PEER_OF_ANOTHER_USER] = "another user's",
        [PEER_ENDED] = "has ended",
        [PEER_STOPPED] = "is stopped",
        [PEER_BUSY] = "within 100 ms",
        [PEER_SAID_NOTHING] = "RLIMIT",
        [PEER_UNASKED] = "not be asked",
    };
    for (unsigned why = 0; why < sizeof ways / sizeof *ways; why++) {
        char said[INQUIRY_WORDS];
        peer_words_unheard(WHO, (enum peer_unheard)why, said);
        assert_non_null(strstr(said, WHO));
        for (unsigned other = 0; other < sizeof ways / sizeof *ways; other++)
            assert_int_equal(strstr(said, ways[other]) != NULL, other == why);
    }
}

static void only_what_a_responder_refuses_is_a_refusal(void **state)
{
    struct qp_account account = well();
    char said[INQUIRY_WORDS] = "";
    account.first_error = REASON_RETRY_EXCEEDED;
    peer_words_refusal(&account, WHO, said);
    assert_string_equal(said, "");
    account.first_error = REASON_REMOTE_RANGE;
    peer_words_refusal(&account, WHO, said);
    assert_non_null(strstr(said, WHO " refused it: "));
    peer_words_logged("qp 0x34: 8 bytes at 0x10 (reason 105)", WHO, strcpy(said, ""));
    assert_string_equal(said, "");
    peer_words_logged("qp 0x34: 8 bytes at 0x10 (reason 207)", WHO, said);
    assert_string_equal(said, WHO " refused it: qp 0x34: 8 bytes at 0x10 (its reason 207)");
}

int main(void)
{
    kinds_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_with_a_silent_peer_is_said),
        cmocka_unit_test(a_peer_that_failed_says_of_what),
        cmocka_unit_test(a_queue_pair_that_sends_to_itself_is_recognized),
        cmocka_unit_test(the_types_of_both_are_named),
        cmocka_unit_test(faults_that_were_asked_for_are_the_cause_of_a_silent_peer_that_is_well),
        cmocka_unit_test(one_type_after_the_other_is_no_matter_to_datagrams),
        cmocka_unit_test(more_numbers_than_are_listed_are_counted),
        cmocka_unit_test(each_way_not_to_be_heard_has_its_words),
        cmocka_unit_test(only_what_a_responder_refuses_is_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
