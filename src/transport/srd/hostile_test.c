/* Packets that are late, doubled or forged, and ends that forget. */
#include <string.h>

#include "transport/testing/srd_case.h"

/* ---- doubled, late and forged packets ---- */

static void a_doubled_message_is_executed_once(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_transmit(desk, 0);
    struct desk_copy *late = desk_copy(desk, OPERATION_SEND_ONLY_IMMEDIATE, false);
    desk_settle(desk);
    desk_put(desk, 1, late);
    desk_put(desk, 1, late);
    desk_transmit(desk, 1);
    assert_int_equal(desk->flying_count, 1);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].taken, 1);
    desk_meet(desk, 0, 1);
    desk_put(desk, 1, late);
    assert_int_equal(desk->nodes[1].taken, 1);
}

static void a_late_packet_that_met_no_receive_is_not_executed(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_transmit(desk, 0);
    struct desk_copy *late = desk_copy(desk, OPERATION_SEND_ONLY_IMMEDIATE, false);
    desk_run(desk);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_put(desk, 1, late);
    desk_run(desk);
    assert_int_equal(desk->nodes[1].taken, 0);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].taken, 1);
}

static void a_lost_answer_is_asked_for_again(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_transmit(desk, 0);
    desk_deliver(desk);
    desk_transmit(desk, 1);
    desk_copy(desk, OPERATION_ACKNOWLEDGE, true);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].taken, 1);
}

/* A WRITE that was executed, whose bytes in memory are gone again. */
static struct desk_copy *make_write(struct desk *desk)
{
    desk_meet(desk, 0, 1);
    desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_transmit(desk, 0);
    struct desk_copy *copy = desk_copy(desk, OPERATION_WRITE_ONLY, false);
    desk_settle(desk);
    memset(desk->nodes[1].remote, 0, sizeof desk->nodes[1].remote);
    return copy;
}

static bool is_written(const struct desk *desk)
{
    return desk_has(desk->nodes[1].remote + DESK_SLOT, 0, 1, 10);
}

static void floors_may_jump(void **state)
{
    struct desk *desk = *state;
    struct desk_copy *copy = make_write(desk), old = *copy;
    copy->packet.srd.number = copy->packet.srd.floor = 1000;
    desk_put(desk, 1, copy);
    assert_true(is_written(desk));
    memset(desk->nodes[1].remote, 0, sizeof desk->nodes[1].remote);
    desk_put(desk, 1, copy);
    desk_put(desk, 1, &old);
    copy->packet.srd.floor = 950;
    desk_put(desk, 1, copy);
    copy->packet.srd.number = 999;
    desk_put(desk, 1, copy);
    assert_false(is_written(desk));
    copy->packet.srd.number = 1013;
    desk_put(desk, 1, copy);
    assert_true(is_written(desk));
    desk_settle(desk);
}

static void a_number_far_from_its_floor_is_dropped(void **state)
{
    struct desk *desk = *state;
    struct desk_copy *copy = make_write(desk);
    copy->packet.srd.number = copy->packet.srd.floor + SRD_WINDOW;
    desk_put(desk, 1, copy);
    assert_int_equal(desk->nodes[1].last_drop, REASON_PACKET_PSN);
    copy->packet.srd.number = copy->packet.srd.floor - 1;
    desk_put(desk, 1, copy);
    assert_int_equal(desk->nodes[1].dropped, 2);
    assert_false(is_written(desk));
    desk_settle(desk);
}

static void numbers_of_a_source_wrap(void **state)
{
    struct desk *desk = *state;
    struct desk_copy *copy = make_write(desk);
    for (uint32_t step = 0; step < 4; step++) {
        copy->packet.srd.number = copy->packet.srd.floor += 0x7ffffff0;
        memset(desk->nodes[1].remote, 0, sizeof desk->nodes[1].remote);
        desk_put(desk, 1, copy);
        assert_true(is_written(desk));
        copy->packet.srd.number = copy->packet.srd.floor + SRD_WINDOW - 1;
        memset(desk->nodes[1].remote, 0, sizeof desk->nodes[1].remote);
        desk_put(desk, 1, copy);
        assert_true(is_written(desk));
        desk_settle(desk);
    }
}

