/* New packets that the owner holds back, so that later ones pass them. */
#include "transport/testing/srd_case.h"

static void what_is_held_back_is_passed_by_later_messages(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk->nodes[0].late = 1000;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_run(desk);
    desk->nodes[0].late = 0;
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 100);
    desk_run(desk);
    succeeds(desk, 0, two);
    waits(desk, 0, one);
    desk_pass(desk, (nanos)SRD_WAIT << (SRD_LATE_MOST - 1));
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[1].arrivals[0][one], 1);
    assert_int_equal(desk->nodes[0].retransmits, 0);
}

static void what_is_held_back_takes_no_repeat_away(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk->nodes[0].late = 1000;
    desk->nodes[1].deaf = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 100);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_RESP_TIMEOUT_ERR, REASON_RETRY_EXCEEDED);
    assert_int_equal(desk->nodes[0].retransmits, SRD_TRIES);
}

static void work_that_is_held_back_is_flushed(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk->nodes[0].late = 1000;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 3 * DESK_SEGMENT);
    desk_run(desk);
    waits(desk, 0, one);
    engine_flush(&desk->nodes[0].engine);
    ends(desk, 0, one, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
}

TESTS_OF(WITH_DESK, what_is_held_back_is_passed_by_later_messages, what_is_held_back_takes_no_repeat_away,
         work_that_is_held_back_is_flushed)
