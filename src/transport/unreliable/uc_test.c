#include <string.h>

#include "base/testing/group.h"
#include "transport/testing/script.h"

#define arrives_in_three(rig, kind, psn)                                                                               \
    do {                                                                                                               \
        arrives(rig, kind##_FIRST, psn, .bytes = 256, .fill = 1, .packet = {RETH(0x100, 600)});                        \
        arrives(rig, kind##_MIDDLE, (psn) + 1, .bytes = 256, .fill = 2);                                               \
        arrives(rig, kind##_LAST, (psn) + 2, .bytes = 88, .fill = 3);                                                  \
    } while (0)

/* ---- sending ---- */

static void c9_8_2_a_message_is_cut_into_segments(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND_WITH_IMM, .flags = IBV_SEND_SOLICITED, .length = 600, .at = 64, .immediate = 7);
    assert_int_equal(sends(rig, SEND_FIRST, 100)->payload.length, 256);
    assert_false(rig->out.solicited);
    assert_memory_equal(rig->carried, rig->memory + 64, 256);
    assert_int_equal(sends(rig, SEND_MIDDLE, 101)->payload.length, 256);
    assert_int_equal(sends(rig, SEND_LAST_IMMEDIATE, 102)->payload.length, 88);
    assert_int_equal(rig->out.immediate, 7);
    assert_true(rig->out.solicited);
    assert_false(rig->out.ack_requested);
    assert_memory_equal(rig->carried, rig->memory + 64 + 512, 88);
    is_silent(rig);
}

static void c9_8_2_a_write_names_its_target_once(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 257, .remote = 0x4000, .rkey = 9);
    const struct packet *packet = sends(rig, WRITE_FIRST, 100);
    assert_int_equal(packet->address, 0x4000);
    assert_int_equal(packet->rkey, 9);
    assert_int_equal(packet->length, 257);
    assert_int_equal(sends(rig, WRITE_LAST, 101)->payload.length, 1);
    post(rig, .opcode = IBV_WR_RDMA_WRITE, .rkey = 9);
    assert_int_equal(sends(rig, WRITE_ONLY, 102)->payload.length, 0);
    is_silent(rig);
}

static void c9_8_2_work_ends_when_its_last_packet_is_gone(void **state)
{
    struct rig *rig = *state;
    uint64_t one = post(rig, .opcode = IBV_WR_SEND, .length = 300), two = post(rig, .opcode = IBV_WR_SEND, .length = 1);
    sends(rig, SEND_FIRST, 100);
    sends(rig, SEND_LAST, 101);
    ends_nothing(rig); /* the sender of the packet still reads the memory */
    sends(rig, SEND_ONLY, 102);
    ends(rig, one, IBV_WC_SUCCESS);
    ends_nothing(rig);
    assert_true(rig_has_output(rig)); /* the end of the second */
    is_silent(rig);
    ends(rig, two, IBV_WC_SUCCESS);
}

static void c9_8_2_sequence_numbers_wrap(void **state)
{
    struct rig *rig = *state;
    rig->engine.uc.next_psn = rig->engine.uc.expected_psn = PSN_MASK;
    uint64_t receive = post_receive(rig, 600);
    post(rig, .opcode = IBV_WR_SEND, .length = 300);
    sends(rig, SEND_FIRST, PSN_MASK);
    sends(rig, SEND_LAST, 0);
    arrives_in_three(rig, SEND, PSN_MASK);
    assert_int_equal(delivers(rig, receive, IBV_WC_SUCCESS)->length, 600);
}

static void c9_9_2_a_key_that_goes_bad_within_a_message_breaks_it_there(void **state)
{
    struct rig *rig = *state;
    uint64_t bad = post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, 100);
    rig->deregistered = true;
    is_silent(rig);
    ends(rig, bad, IBV_WC_LOC_PROT_ERR);
    rig->deregistered = rig->engine.uc.common.send_error = false;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, 103);
}

static void a_message_longer_than_allowed_is_refused(void **state)
{
    struct rig *rig = *state;
    rig->engine.uc.common.settings.max_message = 1000;
    uint64_t bad = post(rig, .opcode = IBV_WR_SEND, .length = 1001);
    is_silent(rig);
    ends(rig, bad, IBV_WC_LOC_LEN_ERR);
}

