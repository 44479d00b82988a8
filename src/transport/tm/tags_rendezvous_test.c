/* The rendezvous, as scripts for the machine alone. */
#include <string.h>

#include "base/testing/group.h"
#include "transport/testing/tags_desk.h"

static void a_rendezvous_matches_reads_finishes_and_completes(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    struct message message = rendezvous(5, 100);
    assert_int_equal(arrives(desk, &desk->a, &message), TAGS_RENDEZVOUS);
    assert_int_equal(tags_receive(&desk->tags, &desk->a)->sge_count, 0);
    ends(desk, &desk->a, IBV_WC_SUCCESS, message.length);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    assert_int_equal(desk->event.length, 0);
    assert_int_equal(desk->event.tag, 5);
    assert_int_equal(desk->event.application, 0xabcd);
    struct send_wqe *work = works(desk, &desk->a);
    assert_int_equal(work->opcode, IBV_WR_RDMA_READ);
    assert_int_equal(work->remote_address, 0x123456789a);
    assert_int_equal(work->rkey, 0x77);
    assert_int_equal(work->length, 100);
    assert_int_equal(work->sge_count, 1);
    assert_int_equal(work->sge[0].length, 100);
    assert_int_equal(work->sge[0].addr, 0x1000);
    has_sent(desk, &desk->a, work, IBV_WC_SUCCESS);
    assert_false(desk->has_event);
    work = works(desk, &desk->a);
    assert_int_equal(work->opcode, IBV_WR_SEND);
    assert_int_equal(work->flags, IBV_SEND_INLINE | IBV_SEND_SIGNALED); /* its ACK completes the receive */
    assert_int_equal(work->length, TAGS_HEAD);
    message.bytes[0] = IBV_TMH_FIN;
    assert_memory_equal(work->inline_data, message.bytes, TAGS_HEAD);
    has_sent(desk, &desk->a, work, IBV_WC_SUCCESS);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    assert_int_equal(desk->event.length, 100);
    assert_int_equal(desk->event.tag, 0);
    assert_false(tags_have_work(&desk->a));
    assert_int_equal(desk->tags.list.allocated, 0);
}

static void a_rendezvous_of_no_bytes_reads_nothing(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    assert_int_equal(gets(desk, rendezvous(5, 0)), TAGS_RENDEZVOUS);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    struct send_wqe *work = works(desk, &desk->a);
    assert_int_equal(work->opcode, IBV_WR_SEND);
    has_sent(desk, &desk->a, work, IBV_WC_SUCCESS);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    assert_int_equal(desk->event.length, 0);
}

static void a_rendezvous_fills_its_elements_in_order(void **state)
{
    struct desk *desk = *state;
    struct ibv_sge sges[] = {{.addr = 100, .length = 30, .lkey = 1}, {.addr = 200, .length = 30, .lkey = 2}};
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD};
    wr.tm.add.sg_list = sges;
    wr.tm.add.num_sge = 2;
    operate(desk, wr);
    gets(desk, rendezvous(5, 40));
    struct send_wqe *work = works(desk, &desk->a);
    assert_int_equal(work->sge_count, 2);
    assert_int_equal(work->sge[0].length, 30);
    assert_int_equal(work->sge[1].length, 10);
    assert_int_equal(work->sge[1].lkey, 2);
}

