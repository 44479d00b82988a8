/* When work waits until its owner may do it without a packet. */
#include "transport/testing/script.h"

#include "transport/rc/direct.h"

static bool permitted; /* what the peer tells of its memory */

static bool do_when_permitted(struct engine_owner *owner, const struct direct_works *works)
{
    return permitted;
}

static struct owner_operations operations;

/* So many WRITEs on a connection over which nothing was sent. */
static void post_writes(struct rig *rig, uint64_t *ids, int count)
{
    operations = *rig->owner.operations;
    operations.direct = do_when_permitted;
    rig->owner.operations = &operations;
    rig->engine.rc.settings.direct = true;
    for (int i = 0; i < count; i++)
        ids[i] = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .rkey = 9);
}

/* A peer in RTR permits nothing before the first packet has come. */
static void what_is_behind_the_first_packet_waits_for_its_answer(void **state)
{
    struct rig *rig = *state;
    uint64_t ids[3];
    permitted = false;
    post_writes(rig, ids, 3);
    rc_direct(&rig->engine.rc);
    sends(rig, WRITE_ONLY, RIG_OURS);
    is_silent(rig);
    permitted = true;
    rc_direct(&rig->engine.rc);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, ids[0], IBV_WC_SUCCESS);
    rc_direct(&rig->engine.rc);
    ends(rig, ids[1], IBV_WC_SUCCESS);
    ends(rig, ids[2], IBV_WC_SUCCESS);
    is_silent(rig);
}

static void what_is_still_not_permitted_then_waits_no_more(void **state)
{
    struct rig *rig = *state;
    uint64_t ids[4];
    permitted = false;
    post_writes(rig, ids, 4);
    rc_direct(&rig->engine.rc);
    sends(rig, WRITE_ONLY, RIG_OURS);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, ids[0], IBV_WC_SUCCESS);
    rc_direct(&rig->engine.rc);
    for (uint32_t i = 1; i < 4; i++)
        sends(rig, WRITE_ONLY, RIG_OURS + i);
}

static uint32_t ended;

static void count_end(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                      enum reason reason)
{
    ended += status == IBV_WC_SUCCESS;
}

/* Whoever does a long queue in one go has the owner's lock all the time. */
static void a_long_queue_is_not_done_in_one_go(void **state)
{
    enum { AT_ONCE = DIRECT_AT_ONCE / RIG_MEMORY, WORKS = AT_ONCE + 4, QUEUE = 2 * AT_ONCE };
    static uint8_t memory[QUEUE * (sizeof(struct send_wqe) + RIG_INLINE)];
    struct rig *rig = *state;
    uint64_t id;
    permitted = true;
    post_writes(rig, &id, 0);
    operations.sent = count_end;
    rig->engine.rc.requester.queue =
        (struct send_queue){.memory = memory, .stride = sizeof(struct send_wqe) + RIG_INLINE, .capacity = QUEUE};
    for (int i = 0; i < WORKS; i++)
        post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = RIG_MEMORY, .rkey = 9);
    ended = 0;
    rc_direct(&rig->engine.rc);
    assert_int_equal(ended, AT_ONCE);
    uint32_t sent = 0;
    while (sent < RIG_MEMORY / RIG_SEGMENT) {
        assert_true(rig_transmit(rig)); /* as many as the window allows */
        for (sent++; rig_transmit(rig); sent++)
            ;
        is_acknowledged(rig, RIG_OURS + sent - 1);
    }
    assert_int_equal(sent, RIG_MEMORY / RIG_SEGMENT);
    rc_direct(&rig->engine.rc);
    assert_int_equal(ended, WORKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script(what_is_behind_the_first_packet_waits_for_its_answer),
        script(what_is_still_not_permitted_then_waits_no_more),
        script(a_long_queue_is_not_done_in_one_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
