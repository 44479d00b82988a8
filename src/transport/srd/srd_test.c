#include "transport/testing/srd_case.h"

/* From the first packet to the end of its work, where no packet of it is answered. */

/* ---- what arrives ---- */

static void a_message_arrives(void **state)
{
    struct desk *desk = *state;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, DESK_MESSAGE);
    desk_run(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
}

static void a_message_of_no_bytes_arrives(void **state)
{
    struct desk *desk = *state;
    desk_post_receive(desk, 1, 0);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 0);
    desk_run(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
}

static void a_message_to_oneself_arrives(void **state)
{
    struct desk *desk = *state;
    desk_post_receive(desk, 0, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 0, IBV_WR_SEND_WITH_IMM, 100);
    desk_run(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[0].arrivals[0][one], 1);
}

static void inline_bytes_arrive(void **state)
{
    enum { INLINE = 2 * sizeof(struct ibv_sge) };
    struct desk *desk = *state;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, INLINE);
    struct send_wqe *work = desk_work(desk, 0);
    work->flags = IBV_SEND_INLINE;
    work->sge_count = 0;
    for (uint32_t at = 0; at < INLINE; at++)
        work->inline_data[at] = desk_byte(0, one, at);
    desk_run(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
}

static void a_write_of_several_packets_lands(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, DESK_SLOT);
    desk_run(desk);
    succeeds(desk, 0, one);
    assert_true(desk_has(desk->nodes[1].remote + one * DESK_SLOT, 0, one, DESK_SLOT));
}

static void a_read_of_several_packets_brings_its_bytes(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, DESK_SLOT);
    desk_run(desk);
    succeeds(desk, 0, one);
    assert_true(desk_has(desk->nodes[0].local + one * DESK_SLOT, 0, one, DESK_SLOT));
}

static void a_read_and_a_write_of_no_bytes_need_no_key(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 0);
    desk_work(desk, 0)->rkey = 1;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 0);
    desk_work(desk, 0)->rkey = 1;
    desk_run(desk);
    succeeds(desk, 0, one);
    succeeds(desk, 0, two);
}

static void an_immediate_comes_after_all_data(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_post_receive(desk, 1, 0);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 3 * DESK_SEGMENT);
    desk_transmit(desk, 0);
    assert_int_equal(desk->flying_count, 3);
    desk_copy(desk, OPERATION_WRITE_ONLY, true);
    desk_run(desk);
    assert_int_equal(desk->nodes[1].taken, 0);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
    assert_true(desk_has(desk->nodes[1].remote + one * DESK_SLOT, 0, one, 3 * DESK_SEGMENT));
}

static void a_write_of_one_packet_carries_its_immediate(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_post_receive(desk, 1, 0);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE_WITH_IMM, DESK_SEGMENT);
    desk_transmit(desk, 0);
    assert_int_equal(desk->flying_count, 1);
    desk_copy(desk, OPERATION_WRITE_ONLY_IMMEDIATE, false);
    desk_run(desk);
    succeeds(desk, 0, one);
}

static void a_qkey_with_its_high_bit_means_our_own(void **state)
{
    struct desk *desk = *state;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 1);
    desk_work(desk, 0)->remote_qkey = 1u << 31;
    desk_run(desk);
    succeeds(desk, 0, one);
}

static void numbers_wrap(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    struct srd_flow *flow = desk_flow(desk, 0, 1);
    for (uint32_t jump = 0; jump < 3; jump++) {
        flow->next = flow->floor = flow->floor + 0x55555550;
        uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, DESK_SLOT);
        desk_settle(desk);
        succeeds(desk, 0, one);
    }
    assert_true(flow->next < 100);
}

/* ---- receives that lack ---- */

static void a_message_waits_for_its_receive_and_others_pass(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300),
             three = desk_post(desk, 0, 2, IBV_WR_SEND_WITH_IMM, 9);
    desk_post_receive(desk, 2, DESK_MESSAGE);
    desk_pass(desk, NANOS_SECOND);
    assert_true(desk->nodes[0].busy_received > 2);
    assert_int_equal(desk->nodes[0].busy_received, desk->nodes[1].busy_sent);
    waits(desk, 0, one);
    succeeds(desk, 0, two);
    succeeds(desk, 0, three);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
}

static void an_immediate_waits_for_its_receive(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 300);
    desk_pass(desk, NANOS_SECOND);
    waits(desk, 0, one);
    desk_post_receive(desk, 1, 0);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
}

static void without_retries_a_receive_that_lacks_ends_the_message(void **state)
{
    struct desk *desk = *state;
    desk_retry(&desk->nodes[0], 0);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_run(desk);
    ends(desk, 0, one, IBV_WC_RNR_RETRY_EXC_ERR, REASON_RNR_EXCEEDED);
}

