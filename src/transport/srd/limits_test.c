/* The places of the send queue, and the ends of tables and of memory. */
#include <string.h>

#include "transport/testing/srd_case.h"

/* ---- the queue ---- */

static void holes_of_the_queue_are_closed(void **state)
{
    struct desk *desk = *state;
    uint32_t first = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    for (unsigned i = 0; i < 4 * DESK_QUEUE; i++) {
        desk_post_receive(desk, 2, DESK_MESSAGE);
        uint32_t one = desk_post(desk, 0, 2, IBV_WR_SEND_WITH_IMM, 10);
        assert_int_not_equal(one, UINT32_MAX);
        desk_run(desk);
        succeeds(desk, 0, one);
    }
    waits(desk, 0, first);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    succeeds(desk, 0, first);
    assert_int_equal(desk_engine(desk, 0)->requester->holes, 0);
    assert_int_equal(engine_queue(&desk->nodes[0].engine)->head, engine_queue(&desk->nodes[0].engine)->tail);
}

static void half_of_the_queue_is_free_of_holes(void **state)
{
    enum { WAITING = DESK_QUEUE / 2 - 1 };
    struct desk *desk = *state;
    for (unsigned i = 0; i < WAITING; i++) {
        desk_post(desk, 0, 1, i % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM, i * 8);
        desk_run(desk);
        desk_meet(desk, 0, 2);
    }
    for (unsigned i = 0; i < 3 * DESK_QUEUE; i++) {
        uint32_t one = desk_post(desk, 0, 2, IBV_WR_RDMA_WRITE, 250);
        assert_int_not_equal(one, UINT32_MAX);
        desk_run(desk);
        succeeds(desk, 0, one);
    }
    assert_int_equal(desk->nodes[0].works - desk->nodes[0].ended, WAITING);
    for (unsigned i = 0; i < WAITING; i++)
        desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    assert_int_equal(desk->nodes[0].works, desk->nodes[0].ended);
    assert_int_equal(desk->nodes[1].arrived, WAITING);
}

static void a_link_without_room_lets_others_pass(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk->nodes[1].closed = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300), two = desk_post(desk, 0, 2, IBV_WR_RDMA_WRITE, 300);
    desk_pass(desk, NANOS_SECOND);
    waits(desk, 0, one);
    succeeds(desk, 0, two);
    desk->nodes[1].closed = false;
    desk_pass(desk, SRD_WAIT);
    succeeds(desk, 0, one);
}

static void a_first_packet_waits_for_room_too(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].closed = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300);
    desk_pass(desk, NANOS_SECOND);
    waits(desk, 0, one);
    desk->nodes[1].closed = false;
    desk_pass(desk, SRD_WAIT);
    succeeds(desk, 0, one);
}

static void an_answer_without_room_waits_for_it(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 300), two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300);
    desk_transmit(desk, 0);
    desk->nodes[0].closed = true;
    desk_run(desk);
    waits(desk, 0, one);
    waits(desk, 0, two);
    desk->nodes[0].closed = false;
    desk_run(desk);
    succeeds(desk, 0, one);
    succeeds(desk, 0, two);
    assert_int_equal(desk->nodes[0].timeouts, 0);
}

static void a_flush_ends_all_in_the_order_of_posting(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    desk_meet(desk, 0, 2);
    desk->nodes[2].deaf = true;
    desk_post(desk, 0, 2, IBV_WR_RDMA_WRITE, 300);
    desk_run(desk);
    desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    engine_flush(&desk->nodes[0].engine);
    desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    static const uint32_t order[] = {1, 0, 2, 3, 4};
    assert_memory_equal(desk->nodes[0].order, order, sizeof order);
    assert_int_equal(desk->nodes[0].ended, 5);
    ends(desk, 0, one, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    assert_false(engine_has_output(&desk->nodes[0].engine));
    assert_true(engine_deadline(&desk->nodes[0].engine) == NANOS_NEVER);
    desk_settle(desk);
}

static void a_drained_queue_says_so_with_its_last_answer(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300);
    desk_transmit(desk, 0);
    engine_drain(&desk->nodes[0].engine, true);
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_copy(desk, OPERATION_WRITE_ONLY, true);
    desk_run(desk);
    assert_int_equal(desk->nodes[0].drained, 0);
    desk_settle(desk);
    succeeds(desk, 0, one);
    assert_int_equal(desk->nodes[0].drained, 1);
    waits(desk, 0, two);
    engine_drain(&desk->nodes[0].engine, false);
    desk_settle(desk);
    succeeds(desk, 0, two);
    engine_drain(&desk->nodes[0].engine, true);
    assert_int_equal(desk->nodes[0].drained, 2);
}

