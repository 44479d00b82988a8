#include <string.h>

#include "base/testing/group.h"
#include "transport/testing/script.h"

/* ---- sending ---- */

static void c9_8_3_a_datagram_says_who_sends_it(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND_WITH_IMM, .flags = IBV_SEND_SOLICITED, .length = 256, .at = 64, .immediate = 7,
         .qkey = 0x77);
    const struct packet *packet = sends(rig, SEND_ONLY_IMMEDIATE, 100);
    assert_int_equal(packet->source, RIG_NUMBER);
    assert_int_equal(packet->qkey, 0x77);
    assert_int_equal(packet->immediate, 7);
    assert_int_equal(packet->payload.length, 256);
    assert_true(packet->solicited);
    assert_memory_equal(rig->carried, rig->memory + 64, 256);
}

static void c10_2_5_a_controlled_qkey_means_our_own(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .qkey = 0x80000077);
    assert_int_equal(sends(rig, SEND_ONLY, 100)->qkey, RIG_QKEY);
}

static void c9_8_3_work_ends_when_its_packet_is_gone(void **state)
{
    struct rig *rig = *state;
    uint64_t one = post(rig, .opcode = IBV_WR_SEND, .length = 8), two = post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, 100);
    ends_nothing(rig);
    assert_int_equal(engine_next_datagram(&rig->engine)->id, two);
    ends(rig, one, IBV_WC_SUCCESS);
    assert_int_equal(engine_next_datagram(&rig->engine)->id, two);
    ends_nothing(rig);
    sends(rig, SEND_ONLY, 101);
    assert_null(engine_next_datagram(&rig->engine));
    ends(rig, two, IBV_WC_SUCCESS);
    is_silent(rig);
}

static void c9_8_3_sequence_numbers_wrap(void **state)
{
    struct rig *rig = *state;
    rig->engine.ud.next_psn = PSN_MASK;
    post(rig, .opcode = IBV_WR_SEND);
    post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, PSN_MASK);
    sends(rig, SEND_ONLY, 0);
}

static void c9_8_3_a_datagram_longer_than_the_mtu_is_refused(void **state)
{
    struct rig *rig = *state;
    uint64_t bad = post(rig, .opcode = IBV_WR_SEND, .length = 257);
    is_silent(rig);
    ends(rig, bad, IBV_WC_LOC_LEN_ERR);
    assert_true(rig->engine.ud.common.send_error);
}

static void draining_holds_work_back(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, 100);
    raises_nothing(rig);
    engine_drain(&rig->engine, true);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    uint64_t held = post(rig, .opcode = IBV_WR_SEND);
    is_silent(rig);
    engine_drain(&rig->engine, false);
    sends(rig, SEND_ONLY, 101);
    raises_nothing(rig);
    engine_drain(&rig->engine, true);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    rig->saw_end++;
    ends(rig, held, IBV_WC_SUCCESS);
}

/* ---- receiving ---- */

static void the_first_forty_bytes_are_the_grh(void **state)
{
    struct rig *rig = *state;
    uint8_t grh[UD_GRH_LENGTH];
    uint64_t receive = post_receive(rig, 100);
    memset(grh, 0x66, sizeof(grh));
    arrives(rig, SEND_ONLY_IMMEDIATE, 1, .bytes = 60, .fill = 9,
            .packet = {.grh = grh, .source = 0x33, .immediate = 4, .solicited = true});
    const struct recv_cqe *arrival = delivers(rig, receive, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, 100);
    assert_int_equal(arrival->source, 0x33);
    assert_int_equal(arrival->flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
    assert_int_equal(arrival->immediate_or_key, 4);
    assert_true(arrival->solicited);
    assert_memory_equal(rig->memory + 0x8000, grh, sizeof(grh));
    assert_int_equal(rig->memory[0x8000 + 40], 9);
    assert_int_equal(rig->memory[0x8000 + 99], 9);
}

static void an_unknown_grh_is_zeros(void **state)
{
    static const uint8_t zeros[UD_GRH_LENGTH];
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 40);
    memset(rig->memory + 0x8000, 0x66, 41);
    arrives(rig, SEND_ONLY, 1);
    const struct recv_cqe *arrival = delivers(rig, receive, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, 40);
    assert_int_equal(arrival->flags, 0);
    assert_memory_equal(rig->memory + 0x8000, zeros, sizeof(zeros));
    assert_int_equal(rig->memory[0x8000 + 40], 0x66);
}