static void three_retries_are_three_waits(void **state)
{
    struct desk *desk = *state;
    desk_retry(&desk->nodes[0], 3);
    nanos start = desk->now;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_pass(desk, 6 * (nanos)SRD_WAIT);
    waits(desk, 0, one);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_RNR_RETRY_EXC_ERR, REASON_RNR_EXCEEDED);
    assert_int_equal(desk->now - start, 7 * (nanos)SRD_WAIT);
}

static void seven_retries_never_end(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_pass(desk, 60 * NANOS_SECOND);
    waits(desk, 0, one);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    nanos start = desk->now;
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_true(desk->now - start <= (nanos)SRD_WAIT << SRD_BUSY_LEVEL);
}

static void many_that_wait_arrive_once_there_are_receives(void **state)
{
    enum { MANY = 40 };
    struct desk *desk = *state;
    for (unsigned i = 0; i < MANY; i++)
        desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, i);
    desk_pass(desk, NANOS_SECOND);
    assert_int_equal(desk->nodes[0].ended, 0);
    for (unsigned i = 0; i < MANY; i++)
        desk_post_receive(desk, 1, DESK_MESSAGE);
    nanos start = desk->now;
    desk_settle(desk);
    assert_int_equal(desk->nodes[1].arrived, MANY);
    assert_true(desk->now - start <= (nanos)SRD_WAIT << SRD_BUSY_LEVEL);
}

static void a_receive_too_short_stays(void **state)
{
    struct desk *desk = *state;
    desk_post_receive(desk, 1, 99);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_REQ_ERR, REASON_REMOTE_INVALID_REQUEST);
    assert_int_equal(desk->nodes[1].taken, 0);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 99);
    desk_settle(desk);
    succeeds(desk, 0, two);
}

/* ---- refusals ---- */

static void an_unknown_remote_key_ends_the_work(void **state)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM};
    struct desk *desk = *state;
    desk_post_receive(desk, 1, 0);
    for (unsigned i = 0; i < 3; i++) {
        uint32_t one = desk_post(desk, 0, 1, opcodes[i], 3 * DESK_SEGMENT + 1);
        desk_work(desk, 0)->rkey = DESK_KEY + 1;
        uint32_t two = desk_post(desk, 0, 1, opcodes[i], DESK_SEGMENT);
        desk_work(desk, 0)->rkey = DESK_KEY + 1;
        desk_settle(desk);
        ends(desk, 0, one, IBV_WC_REM_ACCESS_ERR, REASON_REMOTE_ACCESS);
        ends(desk, 0, two, IBV_WC_REM_ACCESS_ERR, REASON_REMOTE_ACCESS);
    }
    assert_int_equal(desk->nodes[1].taken, 0);
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 6);
}

static void rdma_needs_an_address_handle_of_the_other_end(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].knows_none = true;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10), two = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    uint32_t three = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 10);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_OP_ERR, REASON_PEER_NO_ADDRESS);
    ends(desk, 0, two, IBV_WC_REM_OP_ERR, REASON_PEER_NO_ADDRESS);
    ends(desk, 0, three, IBV_WC_REM_OP_ERR, REASON_PEER_NO_ADDRESS);
    uint32_t four = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_settle(desk);
    succeeds(desk, 0, four);
}

static void a_wrong_qkey_is_refused(void **state)
{
    struct desk *desk = *state;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_work(desk, 0)->remote_qkey = DESK_QKEY + 1;
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
    assert_int_equal(desk->nodes[1].last_drop, REASON_PACKET_QKEY);
    assert_int_equal(desk->nodes[1].taken, 0);
}

static void a_queue_pair_that_does_not_exist_is_refused(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].absent = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
    desk->nodes[1].absent = false;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    succeeds(desk, 0, two);
    desk->nodes[1].absent = true;
    uint32_t three = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    ends(desk, 0, three, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
}

static void a_host_without_the_queue_pair_ends_all_work_for_it(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10), two = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 300);
    desk_work(desk, 0)->remote_qp = 0x99;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    succeeds(desk, 0, one);
    ends(desk, 0, two, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
}

static void an_engine_that_receives_nothing_yet_refuses(void **state)
{
    struct desk *desk = *state;
    engine_reset(&desk->nodes[1].engine);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
    assert_int_equal(desk->nodes[1].last_drop, REASON_PACKET_QP_STATE);
}

static void an_unknown_local_key_ends_one_work(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300);
    desk_work(desk, 0)->sge[0].lkey = 1;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 300);
    desk_work(desk, 0)->sge[0].lkey = 1;
    uint32_t three = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 300);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_KEY_UNKNOWN);
    ends(desk, 0, two, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_KEY_UNKNOWN);
    succeeds(desk, 0, three);
}