static void an_address_that_goes_ends_its_work(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk); /* it waits for a receive */
    uint32_t two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300), other = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300);
    desk_work(desk, 0)->address = &desk->nodes[2];
    desk_transmit(desk, 0);
    uint32_t three = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10),
             four = desk_post(desk, 0, 2, IBV_WR_RDMA_WRITE, 9);
    engine_forget_address(&desk->nodes[0].engine, &desk->nodes[1]);
    ends(desk, 0, one, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    ends(desk, 0, two, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    ends(desk, 0, three, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    desk_settle(desk);
    succeeds(desk, 0, other);
    succeeds(desk, 0, four);
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 5);
}

static void a_payload_whose_memory_is_gone_ends_its_work(void **state)
{
    struct desk *desk = *state;
    struct packet out;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300), two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300);
    assert_true(desk_send_one(desk, 0, &out));
    engine_unreadable(&desk->nodes[0].engine, &out);
    ends(desk, 0, one, IBV_WC_LOC_PROT_ERR, REASON_LOCAL_GONE);
    desk_settle(desk);
    succeeds(desk, 0, two);
}

/* ---- many peers ---- */

static void greet_from(struct desk *desk, unsigned node, uint32_t number)
{
    struct packet hello = {.pkey = 0xffff, .source = number, .destination = desk->nodes[node].number};
    hello.opcode = op_code(SERVICE_SRD, OPERATION_HELLO);
    hello.srd.epoch = 1 + number;
    engine_receive(&desk->nodes[node].engine, &hello, desk->now);
}

static void a_flood_of_greetings_throws_out_nobody_who_has_sent_data(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    for (uint32_t number = 0x1000; number < 0x1000 + 3 * SRD_GREETED; number++)
        greet_from(desk, 1, number);
    assert_int_equal(desk_engine(desk, 1)->responder->greeted, SRD_GREETED);
    assert_int_equal(desk_engine(desk, 1)->responder->count, SRD_GREETED + 1);
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 1);
    desk_meet(desk, 2, 1);
    succeeds(desk, 2, 0);
}

static void a_full_table_forgets_its_oldest_source(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_engine(desk, 1)->responder->count = SRD_PEERS;
    desk_meet(desk, 2, 1);
    succeeds(desk, 2, 0);
    desk_meet(desk, 0, 1);
    ends(desk, 0, 1, IBV_WC_REM_ABORT_ERR, REASON_PEER_FORGOT);
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 2);
}

static void an_idle_flow_makes_place_for_another(void **state)
{
    struct desk *desk = *state;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
    desk_run(desk);
    desk_engine(desk, 0)->requester->flow_count = SRD_PEERS;
    uint32_t two = desk_post(desk, 0, 2, IBV_WR_RDMA_WRITE, 10);
    desk_run(desk);
    ends(desk, 0, two, IBV_WC_LOC_QP_OP_ERR, REASON_SRD_MEMORY);
    desk_post_receive(desk, 1, DESK_MESSAGE);
    desk_settle(desk);
    succeeds(desk, 0, one);
    desk_meet(desk, 0, 2);
    succeeds(desk, 0, 2);
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 3);
}

static void work_waits_while_all_flights_are_in_use(void **state)
{
    struct desk *desk = *state;
    desk_engine(desk, 0)->requester->flight_count = SRD_FLIGHTS - 64;
    for (unsigned to = 1; to < 3; to++)
        for (unsigned i = 0; i < 10; i++)
            desk_post(desk, 0, to, IBV_WR_RDMA_WRITE, DESK_SLOT);
    desk_run(desk);
    assert_int_equal(desk->nodes[0].ended, 20);
    for (uint32_t work = 0; work < 20; work++)
        succeeds(desk, 0, work);
}

static void a_flow_uses_its_window_and_no_more(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    for (unsigned i = 0; i < 10; i++)
        desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, DESK_SLOT);
    desk_transmit(desk, 0);
    assert_int_equal(desk->flying_count, SRD_WINDOW);
    desk_run(desk);
    assert_int_equal(desk->nodes[0].ended, 11);
}

