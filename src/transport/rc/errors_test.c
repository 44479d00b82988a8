/* The requester: errors, and how all work ends after the first. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

/* IBA 9.7.5.2, table 44: the NAK codes and the statuses of their requests; those before it succeed. */
static void c9_7_5_2_a_nak_fails_its_request_and_flushes_the_rest(void **state)
{
    static const struct {
        uint8_t code;
        enum ibv_wc_status status;
    } naks[] = {
        {0x61, IBV_WC_REM_INV_REQ_ERR}, {0x62, IBV_WC_REM_ACCESS_ERR}, {0x63, IBV_WC_REM_OP_ERR},
        {0x64, IBV_WC_BAD_RESP_ERR},    {0x7f, IBV_WC_BAD_RESP_ERR},   {0x40, IBV_WC_BAD_RESP_ERR},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(naks) / sizeof(*naks); i++) {
        rig_make(rig);
        rig_start(rig);
        uint64_t first = send_under_way(rig, RIG_OURS), second = send_under_way(rig, RIG_OURS + 1);
        uint64_t third = post(rig, .opcode = IBV_WR_SEND);
        is_acknowledged(rig, RIG_OURS);
        is_refused(rig, naks[i].code, RIG_OURS + 1);
        ends(rig, first, IBV_WC_SUCCESS);
        ends(rig, second, naks[i].status);
        ends(rig, third, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(rig->failures, 1);
        is_silent(rig);
    }
}

static void c9_7_6_a_nak_acknowledges_what_came_before_it(void **state)
{
    struct rig *rig = *state;
    uint64_t first = send_under_way(rig, RIG_OURS), second = send_under_way(rig, RIG_OURS + 1);
    is_refused(rig, SYNDROME_NAK_REMOTE_ACCESS, RIG_OURS + 1);
    ends(rig, first, IBV_WC_SUCCESS);
    ends(rig, second, IBV_WC_REM_ACCESS_ERR);
}

static void what_is_posted_after_an_error_is_flushed_at_once(void **state)
{
    struct rig *rig = *state;
    uint64_t first = send_under_way(rig, RIG_OURS);
    is_refused(rig, SYNDROME_NAK_REMOTE_ACCESS, RIG_OURS);
    ends(rig, first, IBV_WC_REM_ACCESS_ERR);
    uint64_t later = post(rig, .opcode = IBV_WR_SEND);
    ends(rig, later, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
}

/* Semantics: WRITE and SEND with a bad lkey are LOC_PROT; an error waits for those before it. */
static void c9_9_2_a_bad_local_key_fails_once_all_before_have_ended(void **state)
{
    struct rig *rig = *state;
    uint64_t good = send_under_way(rig, RIG_OURS);
    uint64_t bad = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 4, .lkey = 0xbad, .rkey = 0xbad);
    uint64_t rest = post(rig, .opcode = IBV_WR_SEND);
    assert_true(rc_has_output(&rig->engine.rc));
    is_silent(rig);
    ends_nothing(rig);
    is_acknowledged(rig, RIG_OURS);
    assert_true(rc_has_output(&rig->engine.rc));
    is_silent(rig);
    ends(rig, good, IBV_WC_SUCCESS);
    ends(rig, bad, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(rig->ends[1].reason, REASON_LOCAL_KEY_UNKNOWN);
    ends(rig, rest, IBV_WC_WR_FLUSH_ERR);
}

static void c9_9_2_memory_that_goes_away_during_flight_fails_the_repeat(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    rig->deregistered = true;
    waits(rig, RIG_ACK_TIMER);
    is_silent(rig);
    ends(rig, id, IBV_WC_LOC_PROT_ERR);
}

/* Semantics: READ with both keys bad is REM_ACCESS, so the local one is looked at when the response arrives. */
static void c9_9_2_the_local_key_of_a_read_is_checked_at_its_response(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4, .lkey = 0xbad, .rkey = 0xbad);
    sends(rig, READ_REQUEST, RIG_OURS);
    is_refused(rig, SYNDROME_NAK_REMOTE_ACCESS, RIG_OURS);
    ends(rig, id, IBV_WC_REM_ACCESS_ERR);
    rig_make(rig);
    rig_start(rig);
    id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4, .lkey = KEY_NOTHING);
    sends(rig, READ_REQUEST, RIG_OURS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4);
    ends(rig, id, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(rig->ends[0].reason, REASON_LOCAL_PERMISSION);
}

/* Semantics: an atomic whose local list is shorter than eight bytes is LOC_LEN. */
static void c9_9_2_local_errors_of_length_and_operation_are_told_apart(void **state)
{
    static const struct {
        struct rig_work work;
        enum ibv_wc_status status;
        enum reason reason;
    } cases[] = {
        {{.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 4}, IBV_WC_LOC_LEN_ERR, REASON_LOCAL_LENGTH},
        {{.opcode = IBV_WR_ATOMIC_WRITE, .length = 7}, IBV_WC_LOC_LEN_ERR, REASON_LOCAL_LENGTH},
        {{.opcode = IBV_WR_SEND, .length = (1 << 20) + 1}, IBV_WC_LOC_LEN_ERR, REASON_MESSAGE_TOO_LONG},
        {{.opcode = IBV_WR_RDMA_WRITE, .length = 1u << 31}, IBV_WC_LOC_LEN_ERR, REASON_MESSAGE_TOO_LONG},
        {{.opcode = IBV_WR_TSO}, IBV_WC_LOC_QP_OP_ERR, REASON_WORK_UNSUPPORTED},
        {{.opcode = 100}, IBV_WC_LOC_QP_OP_ERR, REASON_WORK_UNSUPPORTED},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        rig_make(rig);
        rig_start(rig);
        uint64_t id = rig_post(rig, cases[i].work);
        is_silent(rig);
        ends(rig, id, cases[i].status);
        assert_int_equal(rig->ends[0].reason, cases[i].reason);
    }
}

static void a_read_without_max_rd_atomic_is_an_error_and_no_hang(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.max_rd_atomic = 0;
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4);
    is_silent(rig);
    ends(rig, id, IBV_WC_LOC_QP_OP_ERR);
}

