/* The responder: the order of a request's checks, the effect of its PSN, and the fields of every answer. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

static const uint32_t first = RIG_THEIRS, half = 1u << 23;

/* IBA 9.7.1: of all PSNs, one is expected, half of the rest are repeats and half are ahead. */
static void c9_7_1_half_of_the_psns_lie_behind_and_half_ahead(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first + half, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
    acknowledges(rig, first - 1);
    arrives(rig, WRITE_ONLY, first - 1, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
    acknowledges(rig, first - 1);
    arrives(rig, WRITE_ONLY, first + half - 1, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
    refuses(rig, SYNDROME_NAK_SEQUENCE, first);
    arrives(rig, WRITE_ONLY, first + 1, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
    is_silent(rig);
}

/* IBA 9.7.4.1: each of these is wrong in more than one way; the first check decides. */
static void c9_7_4_1_checks_are_made_in_their_order(void **state)
{
    enum { INVALID = SYNDROME_NAK_INVALID_REQUEST, ACCESS = SYNDROME_NAK_REMOTE_ACCESS };
    static const struct {
        enum operation operation;
        struct rig_packet packet;
        uint8_t syndrome;
        enum reason reason;
    } wrong[] = {
        /* sequence before length */
        {OPERATION_SEND_LAST, {.bytes = 0}, INVALID, REASON_REQUEST_SEQUENCE},
        /* sequence before receive */
        {OPERATION_SEND_LAST, {.bytes = 8}, INVALID, REASON_REQUEST_SEQUENCE},
        /* function before memory */
        {OPERATION_READ_REQUEST, {.packet = {.rkey = 1, .length = 8}}, INVALID, REASON_QP_PERMISSION},
        /* alignment before memory */
        {OPERATION_FETCH_ADD, {.packet = {.rkey = 1, .address = 4}}, INVALID, REASON_ATOMIC_ALIGNMENT},
        /* memory before length */
        {OPERATION_WRITE_ONLY, {.bytes = 8, .packet = {.rkey = 1, .length = 9}}, ACCESS, REASON_REMOTE_KEY_UNKNOWN},
        /* memory before receive */
        {OPERATION_WRITE_ONLY_IMMEDIATE, {.packet = {.rkey = 1, .length = 8}}, ACCESS, REASON_REMOTE_KEY_UNKNOWN},
        /* length before receive */
        {OPERATION_SEND_FIRST, {.bytes = 0}, INVALID, REASON_MESSAGE_LENGTH},
        {OPERATION_WRITE_ONLY_IMMEDIATE, {.bytes = 8, .packet = {RETH(0, 9)}}, INVALID, REASON_MESSAGE_LENGTH},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        rig_make(rig);
        rig->engine.rc.settings.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
        rig_start(rig);
        rig_arrive(rig, wrong[i].operation, first, wrong[i].packet);
        drops(rig, wrong[i].reason);
        refuses(rig, wrong[i].syndrome, first);
        assert_int_equal(rig->failures, 1);
    }
}

/* IBA 9.7.4.1.1: the PSN is checked before all of that: an earlier or later packet is not checked further, however
 * wrong it is. */
static void c9_7_4_1_1_only_the_expected_packet_is_checked_further(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first + 5, .bytes = 1, .packet = {.rkey = 1, .length = 9});
    refuses(rig, SYNDROME_NAK_SEQUENCE, first);
    arrives(rig, SEND_LAST, first - 1, .bytes = 0);
    acknowledges(rig, first - 1);
    arrives(rig, WRITE_MIDDLE, first - 2, .bytes = 0);
    acknowledges(rig, first - 1);
    assert_int_equal(rig->failures, 0);
    assert_int_equal(rig->looked_up, 0);
}

/* IBA 9.7.4.1.5: 2^31 bytes at most, here what the device says. */
static void c9_7_4_1_5_a_reth_must_not_announce_more_than_the_device_takes(void **state)
{
    static const enum operation operations[] = {OPERATION_READ_REQUEST, OPERATION_WRITE_FIRST};
    struct rig *rig = *state;
    for (unsigned i = 0; i < 2; i++) {
        rig_make(rig);
        rig->engine.rc.settings.max_message = 1000;
        rig_start(rig);
        rig_arrive(rig, operations[i], first, (struct rig_packet){.bytes = i, .packet = {RETH(0, 1001)}});
        drops(rig, REASON_MESSAGE_LENGTH);
        refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first);
    }
}

/* Repeats show that an answer was lost, whether or not a gap is open. */
static void c9_7_5_1_a_repeat_is_acknowledged_while_a_gap_is_open(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1)});
    arrives(rig, WRITE_ONLY, first + 2, .bytes = 1, .packet = {RETH(0, 1)});
    refuses(rig, SYNDROME_NAK_SEQUENCE, first + 1);
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1)});
    acknowledges(rig, first);
    arrives(rig, WRITE_ONLY, first + 3, .bytes = 1, .packet = {RETH(0, 1)});
    is_silent(rig);
}