/* ---- memory ---- */

static void work_ends_where_memory_lacks(void **state)
{
    struct desk *desk = *state;
    desk->short_of_memory = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_run(desk);
    ends(desk, 0, one, IBV_WC_LOC_QP_OP_ERR, REASON_SRD_MEMORY);
    desk->short_of_memory = false;
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 1);
}

static void a_receiver_without_memory_is_silent(void **state)
{
    struct desk *desk = *state;
    desk->nodes[1].blocks_most = 0;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_RESP_TIMEOUT_ERR, REASON_PEER_UNHEARD);
    desk->nodes[1].blocks_most = DESK_BLOCKS;
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 1);
}

static void work_ends_where_memory_lacks_for_its_first_packet(void **state)
{
    struct desk *desk = *state;
    struct packet out;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 300), two = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    assert_true(desk_send_one(desk, 0, &out));
    desk->nodes[0].blocks_most = desk->nodes[0].block_count;
    struct desk_copy hello = {.packet = out};
    desk_put(desk, 1, &hello);
    desk_deliver(desk);
    assert_false(desk_send_one(desk, 0, &out));
    assert_false(desk_send_one(desk, 0, &out));
    assert_false(engine_has_output(&desk->nodes[0].engine));
    ends(desk, 0, one, IBV_WC_LOC_QP_OP_ERR, REASON_SRD_MEMORY);
    ends(desk, 0, two, IBV_WC_LOC_QP_OP_ERR, REASON_SRD_MEMORY);
    desk->nodes[0].blocks_most = DESK_BLOCKS;
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 2);
}

static void work_waits_where_memory_lacks_for_further_packets(void **state)
{
    enum { BLOCK = 64, WORKS = 12 };
    struct desk *desk = *state;
    struct packet out;
    desk_meet(desk, 0, 1);
    desk_meet(desk, 0, 2);
    desk->short_of_memory = true;
    for (unsigned i = 0; i < WORKS; i++)
        desk_post(desk, 0, 1 + i % 2, IBV_WR_RDMA_WRITE, DESK_SLOT);
    for (unsigned sent = 0; sent < BLOCK; sent++)
        assert_true(desk_send_one(desk, 0, &out));
    assert_false(desk_send_one(desk, 0, &out));
    assert_false(engine_has_output(&desk->nodes[0].engine));
    desk_settle(desk);
    for (uint32_t work = 0; work < 2 + WORKS; work++)
        succeeds(desk, 0, work);
    desk->short_of_memory = false;
    for (unsigned i = 0; i < 2 * WORKS; i++)
        desk_post(desk, 0, 1 + i % 2, IBV_WR_RDMA_WRITE, DESK_SLOT);
    desk_transmit(desk, 0);
    assert_int_equal(desk->flying_count, 2 * SRD_WINDOW);
    desk_settle(desk);
}

static void an_address_that_goes_ends_work_that_has_not_begun(void **state)
{
    struct desk *desk = *state;
    engine_drain(&desk->nodes[0].engine, true);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10), two = desk_post(desk, 0, 2, IBV_WR_RDMA_WRITE, 10);
    engine_forget_address(&desk->nodes[0].engine, &desk->nodes[1]);
    engine_drain(&desk->nodes[0].engine, false);
    desk_settle(desk);
    ends(desk, 0, one, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    succeeds(desk, 0, two);
}

static void a_lack_of_memory_for_tables_costs_no_place(void **state)
{
    struct desk *desk = *state;
    for (unsigned most = 0; most < 8; most++) {
        desk->nodes[0].blocks_most = desk->nodes[0].block_count;
        desk_meet(desk, 0, 1);
        desk->nodes[0].blocks_most++;
        desk_meet(desk, 0, 1);
    }
    assert_int_equal(desk_engine(desk, 0)->requester->flow_count, 1);
    desk->nodes[0].blocks_most = DESK_BLOCKS;
    desk_meet(desk, 0, 1);
    succeeds(desk, 0, 16);
}