static void a_packet_with_another_cookie_is_of_a_stranger(void **state)
{
    struct desk *desk = *state;
    struct desk_copy *copy = make_write(desk);
    copy->packet.srd.number++;
    copy->packet.srd.cookie++;
    desk_put(desk, 1, copy);
    assert_false(is_written(desk));
    copy->packet.srd.cookie--;
    copy->packet.srd.epoch++;
    desk_put(desk, 1, copy);
    assert_false(is_written(desk));
    copy->packet.srd.epoch--;
    copy->packet.source = 0x12;
    desk_put(desk, 1, copy);
    assert_false(is_written(desk));
    copy->packet.source = 0x10;
    desk_put(desk, 1, copy);
    assert_true(is_written(desk));
    desk_settle(desk);
}

static void a_forged_answer_changes_nothing(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_transmit(desk, 0);
    struct desk_copy *copy = desk_copy(desk, OPERATION_SEND_ONLY_IMMEDIATE, true), forged = *copy;
    forged.packet.destination++;
    desk_answer(desk, 0, &forged, SRD_DONE);
    forged = *copy;
    forged.packet.srd.cookie++;
    desk_answer(desk, 0, &forged, SRD_DONE);
    desk_answer(desk, 0, &forged, SRD_STRANGER);
    forged = *copy;
    forged.packet.srd.epoch++;
    desk_answer(desk, 0, &forged, SRD_DONE);
    assert_int_equal(desk->nodes[0].dropped, 4);
    assert_int_equal(desk->nodes[0].last_drop, REASON_PACKET_STALE_RESPONSE);
    forged = *copy;
    forged.packet.srd.number++;
    desk_answer(desk, 0, &forged, SRD_DONE);
    desk_answer(desk, 0, copy, SRD_OPEN);
    waits(desk, 0, one);
    desk_answer(desk, 0, copy, SRD_DONE);
    succeeds(desk, 0, one);
}

static void an_unknown_answer_ends_the_work(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10), two = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10),
             three = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_transmit(desk, 0);
    desk_answer(desk, 0, desk_copy(desk, OPERATION_SEND_ONLY_IMMEDIATE, true), 200);
    desk_answer(desk, 0, desk_copy(desk, OPERATION_READ_REQUEST, true), 1);
    desk_answer(desk, 0, desk_copy(desk, OPERATION_WRITE_ONLY, true), 0x100 | SRD_DONE);
    ends(desk, 0, one, IBV_WC_BAD_RESP_ERR, REASON_BAD_RESPONSE);
    ends(desk, 0, two, IBV_WC_BAD_RESP_ERR, REASON_BAD_RESPONSE);
    ends(desk, 0, three, IBV_WC_BAD_RESP_ERR, REASON_BAD_RESPONSE);
}

static void a_response_of_another_length_is_dropped(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_transmit(desk, 0);
    desk_deliver(desk);
    desk_transmit(desk, 1);
    struct desk_copy *copy = desk_copy(desk, OPERATION_READ_RESPONSE_ONLY, true);
    for (uint32_t length = 0; length <= 11; length++)
        if (length != 10) {
            copy->packet.payload.length = length;
            desk_put(desk, 0, copy);
        }
    waits(desk, 0, one);
    assert_int_equal(desk->nodes[0].dropped, 11);
    copy->packet.payload.length = 10;
    desk_put(desk, 0, copy);
    succeeds(desk, 0, one);
    desk_put(desk, 0, copy);
}

static void a_response_to_a_message_is_dropped(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_transmit(desk, 0);
    struct desk_copy *copy = desk_copy(desk, OPERATION_SEND_ONLY_IMMEDIATE, true);
    copy->packet.opcode = op_code(SERVICE_SRD, OPERATION_READ_RESPONSE_ONLY);
    copy->packet.source = copy->packet.destination;
    desk_put(desk, 0, copy);
    waits(desk, 0, one);
    assert_int_equal(desk->nodes[0].last_drop, REASON_PACKET_STALE_RESPONSE);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
}