/* IBA 9.7.7.1: one for each message that is complete; repeats don't count, and refusals say it, too. */
static void c9_7_7_1_the_msn_counts_messages(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 600);
    arrives(rig, SEND_FIRST, first, .bytes = 256, .packet = {.ack_requested = true});
    acknowledges(rig, first);
    assert_int_equal(rig->out.msn, 0);
    arrives(rig, SEND_LAST, first + 1, .bytes = 8, .packet = {.ack_requested = true});
    acknowledges(rig, first + 1);
    assert_int_equal(rig->out.msn, 1);
    arrives(rig, READ_REQUEST, first + 2, .packet = {RETH(0, 300)});
    assert_int_equal(sends(rig, READ_RESPONSE_FIRST, first + 2)->msn, 2);
    assert_int_equal(sends(rig, READ_RESPONSE_LAST, first + 3)->msn, 2);
    arrives(rig, FETCH_ADD, first + 4, .packet = {RETH(0, 0)});
    assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, first + 4)->msn, 3);
    arrives(rig, SEND_LAST, first + 1, .bytes = 8, .packet = {.ack_requested = true});
    acknowledges(rig, first + 1);
    assert_int_equal(rig->out.msn, 3);
    arrives(rig, SEND_ONLY, first + 5, .bytes = 8);
    refuses(rig, SYNDROME_RNR | 12, first + 5);
    assert_int_equal(rig->out.msn, 3);
}

static void c9_7_7_1_the_msn_wraps_around(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.responder.msn = PSN_MASK;
    arrives(rig, WRITE_ONLY, first, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
    acknowledges(rig, first);
    assert_int_equal(rig->out.msn, 0);
}

/* IBA 9.7.7.2: the credit count of an ACK that says "no flow control" lets the peer send when it likes. */
static void c9_7_7_2_no_answer_gives_credits(void **state)
{
    struct rig *rig = *state;
    for (unsigned posted = 0; posted < 3; posted++, post_receive(rig, 8)) {
        uint32_t psn = first + 3 * posted;
        arrives(rig, WRITE_ONLY, psn, .bytes = 1, .packet = {RETH(0, 1), .ack_requested = true});
        acknowledges(rig, psn);
        assert_int_equal(rig->out.syndrome, 0x1f);
        arrives(rig, READ_REQUEST, psn + 1, .packet = {RETH(0, 1)});
        assert_int_equal(sends(rig, READ_RESPONSE_ONLY, psn + 1)->syndrome, 0x1f);
        arrives(rig, COMPARE_SWAP, psn + 2, .packet = {RETH(0, 0)});
        assert_int_equal(sends(rig, ATOMIC_ACKNOWLEDGE, psn + 2)->syndrome, 0x1f);
    }
}

/* XRC annex: every packet of a message names the SRQ, and the same one. */
static void a14_3_a_message_stays_with_its_srq(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.service = SERVICE_XRC;
    uint64_t id = post_receive(rig, 600);
    arrives(rig, SEND_FIRST, first, .bytes = 256, .packet = {.srq = 8});
    assert_int_equal(rig->srq, 8);
    arrives(rig, SEND_LAST, first + 1, .bytes = 8, .packet = {.srq = 9});
    drops(rig, REASON_REQUEST_SEQUENCE);
    delivers(rig, id, IBV_WC_WR_FLUSH_ERR);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 1);
}

static void a14_3_requests_for_different_srqs_share_the_psns(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.service = SERVICE_XRC;
    uint64_t one = post_receive(rig, 8), two = post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.srq = 8});
    assert_int_equal(rig->srq, 8);
    arrives(rig, SEND_ONLY, first + 1, .bytes = 8, .packet = {.srq = 9, .ack_requested = true});
    assert_int_equal(rig->srq, 9);
    delivers(rig, one, IBV_WC_SUCCESS);
    delivers(rig, two, IBV_WC_SUCCESS);
    acknowledges(rig, first + 1);
}

static void a14_3_an_srq_that_is_not_there_is_refused(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.service = SERVICE_XRC;
    post_receive(rig, 8);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.srq = RIG_NO_SRQ});
    drops(rig, REASON_XRC_SRQ);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first);
    assert_int_equal(rig->taken, 0);
}

/* The memory of a READ belongs to the SRQ that the request named, also when another was named meanwhile. */
static void a14_3_a_read_is_answered_for_its_srq(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.service = SERVICE_XRC;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 300), .srq = 8});
    arrives(rig, WRITE_ONLY, first + 2, .bytes = 1, .packet = {RETH(0, 1), .srq = 9});
    sends(rig, READ_RESPONSE_FIRST, first);
    assert_int_equal(rig->srq, 8);
    arrives(rig, WRITE_ONLY, first + 3, .bytes = 1, .packet = {RETH(0, 1), .srq = 9});
    sends(rig, READ_RESPONSE_LAST, first + 1);
    assert_int_equal(rig->srq, 8);
}

TESTS_OF(script, c9_7_1_half_of_the_psns_lie_behind_and_half_ahead,
                 c9_7_4_1_checks_are_made_in_their_order,
                 c9_7_4_1_1_only_the_expected_packet_is_checked_further,
                 c9_7_4_1_5_a_reth_must_not_announce_more_than_the_device_takes,
                 c9_7_5_1_a_repeat_is_acknowledged_while_a_gap_is_open,
                 c9_7_7_1_the_msn_counts_messages,
                 c9_7_7_1_the_msn_wraps_around,
                 c9_7_7_2_no_answer_gives_credits,
                 a14_3_a_message_stays_with_its_srq,
                 a14_3_requests_for_different_srqs_share_the_psns,
                 a14_3_an_srq_that_is_not_there_is_refused,
                 a14_3_a_read_is_answered_for_its_srq)
