/* Two engines that talk to each other, over a wire that may lose. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

#include <stdlib.h>
#include <string.h>

struct pair {
    struct rig a, b;
    uint32_t chance; /* the state of a linear congruential generator */
    unsigned lose;   /* one of this many packets is lost; 0: all arrive */
};

static int pair_set_up(void **state)
{
    struct pair *pair = malloc(sizeof(*pair));
    rig_make(&pair->a);
    rig_make(&pair->b);
    pair->chance = pair->lose = 0;
    rc_start_receiving(&pair->a.engine.rc, RIG_THEIRS);
    rc_start_transmitting(&pair->a.engine.rc, RIG_OURS);
    rc_start_receiving(&pair->b.engine.rc, RIG_OURS);
    rc_start_transmitting(&pair->b.engine.rc, RIG_THEIRS);
    pair->a.engine.rc.settings.retry_count = pair->b.engine.rc.settings.retry_count = 200;
    *state = pair;
    return 0;
}

static bool is_lost(struct pair *pair)
{
    pair->chance = pair->chance * 1664525 + 1013904223;
    return pair->lose && (pair->chance >> 16) % pair->lose == 0;
}

static bool carry(struct pair *pair, struct rig *from, struct rig *to)
{
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    if (!rc_transmit(&from->engine.rc, &packet, pieces, from->now))
        return false;
    if (!is_lost(pair))
        rc_receive(&to->engine.rc, &packet, to->now);
    return true;
}

/* Carries packets, and lets time pass when nothing moves, until nothing is left to wait for. */
static void run(struct pair *pair)
{
    for (unsigned rounds = 0; rounds < 100000; rounds++) {
        bool moved = carry(pair, &pair->a, &pair->b);
        if (carry(pair, &pair->b, &pair->a) || moved)
            continue;
        nanos deadline = rc_deadline(&pair->a.engine.rc), other = rc_deadline(&pair->b.engine.rc);
        deadline = deadline < other ? deadline : other;
        if (deadline == NANOS_NEVER)
            return;
        pair->a.now = pair->b.now = deadline;
        rc_expire(&pair->a.engine.rc, deadline);
        rc_expire(&pair->b.engine.rc, deadline);
    }
    fail_msg("the pair never comes to rest");
}

static void a_message_of_each_kind_arrives(void **state)
{
    struct pair *pair = *state;
    struct rig *a = &pair->a, *b = &pair->b;
    memset(b->memory, 0, RIG_MEMORY);
    uint64_t send_id = post(a, .opcode = IBV_WR_SEND, .length = 1000, .at = 0x40);
    uint64_t write_id = post(a, .opcode = IBV_WR_RDMA_WRITE, .length = 1000, .at = 0x40, .rkey = KEY_ALL);
    uint64_t read_id = post(a, .opcode = IBV_WR_RDMA_READ, .length = 1000, .at = 0x4000, .rkey = KEY_ALL);
    uint64_t add_id = post(a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .at = 0x6000, .remote = 0x2000,
                           .compare_or_add = 3, .rkey = KEY_ALL);
    uint64_t receive_id = post_receive(b, 1000);
    run(pair);
    ends(a, send_id, IBV_WC_SUCCESS);
    ends(a, write_id, IBV_WC_SUCCESS);
    ends(a, read_id, IBV_WC_SUCCESS);
    ends(a, add_id, IBV_WC_SUCCESS);
    assert_int_equal(delivers(b, receive_id, IBV_WC_SUCCESS)->length, 1000);
    assert_memory_equal(b->memory + 0x8000, a->memory + 0x40, 1000);
    assert_memory_equal(b->memory, a->memory + 0x40, 1000);
    assert_memory_equal(a->memory + 0x4000, a->memory + 0x40, 1000);
    assert_int_equal(b->memory[0x2000], 3);
}

static void both_sides_talk_at_once(void **state)
{
    struct pair *pair = *state;
    for (unsigned i = 0; i < 20; i++) {
        post_receive(&pair->a, 600);
        post_receive(&pair->b, 600);
        post(&pair->a, .opcode = IBV_WR_SEND, .length = 30 * i);
        post(&pair->b, .opcode = IBV_WR_SEND, .length = 30 * i);
    }
    run(pair);
    assert_int_equal(pair->a.arrived, 20);
    assert_int_equal(pair->b.arrived, 20);
    assert_int_equal(pair->a.ended, 20);
    assert_int_equal(pair->b.ended, 20);
}

