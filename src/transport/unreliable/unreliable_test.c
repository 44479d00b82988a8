/* The common part of unreliable connections and datagrams: each test runs for both. */
#include "transport/testing/script.h"

/* IBA 9.8: an earlier PSN is not a repeat, as nothing is ever sent twice; and nothing is answered. */
static void c9_8_a_whole_message_is_taken_with_any_number(void **state)
{
    static const uint32_t psns[] = {RIG_THEIRS, RIG_THEIRS, RIG_THEIRS - 9, 7, PSN_MASK};
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(psns) / sizeof(*psns); i++) {
        uint64_t receive = post_receive(rig, 64);
        arrives(rig, SEND_ONLY, psns[i], .bytes = 8, .packet = {.ack_requested = true});
        delivers(rig, receive, IBV_WC_SUCCESS);
    }
    assert_int_equal(rig->drops, 0);
    is_silent(rig);
}

static void c9_8_what_the_service_lacks_is_refused(void **state)
{
    static const struct {
        enum ibv_wr_opcode opcode;
        enum service also; /* that has it */
    } lacking[] = {
        {IBV_WR_RDMA_READ, SERVICE_RC},
        {IBV_WR_ATOMIC_CMP_AND_SWP, SERVICE_RC},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, SERVICE_RC},
        {IBV_WR_ATOMIC_WRITE, SERVICE_RC},
        {NEWER_WR_FLUSH, SERVICE_RC},
        {IBV_WR_SEND_WITH_INV, SERVICE_RC},
        {IBV_WR_RDMA_WRITE, SERVICE_UC},
        {IBV_WR_LOCAL_INV, SERVICE_UC},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(lacking) / sizeof(*lacking); i++) {
        if (lacking[i].also == rig->service)
            continue;
        uint64_t bad = post(rig, .opcode = lacking[i].opcode, .length = 8);
        is_silent(rig);
        ends(rig, bad, IBV_WC_LOC_QP_OP_ERR);
        rig_resume(rig);
    }
}

static void c9_8_what_is_dropped_is_not_answered(void **state)
{
    struct rig *rig = *state;
    arrives(rig, SEND_ONLY, RIG_THEIRS, .bytes = 8, .packet = {.ack_requested = true});
    drops(rig, REASON_PACKET_NO_RECEIVE);
    is_silent(rig);
    assert_int_equal(rig->failures, 0);
}

static void c9_9_2_a_bad_local_key_breaks_the_send_side_only(void **state)
{
    struct rig *rig = *state;
    uint64_t good = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    uint64_t bad = post(rig, .opcode = IBV_WR_SEND, .length = 8, .lkey = 5);
    uint64_t behind = post(rig, .opcode = IBV_WR_SEND, .length = 8), receive = post_receive(rig, 600);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_silent(rig);
    ends(rig, good, IBV_WC_SUCCESS);
    ends(rig, bad, IBV_WC_LOC_PROT_ERR);
    ends(rig, behind, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
    uint64_t late = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    ends(rig, late, IBV_WC_WR_FLUSH_ERR);
    arrives(rig, SEND_ONLY, RIG_THEIRS, .bytes = 8);
    delivers(rig, receive, IBV_WC_SUCCESS);
    rig_resume(rig);
    uint64_t again = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    sends(rig, SEND_ONLY,
          RIG_OURS + (rig->service == SERVICE_UC ? 2 : 1)); /* a connection's bad one has taken its PSN */
    is_silent(rig);
    ends(rig, again, IBV_WC_SUCCESS);
}

static void c9_9_3_a_receive_with_a_bad_key_fails_the_queue_pair(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = rig_post_receive(rig, 0, 64, KEY_NOTHING), work = post(rig, .opcode = IBV_WR_SEND);
    arrives(rig, SEND_ONLY, RIG_THEIRS, .bytes = 8);
    assert_int_equal(delivers(rig, receive, IBV_WC_LOC_PROT_ERR)->reason, REASON_RECEIVE_PERMISSION);
    ends(rig, work, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
    arrives(rig, SEND_ONLY, RIG_THEIRS + 1);
    drops(rig, REASON_PACKET_QP_STATE);
    is_silent(rig);
}

static void a_payload_that_cannot_be_had_is_a_lost_packet(void **state)
{
    struct rig *rig = *state;
    uint64_t receive = post_receive(rig, 64);
    arrives(rig, SEND_ONLY, RIG_THEIRS, .bytes = 8, .broken = true);
    drops(rig, REASON_PACKET_PULL);
    arrives(rig, SEND_ONLY, RIG_THEIRS + 1, .bytes = 8);
    delivers(rig, receive, IBV_WC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        uc_script(c9_8_a_whole_message_is_taken_with_any_number),
        ud_script(c9_8_a_whole_message_is_taken_with_any_number),
        uc_script(c9_8_what_the_service_lacks_is_refused),
        ud_script(c9_8_what_the_service_lacks_is_refused),
        uc_script(c9_9_2_a_bad_local_key_breaks_the_send_side_only),
        ud_script(c9_9_2_a_bad_local_key_breaks_the_send_side_only),
        uc_script(c9_8_what_is_dropped_is_not_answered),
        ud_script(c9_8_what_is_dropped_is_not_answered),
        uc_script(c9_9_3_a_receive_with_a_bad_key_fails_the_queue_pair),
        ud_script(c9_9_3_a_receive_with_a_bad_key_fails_the_queue_pair),
        uc_script(a_payload_that_cannot_be_had_is_a_lost_packet),
        ud_script(a_payload_that_cannot_be_had_is_a_lost_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
