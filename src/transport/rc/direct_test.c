/* When work waits until its owner may do it without a packet. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

#include "transport/rc/direct.h"

static bool permitted; /* whether the peer publishes its memory */

static bool do_when_permitted(struct engine_owner *owner, const struct direct_works *works)
{
    return permitted;
}

/* Posts `count` WRITEs on a connection over which nothing was sent. */
static void post_writes(struct rig *rig, uint64_t *ids, int count)
{
    rig->engine.rc.settings.direct = true;
    for (int i = 0; i < count; i++)
        ids[i] = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .rkey = 9);
}

/* A peer in RTR permits nothing before the first packet has arrived. */
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

/* Short work is sent as packets while its owner wants that. */
static void short_work_does_not_wait_for_short_work(void **state)
{
    struct rig *rig = *state;
    permitted = true;
    rig->engine.rc.settings.direct = true;
    rig->engine.rc.settings.direct_above = 8;
    for (int i = 0; i < 3; i++)
        post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .rkey = 9);
    rc_direct(&rig->engine.rc, do_when_permitted);
    for (uint32_t i = 0; i < 3; i++)
        sends(rig, WRITE_ONLY, RIG_OURS + i);
    is_silent(rig);
}

/* --- both ways, in any mixture: each work is done in its turn */

struct mixture {
    struct rig *rig;
    uint64_t posted, done;     /* works; each is done when its owner does it or the peer answers */
    uint64_t asked[RIG_QUEUE]; /* works that left in packets */
    uint32_t psns[RIG_QUEUE], lengths[RIG_QUEUE];
    bool reads[RIG_QUEUE]; /* whether they are READs */
    bool asks[RIG_QUEUE];  /* whether they ask for an ACK */
    unsigned first, last;  /* works that the peer has not answered */
    unsigned by_owner, by_peer;
    uint32_t chance;
};

static struct mixture *mixed;

static uint32_t next_chance(struct mixture *mixture, uint32_t below)
{
    mixture->chance = mixture->chance * 1664525 + 1013904223;
    return (mixture->chance >> 8) % below;
}

/* All work before it has been answered, so the peer has done it. */
static bool do_in_turn(struct engine_owner *owner, const struct direct_works *works)
{
    assert_int_equal(mixed->first, mixed->last);
    for (uint32_t i = 0; i < works->count; i++) {
        assert_int_equal(works->works[i]->id, mixed->done + 1);
        assert_true(works->works[i]->length > mixed->rig->engine.rc.settings.direct_above);
        mixed->done++;
        mixed->by_owner++;
    }
    return true;
}

static void post_some(struct mixture *mixture)
{
    bool sends = !next_chance(mixture, 30), reads = next_chance(mixture, 2);
    enum ibv_wr_opcode opcode = sends ? IBV_WR_SEND : reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    if (mixture->posted - mixture->done >= RIG_QUEUE / 2 || mixture->rig->ended >= 2 * RIG_QUEUE - 40)
        return;
    mixture->posted = post(mixture->rig, .opcode = opcode, .length = next_chance(mixture, 2) ? 8 : 200, .at = 0x1000,
                           .rkey = 9, .flags = next_chance(mixture, 2) ? IBV_SEND_SIGNALED : 0);
}

/* Checks that the next work is the one that leaves. */
static void transmit_all(struct mixture *mixture)
{
    struct rig *rig = mixture->rig;
    while (rig_transmit(rig)) {
        unsigned at = mixture->last++ % RIG_QUEUE;
        mixture->asked[at] = mixture->done + (mixture->last - mixture->first);
        mixture->psns[at] = rig->out.psn;
        mixture->reads[at] = op_operation(rig->out.opcode) == OPERATION_READ_REQUEST;
        mixture->lengths[at] = rig->out.length;
        mixture->asks[at] = mixture->reads[at] || rig->out.ack_requested;
        assert_true(mixture->asked[at] <= mixture->posted);
    }
}

/* The peer answers up to the next packet that asked; or all, when it has been quiet for long. */
static void answer_some(struct mixture *mixture, bool late)
{
    unsigned at = mixture->first;
    while (at != mixture->last && !mixture->asks[at % RIG_QUEUE] && !(late && at + 1 == mixture->last))
        at++;
    if (at == mixture->last)
        return;
    unsigned place = at % RIG_QUEUE;
    mixture->done = mixture->asked[place];
    mixture->by_peer += at + 1 - mixture->first;
    mixture->first = at + 1;
    if (mixture->reads[place])
        arrives(mixture->rig, READ_RESPONSE_ONLY, mixture->psns[place], .bytes = mixture->lengths[place]);
    else
        is_acknowledged(mixture->rig, mixture->psns[place]);
}

static void no_work_overtakes_another_whichever_way_it_goes(void **state)
{
    struct rig *rig = *state;
    struct mixture mixture = {.rig = rig, .chance = 7};
    mixed = &mixture;
    rig->engine.rc.settings.direct = true;
    rig->engine.rc.settings.ack_mask = 15;
    for (int step = 0; step < 400000; step++) {
        if (!next_chance(&mixture, 4))
            rig->engine.rc.settings.direct_above = next_chance(&mixture, 2) ? 100 : 0;
        if (!next_chance(&mixture, 3))
            post_some(&mixture);
        if (rc_direct_next(&rig->engine.rc))
            rc_direct(&rig->engine.rc, do_in_turn);
        transmit_all(&mixture);
        if (!next_chance(&mixture, 3))
            answer_some(&mixture, !next_chance(&mixture, 50));
        assert_int_equal(rig->failures, 0);
        assert_int_equal(rig->drops, 0);
        for (unsigned i = 0; i < rig->ended; i++)
            assert_int_equal(rig->ends[i].status, IBV_WC_SUCCESS);
        rig->ended = 0;
    }
    assert_true(mixture.by_owner > 10000);
    assert_true(mixture.by_peer > 10000);
}

TESTS_OF(script, what_is_behind_the_first_packet_waits_for_its_answer,
                 what_is_still_not_permitted_then_waits_no_more,
                 it_may_have_many_packets,
                 nothing_waits_for_a_SEND_that_came_before,
                 short_work_does_not_wait_for_short_work,
                 no_work_overtakes_another_whichever_way_it_goes)