/* Each fetch-and-add counts once and each message arrives once, in order, whatever is lost. */
static void c9_7_losses_change_nothing_but_time(void **state)
{
    struct pair *pair = *state;
    struct rig *a = &pair->a, *b = &pair->b;
    for (pair->lose = 2; pair->lose < 12; pair->lose++) {
        unsigned arrived = b->arrived = a->ended = a->saw_end = 0;
        memset(b->memory + 0x2000, 0, 8);
        for (unsigned i = 0; i < 10; i++) {
            post_receive(b, 600);
            post(a, .opcode = IBV_WR_SEND, .length = 500 + i);
            post(a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .remote = 0x2000, .compare_or_add = 1,
                 .rkey = KEY_ALL);
            post(a, .opcode = IBV_WR_RDMA_READ, .length = 700, .at = 0x4000, .remote = 0x100, .rkey = KEY_ALL);
        }
        run(pair);
        assert_int_equal(a->failures, 0);
        assert_int_equal(a->ended, 30);
        for (unsigned i = 0; i < 30; i++)
            assert_int_equal(a->ends[i].status, IBV_WC_SUCCESS);
        for (; arrived < 10; arrived++)
            assert_int_equal(b->arrivals[arrived].arrival.length, 500 + arrived);
        assert_int_equal(b->arrived, 10);
        assert_int_equal(b->memory[0x2000], 10);
        assert_memory_equal(a->memory + 0x4000, b->memory + 0x100, 700);
    }
}

static void c9_7_5_2_8_a_receive_that_comes_late_ends_the_rnr_waits(void **state)
{
    struct pair *pair = *state;
    struct rig *a = &pair->a, *b = &pair->b;
    uint64_t work = post(a, .opcode = IBV_WR_SEND, .length = 8);
    carry(pair, a, b);
    carry(pair, b, a);
    assert_false(rc_has_output(&a->engine.rc));
    uint64_t receive = post_receive(b, 8);
    run(pair);
    ends(a, work, IBV_WC_SUCCESS);
    delivers(b, receive, IBV_WC_SUCCESS);
}

static void a_message_too_long_fails_both_sides(void **state)
{
    struct pair *pair = *state;
    struct rig *a = &pair->a, *b = &pair->b;
    uint64_t work = post(a, .opcode = IBV_WR_SEND, .length = 800), next = post(a, .opcode = IBV_WR_SEND);
    uint64_t receive = post_receive(b, 300);
    run(pair);
    delivers(b, receive, IBV_WC_LOC_LEN_ERR);
    ends(a, work, IBV_WC_REM_INV_REQ_ERR);
    ends(a, next, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(a->failures, 1);
    assert_int_equal(b->failures, 1);
}

static void a14_3_xrc_uses_the_same_engine(void **state)
{
    struct pair *pair = *state;
    struct rig *a = &pair->a, *b = &pair->b;
    a->engine.rc.settings.service = b->engine.rc.settings.service = SERVICE_XRC;
    uint64_t work = post(a, .opcode = IBV_WR_SEND, .length = 800, .srq = 9), receive = post_receive(b, 800);
    run(pair);
    ends(a, work, IBV_WC_SUCCESS);
    delivers(b, receive, IBV_WC_SUCCESS);
}

static void large_segments_for_references_are_understood(void **state)
{
    struct pair *pair = *state;
    struct rig *a = &pair->a, *b = &pair->b;
    a->engine.rc.settings.reference_segment = 1 << 14;
    a->engine.rc.settings.reference_from = 1 << 12;
    uint64_t work = post(a, .opcode = IBV_WR_RDMA_WRITE, .length = 0xa000, .rkey = KEY_ALL);
    memset(b->memory, 0, RIG_MEMORY);
    run(pair);
    ends(a, work, IBV_WC_SUCCESS);
    assert_memory_equal(a->memory, b->memory, 0xa000);
    assert_int_equal(a->engine.rc.requester.next_psn, RIG_OURS + 3);
}

#define pair_script(test) cmocka_unit_test_setup_teardown(test, pair_set_up, script_tear_down)

TESTS_OF(pair_script, a_message_of_each_kind_arrives,
                      both_sides_talk_at_once,
                      c9_7_losses_change_nothing_but_time,
                      c9_7_5_2_8_a_receive_that_comes_late_ends_the_rnr_waits,
                      a_message_too_long_fails_both_sides,
                      a14_3_xrc_uses_the_same_engine,
                      large_segments_for_references_are_understood)
