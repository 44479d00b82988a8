/* Operations on the list, ibv_post_srq_ops(3): what is refused, what completes, and how many may wait. */
#include <errno.h>

#include "base/testing/group.h"
#include "steps.h"

static void a_full_list_and_too_many_operations_are_no_memory(void **state)
{
    struct room *room = *state;
    for (int i = 0; i < TAGS; i++)
        add(room, 1, 1, 0, 8);
    assert_int_equal(room_add(room, 1, EXACT, 1, 0, 8, 0, 0, NULL), ENOMEM);
    for (int i = 0; i < OPERATIONS; i++)
        assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED, 0), 0);
    assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED, 0), ENOMEM);
    assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, 0, 0), 0); /* is over when the call returns */
    sees(next(room), 2, IBV_WC_TM_SYNC, 0);
    assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED, 0), 0);
}

/* Room for completions is one thing, sense another. */
static void nonsense_is_told_before_too_many_operations(void **state)
{
    struct room *room = *state;
    for (int i = 0; i < OPERATIONS; i++)
        assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED, 0), 0);
    assert_int_equal(room_operate(room, (enum ibv_ops_wr_opcode)9, 2, 0, SIGNALED, 0), EINVAL);
    assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED | 1 << 7, 0), EINVAL);
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD, .flags = SIGNALED}, *bad;
    wr.tm.add.num_sge = -1;
    assert_int_equal(ibv_post_srq_ops(room->srq, &wr, &bad), EINVAL);
}

static void a_list_for_no_operations_refuses_what_may_complete(void **state)
{
    struct room *room = *state, none = *room;
    struct ibv_srq_init_attr_ex attr;
    none.operations = 0;
    none.srq = room_make_srq(&none, &attr);
    assert_non_null(none.srq);
    assert_int_equal(room_operate(&none, IBV_WR_TAG_SYNC, 1, 0, SIGNALED, 0), ENOMEM);
    assert_int_equal(room_operate(&none, IBV_WR_TAG_DEL, 1, 5, 0, 0), ENOMEM);
    assert_int_equal(room_operate(&none, IBV_WR_TAG_SYNC, 1, 0, 0, 0), 0);
    assert_int_equal(ibv_destroy_srq(none.srq), 0);
}

/* A deletion that fails completes, whether or not it was to be signalled; max_ops bounds what a program must have room
 * for. */
static void a_deletion_that_may_fail_needs_room_for_its_completion(void **state)
{
    struct room *room = *state;
    uint32_t handle;
    assert_int_equal(room_add(room, 5, EXACT, 50, 0, 100, 0, 0, &handle), 0);
    for (int i = 0; i < OPERATIONS; i++)
        assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED, 0), 0);
    assert_int_equal(room_operate(room, IBV_WR_TAG_DEL, 3, 77777, 0, 0), ENOMEM);
    assert_int_equal(room_operate(room, IBV_WR_TAG_DEL, 3, handle, 0, 0), ENOMEM);
    sees(next(room), 2, IBV_WC_TM_SYNC, 0);
    assert_int_equal(room_operate(room, IBV_WR_TAG_DEL, 3, handle, 0, 0), 0);
    assert_int_equal(room_operate(room, IBV_WR_TAG_DEL, 4, handle, 0, 0), 0);
    for (int i = 1; i < OPERATIONS; i++)
        sees(next(room), 2, IBV_WC_TM_SYNC, 0);
    fails(next(room), 4, IBV_WC_TM_ERR);
}

static void completions_that_an_overrun_lost_are_not_waited_for(void **state)
{
    struct room *room = *state, small = *room;
    struct ibv_srq_init_attr_ex attr;
    struct ibv_cq_init_attr_ex cq = {.cqe = 1, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    small.operations = 2;
    small.cq = ibv_create_cq_ex(room->context, &cq);
    small.srq = room_make_srq(&small, &attr);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(room_operate(&small, IBV_WR_TAG_SYNC, i, 0, SIGNALED, 0), 0);
    sees(next(&small), 0, IBV_WC_TM_SYNC, 0);
    assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(small.cq), 8), 0);
    for (uint64_t i = 2; i < 4; i++)
        assert_int_equal(room_operate(&small, IBV_WR_TAG_SYNC, i, 0, SIGNALED, 0), 0);
    for (uint64_t i = 2; i < 4; i++)
        sees(next(&small), i, IBV_WC_TM_SYNC, 0);
    assert_int_equal(ibv_destroy_srq(small.srq), 0);
    struct ibv_async_event event;
    assert_int_equal(ibv_get_async_event(room->context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&event);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(small.cq)), 0);
}