static void a_message_too_long_ends_alone(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, DESK_MESSAGE + 1);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, DESK_SLOT + 1);
    uint32_t three = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, DESK_SLOT);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_LOC_LEN_ERR, REASON_MESSAGE_TOO_LONG);
    ends(desk, 0, two, IBV_WC_LOC_LEN_ERR, REASON_MESSAGE_TOO_LONG);
    succeeds(desk, 0, three);
}

static void an_atomic_is_unknown_work(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_INV, 8);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_LOC_QP_OP_ERR, REASON_WORK_UNSUPPORTED);
    ends(desk, 0, two, IBV_WC_LOC_QP_OP_ERR, REASON_WORK_UNSUPPORTED);
}

/* ---- silence ---- */

static void a_peer_that_fell_silent_ends_the_work(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk->nodes[1].deaf = true;
    nanos start = desk->now;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_RESP_TIMEOUT_ERR, REASON_RETRY_EXCEEDED);
    assert_int_equal(desk->now - start, SRD_SILENCE);
    assert_int_equal(desk->nodes[0].timeouts, SRD_TRIES + 1);
    assert_int_equal(desk->nodes[0].retransmits, SRD_TRIES);
}

static void a_peer_that_was_never_heard_ends_the_work(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].deaf = true;
    for (unsigned i = 0; i < 2; i++) {
        nanos start = desk->now;
        uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
        desk_settle(desk);
        ends(desk, 0, one, IBV_WC_RESP_TIMEOUT_ERR, REASON_PEER_UNHEARD);
        assert_int_equal(desk->now - start, SRD_SILENCE);
    }
    desk->nodes[1].deaf = false;
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 2);
}

static void those_that_wait_are_tried_after_one_that_fails(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_run(desk);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 9);
    desk_run(desk);
    desk_post_receive(desk, 1, 50);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_REQ_ERR, REASON_REMOTE_INVALID_REQUEST);
    succeeds(desk, 0, two);
}

static void those_that_wait_end_where_their_receiver_falls_silent(void **state)
{
    struct desk *desk = *state;
    for (unsigned i = 0; i < 5; i++)
        desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_pass(desk, NANOS_SECOND);
    desk->nodes[1].deaf = true;
    desk_pass(desk, SRD_SILENCE + 6 * ((nanos)SRD_WAIT << SRD_BUSY_LEVEL));
    for (uint32_t work = 0; work < 5; work++)
        ends(desk, 0, work, IBV_WC_RESP_TIMEOUT_ERR, REASON_RETRY_EXCEEDED);
}

static void a_greeting_begins_anew_after_its_refusal(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].deaf = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_pass(desk, SRD_SILENCE / 4);
    desk->nodes[1].deaf = false;
    desk->nodes[1].absent = true;
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
    desk->nodes[1].deaf = true;
    nanos begin = desk->now;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_settle(desk);
    ends(desk, 0, two, IBV_WC_RESP_TIMEOUT_ERR, REASON_RETRY_EXCEEDED);
    assert_int_equal(desk->now - begin, SRD_SILENCE);
}

static void a_greeting_begins_anew_after_its_work_went(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].deaf = true;
    desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_pass(desk, SRD_SILENCE / 4);
    engine_forget_address(&desk->nodes[0].engine, &desk->nodes[1]);
    desk_settle(desk);
    nanos begin = desk->now;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_settle(desk);
    ends(desk, 0, two, IBV_WC_RESP_TIMEOUT_ERR, REASON_PEER_UNHEARD);
    assert_int_equal(desk->now - begin, SRD_SILENCE);
}

static void one_of_those_that_wait_for_ever_tries(void **state)
{
    struct desk *desk = *state;
    for (unsigned i = 0; i < 10; i++)
        desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_pass(desk, NANOS_SECOND);
    desk_wait(desk);
    desk_transmit(desk, 0);
    assert_int_equal(desk->flying_count, 1);
    for (unsigned i = 0; i < 10; i++)
        desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_run(desk);
    assert_int_equal(desk->nodes[0].ended, 10);
}

static void a_slow_receiver_is_waited_for(void **state)
{
    struct desk *desk = *state;
    for (unsigned i = 0; i < 2; i++) { /* with its greeting, and with data */
        desk->nodes[1].deaf = desk->nodes[1].slow = true;
        uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
        desk_pass(desk, 60 * NANOS_SECOND);
        waits(desk, 0, one);
        nanos begin = desk->now;
        desk->nodes[1].slow = false;
        desk_settle(desk);
        ends(desk, 0, one, IBV_WC_RESP_TIMEOUT_ERR, i ? REASON_RETRY_EXCEEDED : REASON_PEER_UNHEARD);
        assert_true(desk->now - begin > SRD_SILENCE / 2 && desk->now - begin <= SRD_SILENCE);
        desk->nodes[1].deaf = false;
        desk_meet(desk, 0, 1);
    }
}