static void rendezvous_end_in_any_order(void **state)
{
    struct desk *desk = *state;
    _Alignas(8) char first[sizeof(struct send_wqe) + 256];
    add(desk, 5, EXACT, 50);
    add(desk, 6, EXACT, 60);
    gets(desk, rendezvous(5, 100));
    gets(desk, rendezvous(6, 100));
    memcpy(first, works(desk, &desk->a), sizeof(first));
    struct send_wqe *second = works(desk, &desk->a);
    assert_false(tags_have_work(&desk->a));
    has_sent(desk, &desk->a, second, IBV_WC_SUCCESS);
    second = works(desk, &desk->a);
    has_sent(desk, &desk->a, second, IBV_WC_SUCCESS);
    tells(desk, 60, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    has_sent(desk, &desk->a, (struct send_wqe *)first, IBV_WC_SUCCESS);
    has_sent(desk, &desk->a, works(desk, &desk->a), IBV_WC_SUCCESS);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
}

static void a_finish_goes_before_the_next_read(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    add(desk, 6, EXACT, 60);
    gets(desk, rendezvous(5, 100));
    has_sent(desk, &desk->a, works(desk, &desk->a), IBV_WC_SUCCESS);
    gets(desk, rendezvous(6, 100));
    assert_int_equal(works(desk, &desk->a)->opcode, IBV_WR_SEND);
    assert_int_equal(works(desk, &desk->a)->opcode, IBV_WR_RDMA_READ);
}

static void too_small_a_buffer_gets_the_headers_and_leaves_the_rest_to_software(void **state)
{
    struct desk *desk = *state;
    add_room(desk, 5, EXACT, 50, 99);
    struct message message = rendezvous(5, 100);
    message.length = TAGS_RENDEZVOUS_MAX;
    assert_int_equal(arrives(desk, &desk->a, &message), TAGS_INCOMPLETE);
    assert_int_equal(tags_receive(&desk->tags, &desk->a)->skip, 0);
    assert_int_equal(tags_receive(&desk->tags, &desk->a)->limit, TAGS_HEAD);
    ends(desk, &desk->a, IBV_WC_SUCCESS, message.length);
    assert_int_equal(desk->event.status, IBV_WC_TM_RNDV_INCOMPLETE);
    assert_int_equal(desk->event.id, 50);
    assert_int_equal(desk->event.opcode, IBV_WC_TM_RECV);
    assert_int_equal(desk->event.length, TAGS_HEAD);
    assert_int_equal(desk->event.tag, 5);
    assert_false(tags_have_work(&desk->a));
    assert_int_equal(desk->tags.list.allocated, 0);
}

static void a_buffer_smaller_than_the_headers_gets_what_fits(void **state)
{
    struct desk *desk = *state;
    add_room(desk, 5, EXACT, 50, 7);
    gets(desk, rendezvous(5, 100));
    assert_int_equal(desk->event.status, IBV_WC_TM_RNDV_INCOMPLETE);
    assert_int_equal(desk->event.length, 7);
    add_room(desk, 5, EXACT, 51, 0);
    gets(desk, rendezvous(5, 100));
    assert_int_equal(desk->event.status, IBV_WC_TM_RNDV_INCOMPLETE);
    assert_int_equal(desk->event.length, 0);
}

static void a_read_that_fails_ends_its_rendezvous(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    gets(desk, rendezvous(5, 100));
    has_sent(desk, &desk->a, works(desk, &desk->a), IBV_WC_REM_ACCESS_ERR);
    assert_true(desk->has_event);
    assert_int_equal(desk->event.id, 50);
    assert_int_equal(desk->event.status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(desk->event.reason, REASON_REMOTE_ACCESS);
    assert_int_equal(desk->event.opcode, IBV_WC_TM_RECV);
    assert_int_equal(desk->tags.list.allocated, 0);
}

/* The data are there, but the sender may never learn of it. */
static void a_finish_that_fails_ends_its_rendezvous(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    gets(desk, rendezvous(5, 100));
    has_sent(desk, &desk->a, works(desk, &desk->a), IBV_WC_SUCCESS);
    has_sent(desk, &desk->a, works(desk, &desk->a), IBV_WC_RETRY_EXC_ERR);
    assert_true(desk->has_event);
    assert_int_equal(desk->event.id, 50);
    assert_int_equal(desk->event.status, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(desk->event.opcode, IBV_WC_TM_RECV);
    assert_int_equal(desk->event.flags, 0);
    assert_false(tags_have_work(&desk->a));
    assert_int_equal(desk->tags.list.allocated, 0);
}

static void a_finish_is_solicited_when_its_request_was(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    struct message message = rendezvous(5, 0);
    struct recv_cqe arrival = {.opcode = IBV_WC_RECV, .length = message.length, .solicited = true};
    arrives(desk, &desk->a, &message);
    tags_received(&desk->tags, &desk->a, ORDINARY, &arrival, &desk->event);
    assert_true(desk->event.notable);
    struct send_wqe *work = works(desk, &desk->a);
    assert_int_equal(work->flags, IBV_SEND_INLINE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
    has_sent(desk, &desk->a, work, IBV_WC_SUCCESS);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    assert_true(desk->event.notable);
}

static void a_queue_pair_that_dies_flushes_its_own_rendezvous_only(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < 4; i++)
        add(desk, 5, EXACT, 50 + i);
    gets(desk, rendezvous(5, 100));
    has_sent(desk, &desk->a, works(desk, &desk->a), IBV_WC_SUCCESS); /* 50 wants to finish */
    gets(desk, rendezvous(5, 100));                                  /* 51 wants to read */
    struct message message = rendezvous(5, 100);
    arrives(desk, &desk->b, &message); /* 52 is another's */
    ends(desk, &desk->b, IBV_WC_SUCCESS, message.length);
    for (int i = 0; i < 2; i++) {
        assert_true(tags_flush(&desk->tags, &desk->a, &desk->event));
        assert_int_equal(desk->event.id, 50 + i);
        assert_int_equal(desk->event.status, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(desk->event.opcode, IBV_WC_TM_RECV);
    }
    assert_false(tags_flush(&desk->tags, &desk->a, &desk->event));
    assert_true(tags_have_work(&desk->b));
    assert_int_equal(desk->tags.list.count, 1); /* tagged buffers that no message took stay */
    assert_int_equal(desk->tags.list.allocated, 2);
}

static void an_eager_message_that_dies_gives_its_buffer_back_with_an_error(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    struct message message = eager(5, 100);
    message.operation = OPERATION_SEND_FIRST;
    arrives(desk, &desk->a, &message);
    ends(desk, &desk->a, IBV_WC_WR_FLUSH_ERR, 0);
    assert_int_equal(desk->event.id, 50);
    assert_int_equal(desk->event.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(desk->event.opcode, IBV_WC_TM_RECV);
    assert_int_equal(desk->tags.list.allocated, 0);
}

TESTS_OF(script, a_rendezvous_matches_reads_finishes_and_completes,
                 a_rendezvous_of_no_bytes_reads_nothing,
                 a_rendezvous_fills_its_elements_in_order,
                 rendezvous_end_in_any_order,
                 a_finish_goes_before_the_next_read,
                 too_small_a_buffer_gets_the_headers_and_leaves_the_rest_to_software,
                 a_buffer_smaller_than_the_headers_gets_what_fits,
                 a_read_that_fails_ends_its_rendezvous,
                 a_finish_that_fails_ends_its_rendezvous,
                 a_finish_is_solicited_when_its_request_was,
                 a_queue_pair_that_dies_flushes_its_own_rendezvous_only,
                 an_eager_message_that_dies_gives_its_buffer_back_with_an_error)
