/* Errors in the middle of things, through the public API: what they do to the message, to its buffer and to both queue
 * pairs, and that the SRQ works on. */
#include <string.h>
#include <time.h>

#include "base/testing/group.h"
#include "steps.h"

/* A byte that the device writes while the program looks: nothing but the device orders that, so ThreadSanitizer must
 * not watch. */
__attribute__((noinline, no_sanitize("thread"))) static uint8_t peek(const volatile uint8_t *at)
{
    return *at;
}

/* Adds as `add`, for any tag, but the buffer may not be written. */
static void add_with_wrong_key(struct room *room, uint64_t id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)room->memory, .length = 100, .lkey = room->mr->lkey + 0x100};
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD}, *bad;
    wr.tm.add.recv_wr_id = id;
    wr.tm.add.sg_list = &sge;
    wr.tm.add.num_sge = 1;
    assert_int_equal(ibv_post_srq_ops(room->srq, &wr, &bad), 0);
}

/* The queue continues with the other sender, whose message takes this buffer. */
static void goes_on(struct room *room, uint64_t id)
{
    send_eager(room, 1, 9, 5, 10, 7);
    sees(next(room), id, IBV_WC_TM_RECV, MATCHED);
}

/* -- eager */

static void an_eager_message_longer_than_its_buffer_is_an_error_on_both_sides(void **state)
{
    struct room *room = *state;
    add(room, 5, 50, 0, 9);
    send_eager(room, 0, 1, 5, 10, 7);
    struct room_event event = next(room);
    assert_int_equal(event.status, IBV_WC_LOC_LEN_ERR);
    assert_int_equal(event.id, 50);
    sender_sees(room, 1, IBV_WC_REM_INV_REQ_ERR, 0);
    add(room, 5, 51, 0, 100);
    goes_on(room, 51);
}

static void a_tagged_buffer_with_a_wrong_key_is_an_error_on_both_sides(void **state)
{
    struct room *room = *state;
    add_with_wrong_key(room, 50);
    send_eager(room, 0, 1, 5, 10, 7);
    struct room_event event = next(room);
    assert_int_equal(event.status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(event.id, 50);
    sender_sees(room, 1, IBV_WC_REM_OP_ERR, 0);
}

/* The first of two elements is sent; the second one has no key, so the rest never arrives, and the receiver is left in
 * the middle of the message. */
static void send_half(struct room *room, int sender, uint8_t opcode)
{
    enum { HALF = 16384 }; /* the length of a packet, and below that from which on bytes go by reference */
    struct ibv_wc wc;
    room_head(room_upper(room, 0), opcode, 0, 5);
    struct ibv_sge sges[] = {
        {.addr = (uintptr_t)room_upper(room, 0), .length = HALF, .lkey = room->mr->lkey},
        {.addr = (uintptr_t)room_upper(room, HALF), .length = HALF, .lkey = room->mr->lkey + 0x100}};
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = 2}, *bad;
    memset(room_upper(room, TMH), 7, HALF - TMH);
    assert_int_equal(ibv_post_send(room->senders[sender].qp, &wr, &bad), 0);
    assert_true(room_sender_wait(room, &wc));
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
}