static void completions_of_operations_outlive_their_queue(void **state)
{
    struct room *room = *state;
    struct ibv_srq_init_attr_ex attr;
    struct ibv_srq *first = room->srq;
    room->srq = room_make_srq(room, &attr);
    assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED, 0), 0);
    assert_int_equal(ibv_destroy_srq(room->srq), 0);
    room->srq = first;
    sees(next(room), 2, IBV_WC_TM_SYNC, 0);
}

static void deleting_returns_the_buffer_or_says_that_it_was_taken(void **state)
{
    struct room *room = *state;
    uint32_t handles[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(room_add(room, 5, EXACT, 50 + (uint64_t)i, 0, 100, 0, 0, &handles[i]), 0);
    send_eager(room, 0, 1, 5, 10, 1);
    sees(next(room), 50, IBV_WC_TM_RECV, MATCHED);
    room_operate(room, IBV_WR_TAG_DEL, 7, handles[0], SIGNALED, 0);
    struct room_event event = next(room);
    assert_int_equal(event.status, IBV_WC_TM_ERR);
    assert_int_equal(event.id, 7);
    room_operate(room, IBV_WR_TAG_DEL, 8, handles[1], SIGNALED, 0);
    sees(next(room), 8, IBV_WC_TM_DEL, 0);
}

static void a_chain_stops_at_the_first_that_is_wrong(void **state)
{
    struct room *room = *state;
    struct ibv_ops_wr wrs[3] = {{.wr_id = 1, .opcode = IBV_WR_TAG_SYNC, .flags = SIGNALED},
                                {.wr_id = 2, .opcode = 99, .flags = SIGNALED},
                                {.wr_id = 3, .opcode = IBV_WR_TAG_SYNC, .flags = SIGNALED}};
    struct ibv_ops_wr *bad = NULL;
    struct room_event event;
    wrs[0].next = &wrs[1];
    wrs[1].next = &wrs[2];
    assert_int_equal(ibv_post_srq_ops(room->srq, wrs, &bad), EINVAL);
    assert_ptr_equal(bad, &wrs[1]);
    sees(next(room), 1, IBV_WC_TM_SYNC, 0);
    assert_false(room_poll(room, &event));
}

/* As of any SRQ: a message that finds no tag takes the receive, and polling its completion frees the place. */
static void an_ordinary_receive_has_its_place_until_it_is_polled(void **state)
{
    struct room *room = *state;
    for (uint64_t i = 0; i < ROOM_RECEIVES; i++)
        assert_int_equal(room_post(room, i, 0, 100), 0);
    assert_int_equal(room_post(room, ROOM_RECEIVES, 0, 100), ENOMEM);
    send_eager(room, 0, 1, 5, 10, 1);
    send_eager(room, 0, 2, 5, 10, 1);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    sender_sees(room, 2, IBV_WC_SUCCESS, IBV_WC_SEND);
    assert_int_equal(room_post(room, ROOM_RECEIVES, 0, 100), ENOMEM);
    assert_int_equal(next(room).id, 0);
    assert_int_equal(room_post(room, ROOM_RECEIVES, 0, 100), 0);
    assert_int_equal(room_post(room, ROOM_RECEIVES + 1, 0, 100), ENOMEM);
}

TESTS_OF(script, a_full_list_and_too_many_operations_are_no_memory,
                 nonsense_is_told_before_too_many_operations,
                 a_list_for_no_operations_refuses_what_may_complete,
                 a_deletion_that_may_fail_needs_room_for_its_completion,
                 completions_that_an_overrun_lost_are_not_waited_for,
                 completions_of_operations_outlive_their_queue,
                 deleting_returns_the_buffer_or_says_that_it_was_taken,
                 a_chain_stops_at_the_first_that_is_wrong,
                 an_ordinary_receive_has_its_place_until_it_is_polled)