static void many_answers_come_in_one_packet(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    for (unsigned i = 0; i < 3; i++)
        desk_post_receive(desk, 1, DESK_MESSAGE);
    for (unsigned i = 0; i < 5; i++)
        desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, i);
    desk_transmit(desk, 0);
    for (unsigned i = 0; i < 5; i++)
        desk_deliver(desk);
    desk_transmit(desk, 1);
    assert_int_equal(desk->flying_count, 1);
    desk_deliver(desk);
    assert_int_equal(desk->nodes[0].ended, 4);
    assert_int_equal(desk->nodes[1].arrived, 3);
    struct desk_copy long_one = {.packet = {.pkey = 0xffff, .source = 0x11}};
    desk_wait(desk);
    desk_transmit(desk, 0);
    struct desk_copy *request = desk_copy(desk, OPERATION_SEND_ONLY_IMMEDIATE, false);
    long_one.packet.opcode = op_code(SERVICE_SRD, OPERATION_ACKNOWLEDGE);
    long_one.packet.srd = request->packet.srd;
    long_one.packet.payload.length = SRD_WINDOW + 1;
    desk_put(desk, 0, &long_one);
    assert_int_equal(desk->nodes[0].ended, 4);
    assert_int_equal(desk->nodes[0].dropped, 1);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    assert_int_equal(desk->nodes[0].ended, 6);
}

static void a_request_longer_than_any_message_is_dropped(void **state)
{
    struct desk *desk = *state;
    struct desk_copy *copy = make_write(desk);
    copy->packet.srd.number++;
    copy->packet.payload.length = DESK_MESSAGE + 1;
    desk_put(desk, 1, copy);
    assert_int_equal(desk->nodes[1].last_drop, REASON_PACKET_TOO_LONG);
}

/* ---- forgotten flows ---- */

static void a_reset_receiver_ends_what_it_has_forgotten(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300), two = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_transmit(desk, 0);
    while (desk->flying_count)
        desk_lose(desk);
    desk_reset(desk, 1);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_ABORT_ERR, REASON_PEER_FORGOT);
    ends(desk, 0, two, IBV_WC_REM_ABORT_ERR, REASON_PEER_FORGOT);
    uint32_t three = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    succeeds(desk, 0, three);
}

static void what_was_not_sent_survives_the_reset_of_its_receiver(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_pass(desk, NANOS_SECOND);
    desk_reset(desk, 1);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_run(desk);
    ends(desk, 0, two, IBV_WC_REM_ABORT_ERR, REASON_PEER_FORGOT);
    waits(desk, 0, one);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    succeeds(desk, 0, one);
}

static void a_reset_sender_is_a_new_source(void **state)
{
    struct desk *desk = *state;
    for (unsigned i = 0; i < 3; i++) {
        desk_post_receive(desk, 1, DESK_MESSAGE);
        uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
        desk_run(desk);
        succeeds(desk, 0, one);
        assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
        desk_reset(desk, 0);
    }
}

static void a_late_packet_after_a_reset_is_not_executed(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_transmit(desk, 0);
    struct desk_copy *late = desk_copy(desk, OPERATION_SEND_ONLY_IMMEDIATE, false);
    desk_run(desk);
    struct desk_copy hello = *late;
    desk_reset(desk, 1);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    hello.packet.opcode = op_code(SERVICE_SRD, OPERATION_HELLO);
    hello.packet.payload.length = 0;
    desk_put(desk, 1, &hello);
    desk_put(desk, 1, late);
    assert_int_equal(desk->nodes[1].taken, 1);
    desk_settle(desk);
}

static void data_that_takes_no_receive_does_not_wait_for_one(void **state)
{
    struct desk *desk = *state;
    struct packet out;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE_WITH_IMM, DESK_SLOT);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    assert_true(desk_send_one(desk, 0, &out));
    desk_answer(desk, 0, &(struct desk_copy){.packet = out}, SRD_NO_RECEIVE);
    ends(desk, 0, one, IBV_WC_RNR_RETRY_EXC_ERR, REASON_RNR_EXCEEDED);
    desk_settle(desk);
    succeeds(desk, 0, two);
}

static void a_late_read_spoils_no_newer_answer(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_transmit(desk, 0);
    struct desk_copy *late = desk_copy(desk, OPERATION_READ_REQUEST, false);
    desk_run(desk);
    struct desk_copy newer = *late;
    desk_put(desk, 1, late);
    newer.packet.opcode = op_code(SERVICE_SRD, OPERATION_WRITE_ONLY);
    newer.packet.srd.number = newer.packet.srd.floor += SRD_WINDOW;
    desk_put(desk, 1, &newer);
    desk->nodes[1].withdrawn = true;
    desk_transmit(desk, 1);
    assert_int_equal(desk->flying_count, 1);
    assert_int_equal(desk_copy(desk, OPERATION_ACKNOWLEDGE, true)->packet.srd.floor, SRD_DONE);
}