/* Bytes of the message have arrived. */
static void is_in_the_middle(struct room *room, uint32_t offset)
{
    for (int i = 0; i < 5000 && peek(room->memory + offset) != 7; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(peek(room->memory + offset), 7);
}

enum end { TO_ERROR, TO_RESET, DESTROYED, ENDS };

static void end_queue_pair(struct room *room, int sender, enum end end)
{
    struct ibv_qp **qp = &room->senders[sender].tm_qp;
    struct ibv_qp_attr attr = {.qp_state = end == TO_ERROR ? IBV_QPS_ERR : IBV_QPS_RESET};
    if (end != DESTROYED) {
        assert_int_equal(ibv_modify_qp(*qp, &attr, IBV_QP_STATE), 0);
        return;
    }
    assert_int_equal(ibv_destroy_qp(*qp), 0);
    *qp = NULL;
}

static void start_afresh(struct room *room, int sender)
{
    room_disconnect(room, sender);
    assert_true(room_connect(room, sender));
}

/* The first sender's message, half arrived. */
static void begin_message(struct room *room, uint8_t opcode)
{
    memset(room->memory, 0, 8192);
    send_half(room, 0, opcode);
    is_in_the_middle(room, 4096);
}

static void nothing_is_complete(struct room *room)
{
    struct room_event event;
    assert_false(room_poll(room, &event));
}

/* The queue pair on the list ends, and what its message has taken is returned. */
static void end_message(struct room *room, enum end end, uint64_t taken)
{
    struct room_event event;
    end_queue_pair(room, 0, end);
    fails(next(room), taken, IBV_WC_WR_FLUSH_ERR);
    assert_false(room_poll(room, &event));
}

static void a_queue_pair_that_ends_in_the_middle_of_an_eager_message_gives_its_buffer_back(void **state)
{
    struct room *room = *state;
    for (enum end end = TO_ERROR; end < ENDS; end++) {
        add(room, 5, 50, 0, 4 << 20);
        add(room, 5, 51, 0, 100);
        begin_message(room, IBV_TMH_EAGER);
        sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
        nothing_is_complete(room);
        end_message(room, end, 50);
        goes_on(room, 51); /* an entry that was not taken stays posted */
        sender_sees(room, 9, IBV_WC_SUCCESS, IBV_WC_SEND);
        start_afresh(room, 0);
    }
}

/* "Matching completion is ... always serialized with respect to other matches and the completion of unexpected
 * messages": a program that sees a message that was not matched knows of all entries that were taken before. */
static void a_match_is_told_before_what_came_later(void **state)
{
    struct room *room = *state;
    assert_int_equal(room_add(room, 0, 0, 50, 0, 4 << 20, 0, 0, NULL), 0);
    room_post(room, 99, 4 << 20, 100);
    begin_message(room, IBV_TMH_EAGER);
    send_eager(room, 1, 2, 6, 10, 1);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    sees(next(room), 99, IBV_WC_TM_RECV, 0);
    nothing_is_complete(room);
}

/* The unexpected message is not counted, so the two sides agree, and what was disabled meanwhile is enabled. */
static void a_queue_pair_that_ends_in_the_middle_of_an_unexpected_message_gives_its_receive_back(void **state)
{
    struct room *room = *state;
    for (enum end end = TO_ERROR; end < ENDS; end++) {
        room_post(room, 99, 0, 4 << 20);
        begin_message(room, IBV_TMH_EAGER);
        nothing_is_complete(room);
        assert_int_equal(room_add(room, 5, EXACT, 50, 0, 100, SIGNALED, 0, NULL), 0);
        sees(next(room), 50, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
        end_message(room, end, 99);
        goes_on(room, 50);
        sender_sees(room, 9, IBV_WC_SUCCESS, IBV_WC_SEND);
        start_afresh(room, 0);
    }
}

static void a_queue_pair_that_ends_in_the_middle_of_an_untagged_message_gives_its_receive_back(void **state)
{
    struct room *room = *state;
    for (enum end end = TO_ERROR; end < ENDS; end++) {
        room_post(room, 99, 0, 4 << 20);
        begin_message(room, IBV_TMH_NO_TAG);
        nothing_is_complete(room);
        end_message(room, end, 99);
        start_afresh(room, 0);
    }
}

/* -- rendezvous */

static void a_rendezvous_with_a_wrong_key_ends_its_buffer_with_that_error(void **state)
{
    struct room *room = *state;
    add(room, 5, 50, 0, 100);
    add(room, 5, 51, 0, 100);
    room_rendezvous_head(room, room_upper(room, 0), 0, 5, PLACE, 100);
    room_upper(room, 0)[24] ^= 0x40;
    room_send(room, 0, 1, 0, HEAD);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    struct room_event event = next(room);
    assert_int_equal(event.status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(event.id, 50);
    send_rendezvous(room, 1, 3, 5, 100, 9); /* an entry that was not taken stays posted, for the other sender */
    sees(next(room), 51, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    sees(next(room), 51, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
}

/* The buffer's own key, which the request does not touch yet: the READ does. */
static void a_rendezvous_into_a_buffer_with_a_wrong_key_ends_with_that_error(void **state)
{
    struct room *room = *state;
    add_with_wrong_key(room, 50);
    add(room, 5, 51, 0, 100);
    send_rendezvous(room, 0, 1, 5, 100, 9);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    fails(next(room), 50, IBV_WC_LOC_PROT_ERR);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    send_rendezvous(room, 1, 3, 5, 100, 9);
    sees(next(room), 51, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    sees(next(room), 51, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
}

static void a_finish_that_the_sender_refuses_ends_its_rendezvous_with_that_error(void **state)
{
    struct room *room = *state;
    struct ibv_sge sge = {.addr = (uintptr_t)room_upper(room, 4096), .length = HEAD - 1, .lkey = room->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;
    add(room, 5, 50, 0, 100);
    add(room, 5, 51, 0, 100);
    memset(room_upper(room, PLACE), 9, 100);
    room_rendezvous_head(room, room_upper(room, 0), 0, 5, PLACE, 100);
    assert_int_equal(ibv_post_recv(room->senders[0].qp, &wr, &bad), 0);
    assert_int_equal(room_send(room, 0, 1, 0, HEAD), 0);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    fails(next(room), 50, IBV_WC_REM_INV_REQ_ERR);
    assert_true(is_filled(room->memory, 100, 9)); /* the READ was done */
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    sender_sees(room, 2, IBV_WC_LOC_LEN_ERR, 0);
    goes_on(room, 51);
}

/* A rendezvous that can't end, as its FIN has no receive: the sender has posted no receive. */
static void begin_endless(struct room *room)
{
    add(room, 5, 50, 0, 100);
    room_rendezvous_head(room, room_upper(room, 0), 0, 5, PLACE, 100);
    room_send(room, 0, 1, 0, HEAD);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    room_let_come();
}

static void data_are_valid_only_when_the_sender_knows(void **state)
{
    struct room *room = *state;
    struct room_event event;
    begin_endless(room);
    assert_false(room_poll(room, &event));
    room_post_finish(room, 0, 2, 4096);
    sees(next(room), 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
}

static void a_finish_that_is_lost_with_its_peer_ends_its_rendezvous_with_an_error(void **state)
{
    struct room *room = *state;
    begin_endless(room);
    assert_int_equal(ibv_destroy_qp(room->senders[0].qp), 0);
    room->senders[0].qp = NULL;
    fails(next(room), 50, IBV_WC_RETRY_EXC_ERR);
    add(room, 5, 51, 0, 100);
    goes_on(room, 51);
}

static void a_queue_pair_that_ends_in_the_middle_of_a_rendezvous_gives_its_buffer_back(void **state)
{
    struct room *room = *state;
    for (enum end end = TO_ERROR; end < ENDS; end++) {
        begin_endless(room);
        end_message(room, end, 50);
        add(room, 5, 51, 0, 100);
        goes_on(room, 51);
        start_afresh(room, 0);
    }
}

static void what_a_destroyed_queue_pair_brought_stays_to_be_polled(void **state)
{
    struct room *room = *state;
    room_post(room, 99, 0, 1000);
    add(room, 5, 50, 0, 100);
    send_eager(room, 0, 1, 5, 10, 7);
    send_eager(room, 0, 2, 5, 10, 7);
    sender_sees(room, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
    sender_sees(room, 2, IBV_WC_SUCCESS, IBV_WC_SEND);
    room_disconnect(room, 0);
    sees(next(room), 50, IBV_WC_TM_RECV, MATCHED);
    sees(next(room), 99, IBV_WC_TM_RECV, 0); /* which software must count */
}

TESTS_OF(script, an_eager_message_longer_than_its_buffer_is_an_error_on_both_sides,
                 a_tagged_buffer_with_a_wrong_key_is_an_error_on_both_sides,
                 a_queue_pair_that_ends_in_the_middle_of_an_eager_message_gives_its_buffer_back,
                 a_match_is_told_before_what_came_later,
                 a_queue_pair_that_ends_in_the_middle_of_an_unexpected_message_gives_its_receive_back,
                 a_queue_pair_that_ends_in_the_middle_of_an_untagged_message_gives_its_receive_back,
                 a_rendezvous_with_a_wrong_key_ends_its_buffer_with_that_error,
                 a_rendezvous_into_a_buffer_with_a_wrong_key_ends_with_that_error,
                 a_finish_that_the_sender_refuses_ends_its_rendezvous_with_that_error,
                 data_are_valid_only_when_the_sender_knows,
                 a_finish_that_is_lost_with_its_peer_ends_its_rendezvous_with_an_error,
                 a_queue_pair_that_ends_in_the_middle_of_a_rendezvous_gives_its_buffer_back,
                 what_a_destroyed_queue_pair_brought_stays_to_be_polled)