static void reads_without_a_place_are_asked_for_again(void **state)
{
    enum { EACH = 4 };
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_meet(desk, 2, 1);
    for (unsigned i = 0; i < EACH; i++) {
        desk_post(desk, 0, 1, IBV_WR_RDMA_READ, DESK_SLOT);
        desk_post(desk, 2, 1, IBV_WR_RDMA_READ, DESK_SLOT);
    }
    desk_transmit(desk, 0);
    desk_transmit(desk, 2);
    assert_true(desk->flying_count > SRD_READS);
    while (desk->flying_count)
        desk_deliver(desk);
    assert_int_equal(desk_engine(desk, 1)->responder->read_count, SRD_READS);
    desk_settle(desk);
    assert_int_equal(desk->nodes[0].ended + desk->nodes[2].ended, 2 * EACH + 2);
    for (uint32_t work = 0; work <= EACH; work++) {
        succeeds(desk, 0, work);
        succeeds(desk, 2, work);
    }
    const struct srd_source *source;
    TAILQ_FOREACH (source, &desk_engine(desk, 1)->responder->known, age_entry)
        assert_int_equal(source->reads, 0);
}

static void reads_of_one_that_takes_nothing_hold_up_no_other(void **state)
{
    enum { EACH = 6 };
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_meet(desk, 2, 1);
    desk->nodes[0].closed = true;
    for (unsigned i = 0; i < EACH; i++)
        desk_post(desk, 0, 1, IBV_WR_RDMA_READ, DESK_SLOT);
    desk_run(desk);
    assert_true(desk_engine(desk, 1)->responder->read_count > SRD_READS / 2);
    for (unsigned i = 0; i < EACH; i++)
        desk_post(desk, 2, 1, IBV_WR_RDMA_READ, DESK_SLOT);
    desk_run(desk);
    for (uint32_t work = 1; work <= EACH; work++)
        succeeds(desk, 2, work);
    desk->nodes[0].closed = false;
    desk_settle(desk);
    for (uint32_t work = 1; work <= EACH; work++)
        succeeds(desk, 0, work);
}

static void a_repeat_of_a_read_that_waits_is_one(void **state)
{
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk->nodes[0].closed = true;
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_READ, 10);
    desk_pass(desk, 40 * NANOS_MILLISECOND);
    assert_true(desk->nodes[0].retransmits);
    assert_int_equal(desk_engine(desk, 1)->responder->read_count, 1);
    desk->nodes[0].closed = false;
    desk_run(desk);
    succeeds(desk, 0, one);
}

static void a_source_with_an_answer_to_come_is_not_forgotten(void **state)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE};
    struct desk *desk = *state;
    desk_meet(desk, 0, 1);
    desk_engine(desk, 1)->responder->count = SRD_PEERS;
    for (unsigned i = 0; i < 2; i++) {
        uint32_t one = desk_post(desk, 0, 1, opcodes[i], 10);
        desk_transmit(desk, 0);
        desk_deliver(desk);
        greet_from(desk, 1, 0x1000);
        assert_int_equal(desk_engine(desk, 1)->responder->greeted, 0);
        desk_run(desk);
        succeeds(desk, 0, one);
    }
}

