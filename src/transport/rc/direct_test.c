/* When work waits until its owner may do it without a packet. */
#include "transport/testing/script.h"

#include "transport/rc/direct.h"

static bool permitted; /* whether the peer publishes its memory */

static bool do_when_permitted(struct engine_owner *owner, const struct direct_works *works)
{
    return permitted;
}

/* So many WRITEs on a connection over which nothing was sent. */
static void post_writes(struct rig *rig, uint64_t *ids, int count)
{
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
    rc_direct(&rig->engine.rc, do_when_permitted);
    sends(rig, WRITE_ONLY, RIG_OURS);
    is_silent(rig);
    permitted = true;
    rc_direct(&rig->engine.rc, do_when_permitted);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, ids[0], IBV_WC_SUCCESS);
    rc_direct(&rig->engine.rc, do_when_permitted);
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
    rc_direct(&rig->engine.rc, do_when_permitted);
    sends(rig, WRITE_ONLY, RIG_OURS);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, ids[0], IBV_WC_SUCCESS);
    rc_direct(&rig->engine.rc, do_when_permitted);
    for (uint32_t i = 1; i < 4; i++)
        sends(rig, WRITE_ONLY, RIG_OURS + i);
}

static void it_may_have_many_packets(void **state)
{
    struct rig *rig = *state;
    permitted = false;
    post_writes(rig, &(uint64_t){0}, 0);
    uint64_t first = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 3 * RIG_SEGMENT, .rkey = 9);
    uint64_t second = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .rkey = 9);
    rc_direct(&rig->engine.rc, do_when_permitted);
    sends(rig, WRITE_FIRST, RIG_OURS);
    rc_direct(&rig->engine.rc, do_when_permitted); /* as when the link had no room for the others */
    sends(rig, WRITE_MIDDLE, RIG_OURS + 1);
    sends(rig, WRITE_LAST, RIG_OURS + 2);
    is_silent(rig);
    permitted = true;
    is_acknowledged(rig, RIG_OURS + 2);
    ends(rig, first, IBV_WC_SUCCESS);
    rc_direct(&rig->engine.rc, do_when_permitted);
    ends(rig, second, IBV_WC_SUCCESS);
}

/* A SEND needs the peer's processor, and perhaps its ACK was not requested. */
static void nothing_waits_for_a_SEND_that_came_before(void **state)
{
    struct rig *rig = *state;
    uint64_t id;
    post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY, RIG_OURS);
    permitted = true;
    post_writes(rig, &id, 1);
    rc_direct(&rig->engine.rc, do_when_permitted);
    sends(rig, WRITE_ONLY, RIG_OURS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script(what_is_behind_the_first_packet_waits_for_its_answer),
        script(what_is_still_not_permitted_then_waits_no_more),
        script(it_may_have_many_packets),
        script(nothing_waits_for_a_SEND_that_came_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