static void local_work_is_done_in_its_turn(void **state)
{
    struct rig *rig = *state;
    uint64_t before = post(rig, .opcode = IBV_WR_SEND, .length = 8), local = post(rig, .opcode = IBV_WR_LOCAL_INV);
    sends(rig, SEND_ONLY, 100);
    assert_int_equal(rig->local_operation, 0);
    is_silent(rig);
    assert_int_equal(rig->local_operation, local);
    ends(rig, before, IBV_WC_SUCCESS);
    ends(rig, local, IBV_WC_SUCCESS);
    rig->local_status = IBV_WC_MW_BIND_ERR;
    uint64_t bad = post(rig, .opcode = IBV_WR_BIND_MW);
    is_silent(rig);
    ends(rig, bad, IBV_WC_MW_BIND_ERR);
}

static void draining_ends_what_was_begun(void **state)
{
    struct rig *rig = *state;
    uint64_t begun = post(rig, .opcode = IBV_WR_SEND, .length = 300), waits = post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_FIRST, 100);
    engine_drain(&rig->engine, true);
    raises_nothing(rig);
    sends(rig, SEND_LAST, 101);
    raises_nothing(rig);
    is_silent(rig);
    ends(rig, begun, IBV_WC_SUCCESS);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    ends_nothing(rig);
    engine_drain(&rig->engine, false);
    sends(rig, SEND_ONLY, 102);
    is_silent(rig);
    ends(rig, waits, IBV_WC_SUCCESS);
    engine_drain(&rig->engine, true);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    raises_nothing(rig);
}

/* ---- receiving ---- */

static void c9_8_2_2_packets_make_a_message(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 600);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256, .fill = 1);
    arrives(rig, SEND_MIDDLE, 2001, .bytes = 256, .fill = 2);
    delivers_nothing(rig);
    arrives(rig, SEND_LAST_IMMEDIATE, 2002, .bytes = 88, .fill = 3, .packet = {.immediate = 44, .solicited = true});
    const struct recv_cqe *arrival = delivers(rig, receive, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, 600);
    assert_int_equal(arrival->opcode, IBV_WC_RECV);
    assert_int_equal(arrival->flags, IBV_WC_WITH_IMM);
    assert_int_equal(arrival->immediate_or_key, 44);
    assert_true(arrival->solicited);
    assert_int_equal(rig->memory[0x8000], 1);
    assert_int_equal(rig->memory[0x8000 + 599], 3);
    is_silent(rig);
}

static void c9_8_2_2_a_gap_loses_the_message_and_keeps_the_receive(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 600), next = post_receive(rig, 600);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    arrives(rig, SEND_LAST, 2002, .bytes = 8);
    drops(rig, REASON_PACKET_PSN);
    arrives(rig, SEND_LAST, 2001, .bytes = 8);
    drops(rig, REASON_PACKET_SEQUENCE);
    assert_int_equal(rig->drops, 2);
    delivers_nothing(rig);
    assert_int_equal(rig->taken, 0); /* of an SRQ, another queue pair's message may have it */
    arrives(rig, SEND_ONLY, 2003, .bytes = 5);
    assert_int_equal(delivers(rig, receive, IBV_WC_SUCCESS)->length, 5);
    arrives_in_three(rig, SEND, 2004);
    assert_int_equal(delivers(rig, next, IBV_WC_SUCCESS)->length, 600);
}

static void c9_8_2_2_what_follows_a_last_packet_belongs_to_nothing(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 600);
    post_receive(rig, 600);
    arrives_in_three(rig, SEND, 2000);
    delivers(rig, receive, IBV_WC_SUCCESS);
    arrives(rig, SEND_MIDDLE, 2003, .bytes = 256);
    drops(rig, REASON_PACKET_SEQUENCE);
    arrives(rig, SEND_LAST, 2004, .bytes = 8);
    assert_int_equal(rig->drops, 2);
    delivers_nothing(rig);
}