static void work_in_the_middle_and_at_the_end_of_a_list_may_go(void **state)
{
    enum { OTHER = 3, WORKS = 9 };
    struct desk *desk = *state;
    desk->nodes[1].closed = true;
    for (unsigned i = 0; i < WORKS; i++) {
        desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
        desk_work(desk, 0)->address = &desk->nodes[i % OTHER];
    }
    desk_transmit(desk, 0);
    engine_forget_address(&desk->nodes[0].engine, &desk->nodes[2]);
    engine_forget_address(&desk->nodes[0].engine, &desk->nodes[0]);
    assert_int_equal(desk->nodes[0].ended, 6);
    for (unsigned i = 0; i < 3; i++)
        desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk->nodes[1].closed = false;
    desk_settle(desk);
    for (uint32_t work = 0; work < WORKS + 3; work++)
        if (work < WORKS && work % OTHER != 1)
            ends(desk, 0, work, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
        else
            succeeds(desk, 0, work);
}

static void an_unreadable_payload_of_flushed_work_changes_nothing(void **state)
{
    struct desk *desk = *state;
    struct packet out;
    desk_meet(desk, 0, 1);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    assert_true(desk_send_one(desk, 0, &out));
    engine_flush(&desk->nodes[0].engine);
    engine_unreadable(&desk->nodes[0].engine, &out);
    ends(desk, 0, one, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
    assert_int_equal(desk->nodes[0].ended, 2);
}

static void an_unreadable_answer_ends_no_work(void **state)
{
    struct desk *desk = *state;
    struct packet out;
    desk_meet(desk, 0, 1);
    desk_meet(desk, 1, 0);
    desk_post(desk, 1, 0, IBV_WR_RDMA_READ, 10);
    uint32_t one = desk_post(desk, 0, 1, IBV_WR_RDMA_WRITE, 10);
    desk_transmit(desk, 0);
    desk_transmit(desk, 1);
    desk_copy(desk, OPERATION_WRITE_ONLY, true);
    desk_deliver(desk);
    assert_true(desk_send_one(desk, 0, &out));
    engine_unreadable(&desk->nodes[0].engine, &out);
    waits(desk, 0, one);
    desk_settle(desk);
    succeeds(desk, 0, one);
    succeeds(desk, 1, 1);
}

/* Greets from numbers and epochs that fall into one list of the table if their bits alone say which. */
static void nobody_chooses_the_places_of_a_table(void **state)
{
    enum { MANY = 200, MASK = 1023 };
    struct desk *desk = *state;
    const struct hash *hash = &desk_engine(desk, 1)->responder->sources;
    unsigned longest = 0;
    for (uint32_t number = 1, greeted = 0; greeted < MANY; number++) {
        struct hash_entry *buckets[MASK + 1];
        const struct hash imagined = {buckets, MASK};
        if (hash_bucket(&imagined, (uint64_t)number << 32 ^ (1 + number)) != buckets)
            continue;
        greet_from(desk, 1, number);
        greeted++;
    }
    for (uint32_t bucket = 0; bucket <= hash->mask; bucket++) {
        unsigned length = 0;
        for (const struct hash_entry *entry = hash->buckets[bucket]; entry; entry = entry->next)
            length++;
        longest = length > longest ? length : longest;
    }
    assert_true(longest < 16);
}

/* A program may have come to a port since its host said that nobody has it. */
static void a_host_explains_the_silence_after_its_answer_alone(void **state)
{
    static const struct {
        nanos answered; /* after the packet was sent */
        enum ibv_wc_status status;
        enum reason reason;
    } rows[] = {{-1, IBV_WC_RESP_TIMEOUT_ERR, REASON_PEER_UNHEARD}, {0, IBV_WC_REM_INV_RD_REQ_ERR, REASON_PEER_NO_QP}};
    struct desk *desk = *state;
    desk->nodes[1].deaf = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        desk->nodes[1].refused = desk->now + rows[i].answered;
        uint32_t one = desk_post(desk, 0, 1, IBV_WR_SEND_WITH_IMM, 10);
        desk_settle(desk);
        ends(desk, 0, one, rows[i].status, rows[i].reason);
    }
}

TESTS_OF(WITH_DESK, holes_of_the_queue_are_closed, half_of_the_queue_is_free_of_holes,
         a_link_without_room_lets_others_pass, a_first_packet_waits_for_room_too, an_answer_without_room_waits_for_it,
         a_flush_ends_all_in_the_order_of_posting, a_drained_queue_says_so_with_its_last_answer,
         an_address_that_goes_ends_its_work, a_payload_whose_memory_is_gone_ends_its_work,
         a_flood_of_greetings_throws_out_nobody_who_has_sent_data, a_full_table_forgets_its_oldest_source,
         an_idle_flow_makes_place_for_another, work_waits_while_all_flights_are_in_use,
         a_flow_uses_its_window_and_no_more, work_ends_where_memory_lacks, a_receiver_without_memory_is_silent,
         work_ends_where_memory_lacks_for_its_first_packet, work_waits_where_memory_lacks_for_further_packets,
         an_address_that_goes_ends_work_that_has_not_begun, a_lack_of_memory_for_tables_costs_no_place,
         reads_without_a_place_are_asked_for_again, reads_of_one_that_takes_nothing_hold_up_no_other,
         a_repeat_of_a_read_that_waits_is_one, a_source_with_an_answer_to_come_is_not_forgotten,
         work_in_the_middle_and_at_the_end_of_a_list_may_go, an_unreadable_payload_of_flushed_work_changes_nothing,
         an_unreadable_answer_ends_no_work, nobody_chooses_the_places_of_a_table,
         a_host_explains_the_silence_after_its_answer_alone)