/* IBA 9.9.2.4: a response that does not fit its request. */
static void c9_9_2_a_response_that_does_not_fit_is_bad(void **state)
{
    static const struct {
        enum operation operation;
        uint32_t bytes;
        uint8_t syndrome;
    } wrong[] = {
        {OPERATION_READ_RESPONSE_FIRST, 255, 0},    {OPERATION_READ_RESPONSE_FIRST, 257, 0},
        {OPERATION_READ_RESPONSE_LAST, 256, 0},     {OPERATION_READ_RESPONSE_ONLY, 256, 0},
        {OPERATION_READ_RESPONSE_FIRST, 256, 0x60}, {OPERATION_ATOMIC_ACKNOWLEDGE, 0, 0},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        rig_make(rig);
        rig_start(rig);
        uint64_t id = read_under_way(rig, 600);
        rig_arrive(rig, wrong[i].operation, RIG_OURS,
                   (struct rig_packet){.bytes = wrong[i].bytes, .packet = {.syndrome = wrong[i].syndrome}});
        ends(rig, id, IBV_WC_BAD_RESP_ERR);
    }
}

static void c9_9_2_a_read_response_to_another_request_is_bad(void **state)
{
    struct rig *rig = *state;
    uint64_t id = send_under_way(rig, RIG_OURS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 1);
    ends(rig, id, IBV_WC_BAD_RESP_ERR);
    rig_make(rig);
    rig_start(rig);
    id = post(rig, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8);
    sends(rig, FETCH_ADD, RIG_OURS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 8);
    ends(rig, id, IBV_WC_BAD_RESP_ERR);
}

static void flushing_ends_all_work_in_order_without_calling_failed(void **state)
{
    struct rig *rig = *state;
    uint64_t sent = send_under_way(rig, RIG_OURS), waiting = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 9);
    rc_flush(&rig->engine.rc);
    ends(rig, sent, IBV_WC_WR_FLUSH_ERR);
    ends(rig, waiting, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 0);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
    is_silent(rig);
    uint64_t later = post(rig, .opcode = IBV_WR_SEND);
    ends(rig, later, IBV_WC_WR_FLUSH_ERR);
    is_acknowledged(rig, RIG_OURS);
    drops(rig, REASON_PACKET_QP_STATE);
}

TESTS_OF(script, c9_7_5_2_a_nak_fails_its_request_and_flushes_the_rest,
                 c9_7_6_a_nak_acknowledges_what_came_before_it,
                 what_is_posted_after_an_error_is_flushed_at_once,
                 c9_9_2_a_bad_local_key_fails_once_all_before_have_ended,
                 c9_9_2_memory_that_goes_away_during_flight_fails_the_repeat,
                 c9_9_2_the_local_key_of_a_read_is_checked_at_its_response,
                 c9_9_2_local_errors_of_length_and_operation_are_told_apart,
                 a_read_without_max_rd_atomic_is_an_error_and_no_hang,
                 c9_9_2_a_response_that_does_not_fit_is_bad,
                 c9_9_2_a_read_response_to_another_request_is_bad,
                 flushing_ends_all_work_in_order_without_calling_failed)