static void c9_9_3_a_send_that_cannot_be_is_lost(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 600);
    rig->engine.uc.common.settings.max_message = 500;
    arrives_in_three(rig, SEND, 2000);
    drops(rig, REASON_PACKET_SEQUENCE);
    assert_int_equal(rig->dropped[0], REASON_MESSAGE_LENGTH);
    arrives(rig, SEND_FIRST, 3000);
    drops(rig, REASON_MESSAGE_LENGTH);
    delivers_nothing(rig);
}

static void c9_8_2_2_a_first_packet_gives_up_the_open_message(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 600);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    arrives_in_three(rig, SEND, 5000);
    assert_int_equal(delivers(rig, receive, IBV_WC_SUCCESS)->length, 600);
    assert_int_equal(rig->drops, 0);
    delivers_nothing(rig);
}

static void c9_8_2_2_a_write_gives_up_the_open_send_and_its_receive(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 600);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    assert_int_equal(rig->taken, 1);
    arrives_in_three(rig, WRITE, 5000);
    assert_int_equal(rig->taken, 0);
    assert_int_equal(rig->drops, 0);
}

static void c9_8_2_2_a_write_within_a_send_is_no_part_of_it(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 600);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    arrives(rig, WRITE_LAST, 2001, .bytes = 8);
    drops(rig, REASON_PACKET_SEQUENCE);
    arrives(rig, SEND_LAST, 2002, .bytes = 8);
    drops(rig, REASON_PACKET_PSN);
    delivers_nothing(rig);
}

static void c9_8_2_2_without_a_receive_the_message_is_lost(void **state)
{
    struct rig *rig = *state;
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    drops(rig, REASON_PACKET_NO_RECEIVE);
    uint64_t receive = post_receive(rig, 600);
    arrives(rig, SEND_LAST, 2001, .bytes = 8);
    delivers_nothing(rig);
    arrives(rig, SEND_ONLY, 2002, .bytes = 8);
    delivers(rig, receive, IBV_WC_SUCCESS);
}

static void c9_9_3_a_message_longer_than_the_receive_fails_the_queue_pair(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 300), work = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    arrives(rig, SEND_LAST, 2001, .bytes = 45);
    delivers(rig, receive, IBV_WC_LOC_LEN_ERR);
    ends(rig, work, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
    assert_true(rig->engine.uc.common.failed);
    arrives(rig, SEND_ONLY, 2002);
    drops(rig, REASON_PACKET_QP_STATE);
}

static void what_was_sent_before_a_failure_has_succeeded(void **state)
{
    struct rig *rig = *state;
    uint64_t work = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    rig_post_receive(rig, 0, 64, 5);
    sends(rig, SEND_ONLY, 100);
    arrives(rig, SEND_ONLY, 2000, .bytes = 8);
    ends(rig, work, IBV_WC_SUCCESS);
}

