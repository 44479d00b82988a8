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

int main(void)
{
    const struct CMUnitTest tests[] = {
        script(what_is_behind_the_first_packet_waits_for_its_answer),
        script(what_is_still_not_permitted_then_waits_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
