/* Tag matching through the public API: creation, refusals, and what only two queue pairs together show. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/testing/group.h"
#include "steps.h"

/* -- creation */

static void the_device_says_what_it_can(void **state)
{
    struct room *room = *state;
    struct ibv_device_attr_ex attr;
    assert_int_equal(ibv_query_device_ex(room->context, NULL, &attr), 0);
    assert_int_equal(attr.tm_caps.max_rndv_hdr_size, 64);
    assert_true(attr.tm_caps.max_num_tags >= 100000);
    assert_true(attr.tm_caps.max_ops >= 1024);
    assert_true(attr.tm_caps.max_sge >= 1);
    assert_int_equal(attr.tm_caps.flags, IBV_TM_CAP_RC);
}

static void a_queue_without_list_or_completion_queue_is_refused(void **state)
{
    struct room *room = *state;
    struct ibv_srq_init_attr_ex attr;
    ibv_destroy_srq(room_make_srq(room, &attr));
    uint32_t all = attr.comp_mask, parts[] = {IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_TM};
    for (int i = 0; i < 3; i++) {
        attr.comp_mask = all & ~parts[i];
        errno = 0;
        assert_null(ibv_create_srq_ex(room->context, &attr));
        assert_int_equal(errno, EINVAL);
    }
    attr.comp_mask = all | 1 << 20;
    assert_null(ibv_create_srq_ex(room->context, &attr));
    assert_int_equal(errno, EINVAL);
}

static void a_list_beyond_the_device_is_refused(void **state)
{
    struct room *room = *state;
    struct ibv_srq_init_attr_ex attr;
    struct ibv_device_attr_ex device;
    ibv_query_device_ex(room->context, NULL, &device);
    room->tags = device.tm_caps.max_num_tags;
    struct ibv_srq *srq = room_make_srq(room, &attr);
    assert_non_null(srq);
    assert_true(attr.tm_cap.max_num_tags >= room->tags);
    ibv_destroy_srq(srq);
    room->tags++;
    assert_null(room_make_srq(room, &attr));
    assert_int_equal(errno, EINVAL);
    room->tags = 0;
    assert_null(room_make_srq(room, &attr));
    room->tags = 1;
    room->operations = device.tm_caps.max_ops + 1;
    assert_null(room_make_srq(room, &attr));
}

static void a_basic_queue_can_be_made_the_long_way(void **state)
{
    struct room *room = *state;
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_BASIC,
        .pd = room->pd,
        .cq = ibv_cq_ex_to_cq(room->cq),
    };
    struct ibv_srq *srq = ibv_create_srq_ex(room->context, &attr);
    assert_non_null(srq);
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC}, *bad = NULL;
    assert_int_equal(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void what_is_in_use_is_not_destroyed(void **state)
{
    struct room *room = *state;
    assert_int_equal(ibv_destroy_srq(room->srq), EBUSY);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(room->cq)), EBUSY);
    room_disconnect(room, 0);
    room_disconnect(room, 1);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(room->cq)), EBUSY);
    assert_int_equal(room_add(room, 1, EXACT, 1, 0, 8, SIGNALED, 0, NULL), 0);
    sees(next(room), 1, IBV_WC_TM_ADD, 0);
}

static void only_reliable_connections_match_tags(void **state)
{
    struct room *room = *state;
    static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND};
    for (int i = 0; i < 3; i++) {
        struct ibv_qp_init_attr attr = {.send_cq = room->sender_cq,
                                        .recv_cq = room->sender_cq,
                                        .srq = room->srq,
                                        .cap = {.max_send_wr = 1},
                                        .qp_type = types[i]};
        errno = 0;
        assert_null(ibv_create_qp(room->pd, &attr));
        assert_int_equal(errno, EINVAL);
    }
}

/* -- operations */

/* -- eager */

/* The match and the data of one packet complete together; of several, the match first. How many there are is the link's
 * business in between. */