static void c9_8_2_2_a_write_lands(void **state)
{
    struct rig *rig = *state;
    arrives_in_three(rig, WRITE, 2000);
    assert_int_equal(rig->memory[0x100], 1);
    assert_int_equal(rig->memory[0x100 + 256], 2);
    assert_int_equal(rig->memory[0x100 + 599], 3);
    uint64_t receive = post_receive(rig, 0);
    arrives(rig, WRITE_ONLY_IMMEDIATE, 2003, .bytes = 9, .fill = 4, .packet = {RETH(0x200, 9), .immediate = 2});
    const struct recv_cqe *arrival = delivers(rig, receive, IBV_WC_SUCCESS);
    assert_int_equal(arrival->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(arrival->length, 9);
    assert_int_equal(arrival->immediate_or_key, 2);
    assert_int_equal(rig->drops, 0);
}

static void c9_9_3_a_write_without_permission_is_lost(void **state)
{
    struct rig *rig = *state;
    rig->memory[0x100] = 0;
    arrives(rig, WRITE_ONLY, 2000, .bytes = 8, .fill = 1, .packet = {.address = 0x100, .rkey = 5, .length = 8});
    drops(rig, REASON_PACKET_MEMORY);
    arrives(rig, WRITE_FIRST, 2001, .bytes = 256, .fill = 1, .packet = {RETH(RIG_MEMORY - 256, 257)});
    drops(rig, REASON_PACKET_MEMORY);
    arrives(rig, WRITE_LAST, 2002, .bytes = 1);
    drops(rig, REASON_PACKET_SEQUENCE);
    rig->engine.uc.common.settings.access = 0;
    arrives(rig, WRITE_ONLY, 2003, .bytes = 8, .fill = 1, .packet = {RETH(0x100, 8)});
    drops(rig, REASON_PACKET_MEMORY);
    assert_int_equal(rig->memory[0x100], 0);
    assert_int_equal(rig->failures, 0);
}

static void c9_9_3_a_write_that_does_not_add_up_is_lost(void **state)
{
    struct rig *rig = *state;
    rig->memory[0x100] = 0;
    arrives(rig, WRITE_ONLY, 2000, .bytes = 8, .fill = 1, .packet = {RETH(0x100, 9)});
    drops(rig, REASON_MESSAGE_LENGTH);
    assert_int_equal(rig->memory[0x100], 0);
    arrives(rig, WRITE_FIRST, 2001, .bytes = 256, .packet = {RETH(0x100, 300)});
    arrives(rig, WRITE_MIDDLE, 2002, .bytes = 256);
    drops(rig, REASON_MESSAGE_LENGTH);
    arrives(rig, WRITE_FIRST, 2003, .bytes = 256, .packet = {RETH(0x100, 300)});
    arrives(rig, WRITE_LAST, 2004, .bytes = 43);
    drops(rig, REASON_MESSAGE_LENGTH);
    rig->engine.uc.common.settings.max_message = 1000;
    arrives(rig, WRITE_FIRST, 2005, .bytes = 256, .packet = {RETH(0x100, 1001)});
    drops(rig, REASON_MESSAGE_LENGTH);
    assert_int_equal(rig->drops, 4);
}

static void c9_8_2_2_an_immediate_without_a_receive_is_lost_with_its_bytes(void **state)
{
    struct rig *rig = *state;
    rig->memory[0x100] = 0;
    arrives(rig, WRITE_ONLY_IMMEDIATE, 2000, .bytes = 8, .fill = 1, .packet = {RETH(0x100, 8)});
    drops(rig, REASON_PACKET_NO_RECEIVE);
    assert_int_equal(rig->memory[0x100], 0);
}

static void c9_6_1_strangers_are_dropped(void **state)
{
    struct rig *rig = *state;
    struct packet reliable = {.opcode = op_code(SERVICE_RC, OPERATION_SEND_ONLY), .pkey = 0xffff};
    struct packet unknown = {.opcode = op_code(SERVICE_UC, OPERATION_READ_REQUEST), .pkey = 0xffff};
    post_receive(rig, 64);
    engine_receive(&rig->engine, &reliable, rig->now);
    drops(rig, REASON_PACKET_SERVICE);
    engine_receive(&rig->engine, &unknown, rig->now);
    drops(rig, REASON_PACKET_OPCODE);
    arrives(rig, SEND_ONLY, 2000, .packet = {.pkey = 0x1234});
    drops(rig, REASON_PACKET_PKEY);
    delivers_nothing(rig);
}

static void c10_9_3_partial_members_do_not_talk_to_each_other(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 64);
    rig->engine.uc.common.settings.pkey = 0x1234;
    arrives(rig, SEND_ONLY, 2000, .packet = {.pkey = 0x1234});
    drops(rig, REASON_PACKET_PKEY);
    arrives(rig, SEND_ONLY, 2000, .packet = {.pkey = 0x9234});
    delivers(rig, receive, IBV_WC_SUCCESS);
    rig->engine.uc.common.settings.pkey = 0x8000; /* the invalid key */
    arrives(rig, SEND_ONLY, 2001, .packet = {.pkey = 0x8000});
    drops(rig, REASON_PACKET_PKEY);
}