static void a_lost_flow_greets_with_all_its_tries(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].deaf = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_pass(desk, SRD_SILENCE / 4);
    desk->nodes[1].deaf = false;
    desk_settle(desk);
    succeeds(desk, 0, one);
    desk_reset(desk, 1);
    desk_meet(desk, 0, 1);
    ends(desk, 0, 1, IBV_WC_REM_ABORT_ERR, REASON_PEER_FORGOT);
    desk->nodes[1].deaf = true;
    nanos begin = desk->now;
    desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_settle(desk);
    assert_int_equal(desk->now - begin, SRD_SILENCE);
}

static void an_immediate_that_waits_may_be_cut_anew(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE_WITH_IMM, DESK_SEGMENT);
    desk_run(desk);
    struct engine_settings settings = *engine_settings_of(&desk->nodes[0].engine);
    settings.segment = DESK_SEGMENT / 3;
    engine_configure(&desk->nodes[0].engine, &settings);
    desk_post_receive(desk, 1, 0);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
}

static void scripted_work_ends_as_its_rule_says(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_work(desk, 0)->opcode |= WORK_SCRIPTED;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_GENERAL_ERR, REASON_SCRIPTED);
    succeeds(desk, 0, two);
}

static void a_receive_of_unknown_memory_ends_with_its_message(void **state)
{
    struct desk *desk = *state;
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk->nodes[1].receive_sges[0].lkey = 1;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_REQ_ERR, REASON_REMOTE_INVALID_REQUEST);
    assert_int_equal(desk->nodes[1].arrived, 1);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_settle(desk);
    succeeds(desk, 0, two);
}

static void a_receiver_that_had_receives_is_tried_again_soon(void **state)
{
    struct desk *desk = *state;
    desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_pass(desk, NANOS_SECOND);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    nanos begin = desk->now;
    desk_settle(desk);
    succeeds(desk, 0, 1);
    assert_int_equal(desk->now - begin, SRD_WAIT);
}

static void a_greeting_begins_anew_after_its_receiver_was_nowhere(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].deaf = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_pass(desk, SRD_SILENCE / 4);
    uint32_t number = desk->nodes[1].number;
    desk->nodes[1].number = 0x99;
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP);
    desk->nodes[1].number = number;
    nanos begin = desk->now;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_settle(desk);
    ends(desk, 0, two, IBV_WC_RESP_TIMEOUT_ERR, REASON_PEER_UNHEARD);
    assert_int_equal(desk->now - begin, SRD_SILENCE);
}

TESTS_OF(WITH_DESK, a_message_arrives, a_message_of_no_bytes_arrives, a_message_to_oneself_arrives, inline_bytes_arrive,
         a_write_of_several_packets_lands, a_read_of_several_packets_brings_its_bytes,
         a_read_and_a_write_of_no_bytes_need_no_key, an_immediate_comes_after_all_data,
         a_write_of_one_packet_carries_its_immediate, a_qkey_with_its_high_bit_means_our_own, numbers_wrap,
         a_message_waits_for_its_receive_and_others_pass, an_immediate_waits_for_its_receive,
         without_retries_a_receive_that_lacks_ends_the_message, three_retries_are_three_waits, seven_retries_never_end,
         many_that_wait_arrive_once_there_are_receives, a_receive_too_short_stays, an_unknown_remote_key_ends_the_work,
         rdma_needs_an_address_handle_of_the_other_end, a_wrong_qkey_is_refused,
         a_queue_pair_that_does_not_exist_is_refused, a_host_without_the_queue_pair_ends_all_work_for_it,
         an_engine_that_receives_nothing_yet_refuses, an_unknown_local_key_ends_one_work, a_message_too_long_ends_alone,
         an_atomic_is_unknown_work, a_peer_that_fell_silent_ends_the_work, a_peer_that_was_never_heard_ends_the_work,
         those_that_wait_are_tried_after_one_that_fails, those_that_wait_end_where_their_receiver_falls_silent,
         a_greeting_begins_anew_after_its_refusal, a_greeting_begins_anew_after_its_work_went,
         one_of_those_that_wait_for_ever_tries, a_slow_receiver_is_waited_for, a_lost_flow_greets_with_all_its_tries,
         an_immediate_that_waits_may_be_cut_anew, scripted_work_ends_as_its_rule_says,
         a_receive_of_unknown_memory_ends_with_its_message, a_receiver_that_had_receives_is_tried_again_soon,
         a_greeting_begins_anew_after_its_receiver_was_nowhere)