static void a_read_whose_memory_goes_is_refused(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_transmit(desk, 0);
    desk_deliver(desk);
    desk->nodes[1].withdrawn = true;
    desk_run(desk);
    ends(desk, 0, one, IBV_WC_REM_ACCESS_ERR, REASON_REMOTE_ACCESS);
}

static void a_read_longer_than_a_packet_is_refused(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_transmit(desk, 0);
    struct desk_copy *request = desk_copy(desk, OPERATION_READ_REQUEST, true);
    request->packet.length = DESK_MESSAGE + 1;
    desk_put(desk, 1, request);
    desk_run(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_REQ_ERR, REASON_REMOTE_INVALID_REQUEST);
}

static void a_late_refusal_of_a_greeting_ends_no_newer_work(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].absent = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_transmit(desk, 0);
    desk_deliver(desk);
    struct desk_copy *late = desk_copy(desk, OPERATION_ACKNOWLEDGE, false);
    desk_run(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
    desk->nodes[1].absent = false;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_transmit(desk, 0);
    desk_put(desk, 0, late);
    desk_run(desk);
    succeeds(desk, 0, two);
}

static void only_a_packet_that_waits_tells_of_a_forgotten_flow(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_transmit(desk, 0);
    struct desk_copy other = *desk_copy(desk, OPERATION_WRITE_ONLY, false);
    other.packet.srd.number--;
    desk_answer(desk, 0, &other, SRD_STRANGER);
    waits(desk, 0, one);
    desk_run(desk);
    succeeds(desk, 0, one);
}

/* Puts a greeting from this address, and a READ with the cookie that it got; returns the address of the answer. */
static const uint8_t *answered(struct desk *desk, const uint8_t *grh, struct desk_copy *read)
{
    struct engine_target target = {0};
    struct desk_copy hello = {.packet = read->packet};
    hello.packet.opcode = op_code(SERVICE_SRD, OPERATION_HELLO);
    hello.packet.grh = read->packet.grh = grh;
    desk_put(desk, 1, &hello);
    read->packet.srd.cookie = desk_copy(desk, OPERATION_WELCOME, true)->packet.srd.cookie;
    desk_put(desk, 1, read);
    assert_true(engine_next_message(&desk->nodes[1].engine, &target));
    return target.gid;
}

static void a_source_is_known_by_its_address(void **state)
{
    static const uint8_t ipv6[40] = {0x60, [8] = 0xfe, 0x80, [23] = 9}, ipv4[40] = {[20] = 0x45, [32] = 10, 0, 0, 9};
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
    struct desk *desk = *state;
    struct packet out;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    desk_meet(desk, 0, 1);
    desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_transmit(desk, 0);
    struct desk_copy read = *desk_copy(desk, OPERATION_READ_REQUEST, false);
    assert_memory_equal(answered(desk, ipv6, &read), ipv6 + 8, 16);
    engine_transmit(&desk->nodes[1].engine, &out, pieces, desk->now);
    assert_memory_equal(answered(desk, ipv4, &read), mapped, 16);
    assert_int_equal(desk_engine(desk, 1)->responder->count, 3);
    desk_settle(desk);
}

static void an_answer_that_nobody_waits_for_is_not_sent(void **state)
{
    struct desk *desk = *state;
    struct desk_copy *copy = make_write(desk);
    copy->packet.srd.number = copy->packet.srd.floor = 10;
    desk_put(desk, 1, copy);
    copy->packet.srd.number = copy->packet.srd.floor = 11;
    desk_put(desk, 1, copy);
    desk_transmit(desk, 1);
    const struct desk_copy *acknowledge = desk_copy(desk, OPERATION_ACKNOWLEDGE, true);
    assert_int_equal(acknowledge->packet.srd.number, 11);
    assert_int_equal(acknowledge->packet.payload.length, 0);
    assert_int_equal(desk->flying_count, 0);
}

static bool pull_nothing(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    (void)payload, (void)offset, (void)to, (void)count;
    return false;
}