static void c9_8_3_a_datagram_too_long_leaves_the_receive(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 60), next = post_receive(rig, 60);
    arrives(rig, SEND_ONLY, 1, .bytes = 21);
    drops(rig, REASON_PACKET_TOO_LONG);
    delivers_nothing(rig);
    assert_int_equal(rig->taken, 0); /* of an SRQ, another queue pair's datagram may have it */
    arrives(rig, SEND_ONLY, 2, .bytes = 20);
    delivers(rig, receive, IBV_WC_SUCCESS);
    arrives(rig, SEND_ONLY, 3, .bytes = 20);
    delivers(rig, next, IBV_WC_SUCCESS);
    assert_int_equal(rig->failures, 0);
}

static void c9_8_3_without_a_receive_the_datagram_is_lost(void **state)
{
    struct rig *rig = *state;
    arrives(rig, SEND_ONLY, 1);
    drops(rig, REASON_PACKET_NO_RECEIVE);
    uint64_t receive = post_receive(rig, 60);
    arrives(rig, SEND_ONLY, 2);
    delivers(rig, receive, IBV_WC_SUCCESS);
}

static void c9_6_1_strangers_are_dropped_before_a_receive_is_taken(void **state)
{
    struct rig *rig = *state;
    struct packet reliable = {.opcode = op_code(SERVICE_RC, OPERATION_SEND_ONLY), .pkey = 0xffff, .qkey = RIG_QKEY};
    struct packet unknown = {.opcode = op_code(SERVICE_UD, OPERATION_SEND_FIRST), .pkey = 0xffff, .qkey = RIG_QKEY};
    post_receive(rig, 600);
    arrives(rig, SEND_ONLY, 1, .packet = {.qkey = 0x2222});
    drops(rig, REASON_PACKET_QKEY);
    arrives(rig, SEND_ONLY, 1, .packet = {.pkey = 0x1234});
    drops(rig, REASON_PACKET_PKEY);
    arrives(rig, SEND_ONLY, 1, .bytes = 257);
    drops(rig, REASON_PACKET_TOO_LONG);
    engine_receive(&rig->engine, &reliable, rig->now);
    drops(rig, REASON_PACKET_SERVICE);
    engine_receive(&rig->engine, &unknown, rig->now);
    drops(rig, REASON_PACKET_OPCODE);
    assert_int_equal(rig->taken, 0);
}

static void flushing_ends_everything(void **state)
{
    struct rig *rig = *state;
    uint64_t sent = post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, 100);
    uint64_t waiting = post(rig, .opcode = IBV_WR_SEND);
    engine_flush(&rig->engine);
    ends(rig, sent, IBV_WC_SUCCESS);
    ends(rig, waiting, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 0);
    uint64_t late = post(rig, .opcode = IBV_WR_SEND);
    ends(rig, late, IBV_WC_WR_FLUSH_ERR);
    is_silent(rig);
}

static void reset_forgets_and_keeps_the_settings(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND);
    engine_reset(&rig->engine);
    ends_nothing(rig);
    delivers_nothing(rig);
    arrives(rig, SEND_ONLY, 1);
    drops(rig, REASON_PACKET_QP_STATE);
    rig_start(rig);
    uint64_t receive = post_receive(rig, 64);
    arrives(rig, SEND_ONLY, 1, .bytes = 24);
    delivers(rig, receive, IBV_WC_SUCCESS);
    post(rig, .opcode = IBV_WR_SEND);
    assert_int_equal(sends(rig, SEND_ONLY, 100)->source, RIG_NUMBER);
}

TESTS_OF(ud_script, c9_8_3_a_datagram_says_who_sends_it, c10_2_5_a_controlled_qkey_means_our_own,
         c9_8_3_work_ends_when_its_packet_is_gone, c9_8_3_sequence_numbers_wrap,
         c9_8_3_a_datagram_longer_than_the_mtu_is_refused, draining_holds_work_back, the_first_forty_bytes_are_the_grh,
         an_unknown_grh_is_zeros, c9_8_3_a_datagram_too_long_leaves_the_receive,
         c9_8_3_without_a_receive_the_datagram_is_lost, c9_6_1_strangers_are_dropped_before_a_receive_is_taken,
         flushing_ends_everything, reset_forgets_and_keeps_the_settings)
