/* A message of one packet takes a short way through the requester. Two engines get the same calls; a fence, which
 * waits for nothing without a READ, keeps one of them from that way: they must not differ in anything. */
#include "transport/testing/script.h"

#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

enum { SEEDS = 300, STEPS = 80, WAYS = 2 };

struct twins {
    struct rig rigs[WAYS];
};

static struct twins *twins;
static uint64_t state_of_chance;

static uint32_t chance(uint32_t below)
{
    state_of_chance = state_of_chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_chance >> 33) % below;
}

static void make_twins(void)
{
    bool lossy = chance(2), direct = chance(2), references = chance(2);
    uint32_t window = 1 + chance(8), max_message = chance(4) ? 1 << 20 : 40, ack_mask = chance(2) ? 3 : 0;
    uint16_t lately = chance(2) ? (uint16_t)chance(10) : 0;
    for (int i = 0; i < WAYS; i++) {
        struct rig *rig = &twins->rigs[i];
        rig_make(rig);
        struct engine_settings *settings = &rig->engine.rc.settings;
        settings->window = window;
        settings->first_window = lossy ? 1 + window / 2 : 0;
        settings->direct = direct;
        settings->ack_mask = ack_mask;
        rig->engine.rc.requester.direct_lately = lately;
        settings->max_message = max_message;
        settings->reference_segment = references ? 1024 : 0;
        settings->reference_from = 200;
        rig_start(rig);
    }
}

static void post_both(void)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
                                                 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
    static const uint32_t lengths[] = {0, 1, 8, 40, 41, 199, 200, 256, 257, 600};
    struct rig_work work = {.opcode = opcodes[chance(5)],
                            .length = lengths[chance(10)],
                            .at = chance(64),
                            .lkey = chance(20) ? KEY_ALL : 1,
                            .rkey = chance(9),
                            .remote = chance(1000),
                            .immediate = chance(1000),
                            .sge_count = 1 + chance(2)};
    work.flags = (chance(3) ? 0 : IBV_SEND_SOLICITED) | (chance(2) ? 0 : IBV_SEND_SIGNALED) |
                 (work.length <= RIG_INLINE && chance(2) ? IBV_SEND_INLINE : 0);
    for (int i = 0; i < WAYS; i++) {
        rig_post(&twins->rigs[i], work);
        work.flags |= IBV_SEND_FENCE;
    }
}

static void transmit_both(void)
{
    bool sent[WAYS];
    uint8_t bytes[WAYS][WIRE_HEADERS_MAX] = {{0}};
    for (int i = 0; i < WAYS; i++) {
        struct rig *rig = &twins->rigs[i];
        sent[i] = rig_transmit(rig);
        if (sent[i])
            wire_encode(&rig->out, bytes[i]);
    }
    const struct rig *a = &twins->rigs[0], *b = &twins->rigs[1];
    assert_int_equal(sent[0], sent[1]);
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
    assert_int_equal(a->out.payload.length, b->out.payload.length);
    assert_int_equal(a->out.payload.by_reference, b->out.payload.by_reference);
    assert_memory_equal(a->carried, b->carried, a->out.payload.length);
}

/* Acknowledges or refuses some of the packets on their way. */
static void answer_both(void)
{
    const struct requester *requester = &twins->rigs[0].engine.rc.requester;
    uint32_t under_way = psn_add(requester->sent_psn, -requester->acked_psn);
    if (!under_way)
        return;
    uint32_t psn = psn_add(requester->acked_psn, chance(under_way));
    uint8_t syndrome = chance(4) ? SYNDROME_ACK : chance(2) ? SYNDROME_NAK_SEQUENCE : SYNDROME_RNR | 1;
    for (int i = 0; i < WAYS; i++)
        is_refused(&twins->rigs[i], syndrome, psn);
}

static void wait_both(void)
{
    nanos time = chance(3) ? chance(100000) : RIG_ACK_TIMER;
    for (int i = 0; i < WAYS; i++)
        waits(&twins->rigs[i], time);
}

static void compare_requesters(void)
{
    const struct requester *a = &twins->rigs[0].engine.rc.requester, *b = &twins->rigs[1].engine.rc.requester;
    assert_int_equal(a->queue.head, b->queue.head);
    assert_int_equal(a->queue.next, b->queue.next);
    assert_int_equal(a->next_psn, b->next_psn);
    assert_int_equal(a->acked_psn, b->acked_psn);
    assert_int_equal(a->sent_psn, b->sent_psn);
    assert_int_equal(a->packet, b->packet);
    assert_int_equal(a->retries_left, b->retries_left);
    assert_int_equal(a->unusual, b->unusual);
    assert_int_equal(a->mixed_until, b->mixed_until);
    assert_int_equal(a->packets_first, b->packets_first);
    assert_int_equal(a->direct_lately, b->direct_lately);
    assert_int_equal(a->deadline, b->deadline);
    assert_int_equal(a->watched, b->watched);
    assert_memory_equal(&a->rto, &b->rto, sizeof a->rto);
    assert_memory_equal(&a->congestion, &b->congestion, sizeof a->congestion);
}

static void compare_ends(void)
{
    const struct rig *a = &twins->rigs[0], *b = &twins->rigs[1];
    assert_int_equal(a->ended, b->ended);
    assert_memory_equal(a->ends, b->ends, sizeof a->ends);
    assert_int_equal(a->told, b->told);
    assert_int_equal(a->engine.rc.failed, b->engine.rc.failed);
}

/* No counter shows how many messages took the short way; the fence ensures that the other engine took the long one. */
static void a_message_of_one_packet_is_sent_as_by_the_long_way(void **state)
{
    void (*const steps[])(void) = {post_both,     post_both,     post_both,   transmit_both, transmit_both,
                                   transmit_both, transmit_both, answer_both, wait_both};
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        state_of_chance = seed;
        make_twins();
        for (unsigned i = 0; i < STEPS && twins->rigs[0].posted + twins->rigs[0].next_id < RIG_QUEUE; i++) {
            steps[chance(sizeof steps / sizeof *steps)]();
            compare_requesters();
            compare_ends();
        }
    }
}

static int set_up(void **state)
{
    twins = calloc(1, sizeof *twins);
    return !twins;
}

static int tear_down(void **state)
{
    free(twins);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_of_one_packet_is_sent_as_by_the_long_way, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