static void a_payload_that_can_not_be_fetched_is_asked_for_again(void **state)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
    static const enum operation operations[] = {OPERATION_SEND_ONLY_IMMEDIATE, OPERATION_WRITE_ONLY,
                                                OPERATION_WRITE_ONLY_IMMEDIATE};
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    for (unsigned i = 0; i < 3; i++) {
        uint32_t taken = desk->nodes[1].taken;
        desk_post_receive(desk, 1, DESK_MESSAGE);
        uint32_t one = desk_post(desk, 0, 1, opcodes[i], 10);
        desk_transmit(desk, 0);
        struct desk_copy *copy = desk_copy(desk, operations[i], true);
        copy->packet.payload.pull = pull_nothing;
        desk_put(desk, 1, copy);
        desk_run(desk);
        waits(desk, 0, one);
        assert_int_equal(desk->nodes[1].taken, taken);
        assert_int_equal(desk->nodes[1].last_drop, REASON_PACKET_PULL);
        desk_settle(desk);
        succeeds(desk, 0, one);
        while (desk->nodes[1].taken != desk->nodes[1].posted)
            desk->nodes[1].taken++;
    }
}

static void a_response_that_can_not_be_fetched_is_asked_for_again(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_transmit(desk, 0);
    desk_deliver(desk);
    desk_transmit(desk, 1);
    struct desk_copy *copy = desk_copy(desk, OPERATION_READ_RESPONSE_ONLY, true);
    copy->packet.payload.pull = pull_nothing;
    desk_put(desk, 0, copy);
    waits(desk, 0, one);
    assert_int_equal(desk->nodes[0].last_drop, REASON_PACKET_PULL);
    desk_settle(desk);
    succeeds(desk, 0, one);
}

static void a_read_does_not_end_without_its_bytes(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_transmit(desk, 0);
    desk_answer(desk, 0, desk_copy(desk, OPERATION_READ_REQUEST, false), SRD_DONE);
    waits(desk, 0, one);
    desk_run(desk);
    succeeds(desk, 0, one);
}

static void a_greeting_is_refused_in_one_way_only(void **state)
{
    static const uint32_t answers[] = {SRD_DONE, SRD_NO_ACCESS, SRD_STRANGER, SRD_NO_RECEIVE, SRD_OPEN, 0x10000009};
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_transmit(desk, 0);
    const struct desk_copy *hello = desk_copy(desk, OPERATION_HELLO, true);
    for (unsigned i = 0; i < sizeof answers / sizeof *answers; i++)
        desk_answer(desk, 0, hello, answers[i]);
    waits(desk, 0, one);
    assert_int_equal(desk->nodes[0].dropped, sizeof answers / sizeof *answers);
    desk_answer(desk, 0, hello, SRD_NO_QP);
    ends(desk, 0, one, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
}

TESTS_OF(WITH_DESK, a_doubled_message_is_executed_once, a_late_packet_that_met_no_receive_is_not_executed,
         a_lost_answer_is_asked_for_again, floors_may_jump, a_number_far_from_its_floor_is_dropped,
         numbers_of_a_source_wrap, a_packet_with_another_cookie_is_of_a_stranger, a_forged_answer_changes_nothing,
         an_unknown_answer_ends_the_work, a_response_of_another_length_is_dropped, a_response_to_a_message_is_dropped,
         many_answers_come_in_one_packet, a_request_longer_than_any_message_is_dropped,
         a_reset_receiver_ends_what_it_has_forgotten, what_was_not_sent_survives_the_reset_of_its_receiver,
         a_reset_sender_is_a_new_source, a_late_packet_after_a_reset_is_not_executed,
         data_that_takes_no_receive_does_not_wait_for_one, a_late_read_spoils_no_newer_answer,
         a_read_whose_memory_goes_is_refused, a_read_longer_than_a_packet_is_refused,
         a_late_refusal_of_a_greeting_ends_no_newer_work, only_a_packet_that_waits_tells_of_a_forgotten_flow,
         a_source_is_known_by_its_address, an_answer_that_nobody_waits_for_is_not_sent,
         a_payload_that_can_not_be_fetched_is_asked_for_again, a_response_that_can_not_be_fetched_is_asked_for_again,
         a_read_does_not_end_without_its_bytes, a_greeting_is_refused_in_one_way_only)