static struct room_event next_eager(struct room *room, uint64_t tag, uint32_t length)
{
    struct room_event event = next(room);
    bool together = event.flags == MATCHED;
    assert_true(length > 4096 || together);
    assert_true(length <= 1 << 20 || !together);
    if (!together)
        sees(event, tag, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    assert_int_equal(event.tag, tag);
    assert_int_equal(event.application, 0x1234);
    if (together)
        return event;
    assert_int_equal(event.length, 0);
    event = next(room);
    sees(event, tag, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    return event;
}

static void eager_messages_of_every_length_arrive(void **state)
{
    struct room *room = *state;
    static const uint32_t lengths[] = {0, 1, 15, 16, 17, 4096, 16383, 16384, 100000, 4 << 20};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(room->memory, 0xff, lengths[i] + 1);
        add(room, i, i, 0, lengths[i] + 1);
        send_eager(room, 0, 1, i, lengths[i], (uint8_t)i);
        struct room_event event = next_eager(room, i, lengths[i]);
        assert_int_equal(event.id, i);
        assert_int_equal(event.length, lengths[i]);
        assert_int_equal(event.qp_number, room->senders[0].tm_qp->qp_num);
        assert_true(is_filled(room->memory, lengths[i], (uint8_t)i));
        assert_int_equal(room->memory[lengths[i]], 0xff);
        sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    }
}

static void unexpected_messages_arrive_whole_and_untagged(void **state)
{
    struct room *room = *state;
    room_post(room, 99, 0, 200000);
    room_post(room, 98, 0, 200000);
    send_eager(room, 0, 1, 5, 100000, 7);
    struct room_event event = next(room);
    sees(event, 99, IBV_WC_TM_RECV, 0);
    assert_int_equal(event.length, TMH + 100000);
    assert_int_equal(event.tag, 0);
    assert_memory_equal(room->memory, room_upper(room, 0), TMH + 100000);
    room_head(room_upper(room, 0), IBV_TMH_NO_TAG, 1, 5);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    assert_int_equal(room_send(room, 1, 2, 0, 50), 0);
    event = next(room);
    sees(event, 98, IBV_WC_TM_NO_TAG, 0);
    assert_int_equal(event.length, 50);
}

static void without_a_receive_an_unexpected_message_waits_and_may_become_expected(void **state)
{
    struct room *room = *state;
    struct room_event event;
    send_eager(room, 0, 1, 5, 10, 7);
    room_let_come();
    assert_false(room_poll(room, &event));
    assert_int_equal(room_add(room, 5, EXACT, 50, 0, 100, SIGNALED, 0, NULL), 0);
    sees(next(room), 50, IBV_WC_TM_ADD, 0);
    sees(next(room), 50, IBV_WC_TM_RECV, MATCHED);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
}

static void the_limit_counts_ordinary_receives(void **state)
{
    struct room *room = *state;
    struct ibv_srq_attr attr = {.srq_limit = 1};
    struct ibv_async_event event;
    room_post(room, 99, 0, 100);
    assert_int_equal(ibv_modify_srq(room->srq, &attr, IBV_SRQ_LIMIT), 0);
    add(room, 5, 50, 0, 100);
    send_eager(room, 0, 1, 5, 10, 7);
    next(room);
    ibv_query_srq(room->srq, &attr);
    assert_int_equal(attr.srq_limit, 1); /* a tagged one did not count */
    send_eager(room, 0, 1, 5, 10, 7);
    next(room);
    assert_int_equal(ibv_get_async_event(room->context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(event.element.srq, room->srq);
    ibv_ack_async_event(&event);
}

/* The data go where the WRITE says; the receive is an ordinary one, although a tag of any kind would match. */
static void a_write_with_immediate_takes_an_ordinary_receive_and_is_not_counted(void **state)
{
    struct room *room = *state;
    assert_int_equal(room_add(room, 0, 0, 50, 0, 100, 0, 0, NULL), 0);
    room_post(room, 99, 4096, 100);
    memset(room_upper(room, 0), IBV_TMH_EAGER, 40);
    struct ibv_sge sge = {.addr = (uintptr_t)room_upper(room, 0), .length = 40, .lkey = room->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .sg_list = &sge, .num_sge = 1}, *bad;
    wr.imm_data = htobe32(0xabcdef);
    wr.wr.rdma.remote_addr = (uintptr_t)room->memory + 8192;
    wr.wr.rdma.rkey = room->mr->rkey;
    assert_int_equal(ibv_post_send(room->senders[0].qp, &wr, &bad), 0);
    struct room_event event = next(room);
    sees(event, 99, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
    assert_int_equal(event.immediate, htobe32(0xabcdef));
    assert_int_equal(event.length, 40);
    assert_true(is_filled(room->memory + 8192, 40, IBV_TMH_EAGER));
    assert_true(is_filled(room->memory, 100, 0) && is_filled(room->memory + 4096, 100, 0));
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 2, 0, SIGNALED | SYNC, 0), 0);
    sees(next(room), 2, IBV_WC_TM_SYNC, 0); /* in phase: nothing was unexpected */
    send_eager(room, 0, 3, 5, 10, 7);
    sees(next(room), 50, IBV_WC_TM_RECV, MATCHED);
}

static void completions_can_be_polled_the_short_way(void **state)
{
    struct room *room = *state;
    struct ibv_wc wc;
    add(room, 5, 50, 0, 100);
    send_eager(room, 0, 1, 5, 10, 7);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    while (!ibv_poll_cq(ibv_cq_ex_to_cq(room->cq), 1, &wc))
        ;
    assert_int_equal(wc.opcode, IBV_WC_TM_RECV);
    assert_int_equal(wc.wc_flags, MATCHED);
    assert_int_equal(wc.byte_len, 10);
    assert_int_equal(wc.wr_id, 50);
}

/* -- rendezvous */

static void rendezvous_of_every_length_arrive(void **state)
{
    struct room *room = *state;
    static const uint32_t lengths[] = {0, 1, 4096, 16384, 100000, 4 << 20};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(room->memory, 0xff, lengths[i] + 1);
        add(room, i, i, 0, lengths[i] + 1);
        send_rendezvous(room, 0, 1, i, lengths[i], (uint8_t)i);
        sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
        sender_sees(room, 2, IBV_WC_SUCCESS, IBV_WC_RECV);
        struct room_event event = next(room);
        sees(event, i, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
        assert_int_equal(event.length, 0);
        assert_int_equal(event.tag, i);
        event = next(room);
        sees(event, i, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
        assert_int_equal(event.length, lengths[i]);
        assert_true(is_filled(room->memory, lengths[i], (uint8_t)i));
        assert_int_equal(room->memory[lengths[i]], 0xff);
        uint8_t finish[HEAD];
        memcpy(finish, room_upper(room, 0), HEAD);
        finish[0] = IBV_TMH_FIN;
        assert_memory_equal(room_upper(room, 4096), finish, HEAD);
    }
}

/* A byte that the device writes while the program looks: nothing but the device orders that, so ThreadSanitizer must
 * not watch. */
__attribute__((noinline, no_sanitize("thread"))) static uint8_t peek(const volatile uint8_t *at)
{
    return *at;
}

static void a_rendezvous_needs_no_call_of_the_receiver(void **state)
{
    struct room *room = *state;
    add(room, 5, 50, 0, 1 << 20);
    room->memory[(1 << 20) - 1] = 0;
    send_rendezvous(room, 0, 1, 5, 1 << 20, 9);
    volatile uint8_t *last = room->memory + (1 << 20) - 1, *finish = room_upper(room, 4096);
    for (int i = 0; i < 5000 && (peek(last) != 9 || peek(finish) != IBV_TMH_FIN); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(peek(last), 9);
    assert_int_equal(peek(finish), IBV_TMH_FIN);
}

static void a_sleeping_receiver_is_woken_for_each_step(void **state)
{
    struct room *room = *state;
    struct ibv_cq *cq;
    void *context;
    unsigned flags = 0;
    add(room, 5, 50, 0, 1 << 20);
    ibv_req_notify_cq(ibv_cq_ex_to_cq(room->cq), 0);
    send_rendezvous(room, 0, 1, 5, 1 << 20, 9);
    while (!(flags & IBV_WC_TM_DATA_VALID)) {
        struct room_event event;
        assert_int_equal(ibv_get_cq_event(room->channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        ibv_req_notify_cq(cq, 0);
        while (room_poll(room, &event))
            flags |= event.flags;
    }
    assert_int_equal(flags, MATCHED);
}

/* The FIN is as solicited as its request: whether it wakes a sender that asked for solicited completions only. */
static bool wakes_sender(struct room *room, unsigned flags)
{
    struct ibv_cq *cq;
    void *context;
    add(room, 5, 50, 0, 100);
    assert_int_equal(ibv_req_notify_cq(room->sender_cq, 1), 0);
    assert_int_equal(room_post_finish(room, 0, 2, 4096), 0);
    room_rendezvous_head(room, room_upper(room, 0), 0, 5, PLACE, 100);
    struct ibv_sge sge = {.addr = (uintptr_t)room_upper(room, 0), .length = HEAD, .lkey = room->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = flags};
    struct ibv_send_wr *bad;
    assert_int_equal(ibv_post_send(room->senders[0].qp, &wr, &bad), 0);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    sender_sees(room, 2, IBV_WC_SUCCESS, IBV_WC_RECV);
    struct pollfd file = {.fd = room->sender_channel->fd, .events = POLLIN};
    if (poll(&file, 1, flags ? 10000 : 20) != 1)
        return false;
    assert_int_equal(ibv_get_cq_event(room->sender_channel, &cq, &context), 0);
    assert_ptr_equal(cq, room->sender_cq);
    ibv_ack_cq_events(cq, 1);
    return true;
}

static void a_finish_is_as_solicited_as_its_request(void **state)
{
    assert_false(wakes_sender(*state, 0));
    assert_true(wakes_sender(*state, IBV_SEND_SOLICITED));
}

static void many_rendezvous_are_in_flight(void **state)
{
    enum { COUNT = 40, EACH = 100000 };
    struct room *room = *state;
    int matched = 0, valid = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        add(room, i, i, i * EACH, EACH);
        memset(room_upper(room, PLACE + i * EACH), (int)i + 1, EACH);
        room_rendezvous_head(room, room_upper(room, i * 64), 0, i, PLACE + i * EACH, EACH);
        assert_int_equal(room_post_finish(room, i % 2, 1000 + i, 65536 + i * 64), 0);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(room_send(room, i % 2, i, i * 64, HEAD), 0);
    while (valid < COUNT) {
        struct room_event event = next(room);
        assert_int_equal(event.status, IBV_WC_SUCCESS);
        matched += event.flags == IBV_WC_TM_MATCH;
        valid += event.flags == IBV_WC_TM_DATA_VALID;
    }
    assert_int_equal(matched, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_true(is_filled(room->memory + i * EACH, EACH, (uint8_t)(i + 1)));
}

static void too_small_a_buffer_gets_the_headers(void **state)
{
    struct room *room = *state;
    memset(room->memory, 0xff, 200);
    add(room, 5, 50, 0, 100);
    send_rendezvous(room, 0, 1, 5, 101, 9);
    struct room_event event = next(room);
    assert_int_equal(event.status, IBV_WC_TM_RNDV_INCOMPLETE);
    assert_int_equal(event.id, 50);
    assert_int_equal(event.tag, 5);
    assert_memory_equal(room->memory, room_upper(room, 0), HEAD);
    assert_true(is_filled(room->memory + HEAD, 100, 0xff));
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    room_let_come();
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(room->sender_cq, 1, &wc), 0); /* no FIN */
    add(room, 5, 51, 0, 100);
    send_eager(room, 0, 3, 5, 10, 7); /* the queue pair works on */
    sees(next(room), 51, IBV_WC_TM_RECV, MATCHED);
}

/* Instead of sender 0's: one that takes work of the program, too. */
static struct ibv_qp *join_with_room_to_send(struct room *room, uint32_t max_send_wr)
{
    union ibv_gid gid;
    ibv_query_gid(room->context, 1, 0, &gid);
    room_disconnect(room, 0);
    room_connect(room, 0);
    struct ibv_qp *plain = room->senders[0].qp;
    ibv_destroy_qp(room->senders[0].tm_qp);
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    ibv_modify_qp(plain, &reset, IBV_QP_STATE);
    struct ibv_qp *both = room->senders[0].tm_qp = room_make_tm_qp(room, max_send_wr);
    assert_true(room_join(plain, both->qp_num, &gid) && room_join(both, plain->qp_num, &gid));
    return both;
}

static void a_program_may_send_on_such_a_queue_pair_too(void **state)
{
    struct room *room = *state;
    struct ibv_qp *both = join_with_room_to_send(room, 2);
    struct ibv_sge sge = {.addr = (uintptr_t)room->memory, .length = 8, .lkey = room->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 7,
                             .opcode = IBV_WR_SEND,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    room_post_finish(room, 0, 3, 8192);
    room_post_finish(room, 0, 3, 8192);
    add(room, 5, 50, 0, 100000);
    assert_int_equal(ibv_post_send(both, &wr, &bad), 0);
    assert_int_equal(ibv_post_send(both, &wr, &bad), 0);
    assert_int_equal(ibv_post_send(both, &wr, &bad), ENOMEM); /* its own places are not the program's */
    for (int i = 0; i < 2; i++) {
        sees(next(room), 7, IBV_WC_SEND, 0);
        sender_sees(room, 3, IBV_WC_SUCCESS, IBV_WC_RECV);
    }
    send_rendezvous(room, 0, 1, 5, 100000, 9);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
}

/* The buffers on the list and the receives are of the SRQ's protection domain, the queue pairs may be of another. */
static struct ibv_pd *move_to_another_domain(struct room *room, struct room_sender *sender)
{
    union ibv_gid gid;
    struct ibv_pd *own = room->pd, *other = ibv_alloc_pd(room->context);
    ibv_destroy_qp(sender->tm_qp);
    room->pd = other;
    sender->tm_qp = room_make_tm_qp(room, 0);
    room->pd = own;
    assert_int_equal(ibv_query_gid(room->context, 1, 0, &gid), 0);
    assert_int_equal(ibv_modify_qp(sender->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), 0);
    assert_true(room_join(sender->tm_qp, sender->qp->qp_num, &gid) &&
                room_join(sender->qp, sender->tm_qp->qp_num, &gid));
    return other;
}

static void buffers_are_of_the_queues_protection_domain(void **state)
{
    struct room *room = *state;
    struct ibv_pd *other = move_to_another_domain(room, &room->senders[0]);
    add(room, 5, 50, 0, 4096);
    send_eager(room, 0, 1, 5, 4096, 7);
    sees(next(room), 50, IBV_WC_TM_RECV, MATCHED);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    assert_int_equal(room_post(room, 60, 0, 4096), 0);
    send_eager(room, 0, 2, 6, 64, 8);
    sees(next(room), 60, IBV_WC_TM_RECV, 0);
    sender_sees(room, 2, IBV_WC_SUCCESS, IBV_WC_SEND);
    assert_int_equal(room_operate(room, IBV_WR_TAG_SYNC, 0, 0, SYNC, 1), 0);
    add(room, 7, 70, 8192, 1 << 20);
    send_rendezvous(room, 0, 3, 7, 1 << 20, 9);
    sees(next(room), 70, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    sees(next(room), 70, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    assert_true(is_filled(room->memory + 8192, 1 << 20, 9));
    room_disconnect(room, 0);
    ibv_dealloc_pd(other);
}

static void build_send(struct room *room, struct ibv_qp_ex *qp, uint64_t id)
{
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(qp);
    ibv_wr_set_sge(qp, room->mr->lkey, (uintptr_t)room->memory + 1024 * id, 8);
}

/* The device's own work is between, in the same send queue: neither waits for the other, and no work gets lost. */
static void a_rendezvous_goes_on_within_a_batch_of_work_requests(void **state)
{
    struct room *room = *state;
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(join_with_room_to_send(room, 2));
    for (int round = 0; round < 20; round++) {
        room_post_finish(room, 0, 3, 8192);
        room_post_finish(room, 0, 4, 8192 + 64);
        add(room, 5, 50, 65536, 100000);
        ibv_wr_start(qp);
        build_send(room, qp, 1);
        send_rendezvous(room, 0, 2, 5, 100000, 9);
        sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
        sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
        build_send(room, qp, 2);
        assert_int_equal(ibv_wr_complete(qp), 0);
        sees(next(room), 1, IBV_WC_SEND, 0);
        sees(next(room), 2, IBV_WC_SEND, 0);
        struct ibv_wc wc;
        for (int receives = 0; receives < 4;) /* two sends, the finish, and the rendezvous' request */
            receives += room_sender_wait(room, &wc) && wc.status == IBV_WC_SUCCESS;
    }
}

TESTS_OF(script, the_device_says_what_it_can,
                 a_queue_without_list_or_completion_queue_is_refused,
                 a_list_beyond_the_device_is_refused,
                 a_basic_queue_can_be_made_the_long_way,
                 what_is_in_use_is_not_destroyed,
                 only_reliable_connections_match_tags,
                 eager_messages_of_every_length_arrive,
                 unexpected_messages_arrive_whole_and_untagged,
                 without_a_receive_an_unexpected_message_waits_and_may_become_expected,
                 the_limit_counts_ordinary_receives,
                 a_write_with_immediate_takes_an_ordinary_receive_and_is_not_counted,
                 completions_can_be_polled_the_short_way,
                 rendezvous_of_every_length_arrive,
                 a_rendezvous_needs_no_call_of_the_receiver,
                 a_sleeping_receiver_is_woken_for_each_step,
                 a_finish_is_as_solicited_as_its_request,
                 many_rendezvous_are_in_flight,
                 too_small_a_buffer_gets_the_headers,
                 a_program_may_send_on_such_a_queue_pair_too,
                 buffers_are_of_the_queues_protection_domain,
                 a_rendezvous_goes_on_within_a_batch_of_work_requests)