static void the_first_packet_establishes(void **state)
{
    struct rig *rig = *state;
    rig->engine.uc.common.transmitting = false;
    arrives(rig, SEND_ONLY, 2000);
    raises(rig, IBV_EVENT_COMM_EST);
    arrives(rig, SEND_ONLY, 2001);
    raises_nothing(rig);
}

static void flushing_ends_everything(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 600), work = post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, 100);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    engine_flush(&rig->engine);
    ends(rig, work, IBV_WC_WR_FLUSH_ERR);
    delivers(rig, receive, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 0);
    uint64_t late = post(rig, .opcode = IBV_WR_SEND);
    ends(rig, late, IBV_WC_WR_FLUSH_ERR);
    is_silent(rig);
}

static void reset_forgets_and_keeps_the_settings(void **state)
{
    struct rig *rig = *state;
    post_receive(rig, 600);
    post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, 100);
    arrives(rig, SEND_FIRST, 2000, .bytes = 256);
    engine_reset(&rig->engine);
    ends_nothing(rig);
    delivers_nothing(rig);
    rig_start(rig);
    uint64_t work = post(rig, .opcode = IBV_WR_SEND, .length = 1), receive = post_receive(rig, 600);
    sends(rig, SEND_ONLY, 100);
    is_silent(rig);
    ends(rig, work, IBV_WC_SUCCESS);
    arrives(rig, SEND_ONLY, 2000, .bytes = 8);
    delivers(rig, receive, IBV_WC_SUCCESS);
    arrives(rig, WRITE_ONLY, 2001, .packet = {RETH(0, 0)});
    assert_int_equal(rig->drops, 0);
}

static void c9_9_3_a_message_of_other_packets_than_the_path_mtus_is_lost(void **state)
{
    struct rig *rig = *state;
    rig->engine.uc.common.settings.exact = true;
    uint64_t receive = post_receive(rig, 1000);
    arrives(rig, SEND_FIRST, 2000, .bytes = 255);
    drops(rig, REASON_MESSAGE_LENGTH);
    arrives(rig, SEND_ONLY, 2001, .bytes = 257);
    arrives(rig, SEND_FIRST, 2002, .bytes = 256);
    arrives(rig, SEND_MIDDLE, 2003, .bytes = 512);
    drops(rig, REASON_MESSAGE_LENGTH);
    assert_int_equal(rig->drops, 3);
    assert_int_equal(rig->failures, 0);
    arrives_in_three(rig, SEND, 2004);
    delivers(rig, receive, IBV_WC_SUCCESS);
}

TESTS_OF(uc_script, c9_8_2_a_message_is_cut_into_segments, c9_8_2_a_write_names_its_target_once,
         c9_8_2_work_ends_when_its_last_packet_is_gone, c9_8_2_sequence_numbers_wrap,
         c9_9_2_a_key_that_goes_bad_within_a_message_breaks_it_there, a_message_longer_than_allowed_is_refused,
         local_work_is_done_in_its_turn, draining_ends_what_was_begun, c9_8_2_2_packets_make_a_message,
         c9_8_2_2_a_gap_loses_the_message_and_keeps_the_receive, c9_8_2_2_what_follows_a_last_packet_belongs_to_nothing,
         c9_9_3_a_send_that_cannot_be_is_lost, c9_8_2_2_a_first_packet_gives_up_the_open_message,
         c9_8_2_2_a_write_gives_up_the_open_send_and_its_receive, c9_8_2_2_a_write_within_a_send_is_no_part_of_it,
         c9_8_2_2_without_a_receive_the_message_is_lost, c9_9_3_a_message_longer_than_the_receive_fails_the_queue_pair,
         what_was_sent_before_a_failure_has_succeeded, c9_8_2_2_a_write_lands,
         c9_9_3_a_write_without_permission_is_lost, c9_9_3_a_write_that_does_not_add_up_is_lost,
         c9_8_2_2_an_immediate_without_a_receive_is_lost_with_its_bytes, c9_6_1_strangers_are_dropped,
         c10_9_3_partial_members_do_not_talk_to_each_other, the_first_packet_establishes, flushing_ends_everything,
         reset_forgets_and_keeps_the_settings, c9_9_3_a_message_of_other_packets_than_the_path_mtus_is_lost)
