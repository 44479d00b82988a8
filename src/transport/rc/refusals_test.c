/* The responder: requests that it refuses, and what becomes of both queue pairs. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

static const uint32_t first = RIG_THEIRS;

struct refused {
    enum operation operation;
    struct rig_packet packet;
    uint8_t syndrome;
    enum reason reason;
};

#define INVALID SYNDROME_NAK_INVALID_REQUEST
#define ACCESS SYNDROME_NAK_REMOTE_ACCESS

/* IBA 9.9.3: the faults that one packet, the first of all, can have. */
static const struct refused refused[] = {
    {OPERATION_SEND_MIDDLE, {.bytes = 1}, INVALID, REASON_REQUEST_SEQUENCE},
    {OPERATION_SEND_LAST, {.bytes = 1}, INVALID, REASON_REQUEST_SEQUENCE},
    {OPERATION_WRITE_LAST, {.bytes = 1}, INVALID, REASON_REQUEST_SEQUENCE},
    {OPERATION_SEND_FIRST, {.bytes = 0}, INVALID, REASON_MESSAGE_LENGTH},
    {OPERATION_WRITE_FIRST, {.packet = {RETH(0, 1)}}, INVALID, REASON_MESSAGE_LENGTH},
    {OPERATION_WRITE_FIRST, {.bytes = 8, .packet = {RETH(0, 8)}}, INVALID, REASON_MESSAGE_LENGTH},
    {OPERATION_WRITE_ONLY, {.bytes = 8, .packet = {RETH(0, 7)}}, INVALID, REASON_MESSAGE_LENGTH},
    {OPERATION_WRITE_ONLY, {.bytes = 8, .packet = {RETH(0, 9)}}, INVALID, REASON_MESSAGE_LENGTH},
    {OPERATION_ATOMIC_WRITE, {.bytes = 7, .packet = {RETH(0, 8)}}, INVALID, REASON_MESSAGE_LENGTH},
    {OPERATION_WRITE_ONLY, {.bytes = 1, .packet = {.rkey = 1, .length = 1}}, ACCESS, REASON_REMOTE_KEY_UNKNOWN},
    {OPERATION_WRITE_FIRST, {.bytes = 1, .packet = {RETH(RIG_MEMORY - 4, 5)}}, ACCESS, REASON_REMOTE_RANGE},
    {OPERATION_READ_REQUEST, {.packet = {RETH(RIG_MEMORY - 4, 5)}}, ACCESS, REASON_REMOTE_RANGE},
    {OPERATION_READ_REQUEST, {.packet = {.rkey = KEY_NOTHING, .length = 5}}, ACCESS, REASON_REMOTE_PERMISSION},
    {OPERATION_FETCH_ADD, {.packet = {.rkey = KEY_NOTHING}}, ACCESS, REASON_REMOTE_PERMISSION},
    {OPERATION_FETCH_ADD, {.packet = {.rkey = 1, .address = 4}}, INVALID, REASON_ATOMIC_ALIGNMENT},
    {OPERATION_COMPARE_SWAP, {.packet = {.rkey = KEY_ALL, .address = 12}}, INVALID, REASON_ATOMIC_ALIGNMENT},
    {OPERATION_FLUSH, {.packet = {RETH(RIG_MEMORY - 4, 5), .placement = 1}}, ACCESS, REASON_REMOTE_RANGE},
    {OPERATION_FLUSH, {.packet = {.rkey = 1, .placement = 1}}, ACCESS, REASON_REMOTE_KEY_UNKNOWN},
    {OPERATION_FLUSH, {.packet = {.rkey = KEY_NOTHING, .placement = 1}}, ACCESS, REASON_REMOTE_PERMISSION},
    {OPERATION_FLUSH, {.packet = {RETH(0, 8)}}, INVALID, REASON_FLUSH_KIND},
    {OPERATION_FLUSH, {.packet = {RETH(0, 8), .placement = 5}}, INVALID, REASON_FLUSH_KIND},
    {OPERATION_FLUSH, {.packet = {RETH(0, 8), .placement = 1, .selectivity = 2}}, INVALID, REASON_FLUSH_KIND},
};

/* Semantics: a message longer than its receive: LOC_LEN here, REM_INV_REQ there, both in error. */
static void c9_7_4_1_6_a_message_longer_than_its_receive_fails_both(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 300), work = post(rig, .opcode = IBV_WR_SEND);
    arrives(rig, SEND_FIRST, first, .bytes = 256);
    arrives(rig, SEND_LAST, first + 1, .bytes = 45, .packet = {.ack_requested = true});
    assert_int_equal(delivers(rig, id, IBV_WC_LOC_LEN_ERR)->reason, REASON_RECEIVE_TOO_SHORT);
    ends(rig, work, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
    raises_nothing(rig);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 1);
    is_silent(rig);
}

/* Semantics: a receive whose memory is wrong: LOC_PROT here, REM_OP there. */
static void c9_7_4_1_6_a_receive_with_a_bad_key_fails_both(void **state)
{
    struct rig *rig = *state;
    uint64_t id = rig_post_receive(rig, 0, 8, KEY_NOTHING);
    arrives(rig, SEND_ONLY, first, .bytes = 8, .packet = {.ack_requested = true});
    assert_int_equal(delivers(rig, id, IBV_WC_LOC_PROT_ERR)->reason, REASON_RECEIVE_PERMISSION);
    assert_int_equal(rig->failures, 1);
    refuses(rig, SYNDROME_NAK_REMOTE_OPERATION, first);
    is_silent(rig);
}

/* perftest's buffers for shared receive queues are whole MTUs, and the last ones reach outside their region. */
static void a_receive_is_wrong_only_where_bytes_are_stored(void **state)
{
    struct rig *rig = *state;
    uint64_t first_id = rig_post_receive(rig, RIG_MEMORY - 300, 1000, KEY_ALL);
    arrives(rig, SEND_FIRST, first, .bytes = 256);
    arrives(rig, SEND_LAST, first + 1, .bytes = 44, .packet = {.ack_requested = true});
    delivers(rig, first_id, IBV_WC_SUCCESS);
    acknowledges(rig, first + 1);
    uint64_t second_id = rig_post_receive(rig, RIG_MEMORY - 300, 1000, KEY_ALL);
    arrives(rig, SEND_FIRST, first + 2, .bytes = 256);
    arrives(rig, SEND_LAST, first + 3, .bytes = 45, .packet = {.ack_requested = true});
    assert_int_equal(delivers(rig, second_id, IBV_WC_LOC_PROT_ERR)->reason, REASON_RECEIVE_RANGE);
    refuses(rig, SYNDROME_NAK_REMOTE_OPERATION, first + 3);
}

static void c9_9_3_a_wrong_request_is_refused_for_good(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        rig_make(rig);
        rig_start(rig);
        post_receive(rig, 100);
        uint64_t work = post(rig, .opcode = IBV_WR_SEND);
        rig_arrive(rig, refused[i].operation, first, refused[i].packet);
        drops(rig, refused[i].reason);
        ends(rig, work, IBV_WC_WR_FLUSH_ERR);
        raises(rig, refused[i].syndrome == ACCESS ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
        assert_int_equal(rig->failures, 1);
        refuses(rig, refused[i].syndrome, first);
        arrives(rig, SEND_ONLY, first, .bytes = 1, .packet = {.ack_requested = true});
        drops(rig, REASON_PACKET_QP_STATE);
        delivers_nothing(rig);
        is_silent(rig);
    }
}

/* IBA 9.9.3, class J: the message has arrived, so it is acknowledged; only this side reports that the key was wrong. */
static void c9_9_3_a_key_that_cannot_be_invalidated_is_no_refusal(void **state)
{
    static const struct {
        enum operation operation;
        bool long_one;
    } kinds[] = {{OPERATION_SEND_ONLY_INVALIDATE, false}, {OPERATION_SEND_LAST_INVALIDATE, true}};
    struct rig *rig = *state;
    for (unsigned i = 0; i < 2; i++) {
        uint32_t last = first + kinds[i].long_one;
        rig_make(rig);
        rig_start(rig);
        uint64_t id = post_receive(rig, 1000), work = post(rig, .opcode = IBV_WR_SEND);
        if (kinds[i].long_one)
            arrives(rig, SEND_FIRST, first, .bytes = 256);
        rig_arrive(rig, kinds[i].operation, last, (struct rig_packet){.bytes = 8, .packet = {.invalidate_key = 1}});
        assert_int_equal(delivers(rig, id, IBV_WC_REM_INV_REQ_ERR)->reason, REASON_INVALIDATE_KEY);
        assert_int_equal(rig->drops, 0);
        ends(rig, work, IBV_WC_WR_FLUSH_ERR);
        raises_nothing(rig);
        assert_int_equal(rig->failures, 1);
        acknowledges(rig, last);
        is_silent(rig);
        assert_int_equal(rig->invalidated, 0);
    }
}

/* A fault of the message itself is found first, and the key is not touched. */
static void c9_9_3_a_send_that_is_refused_invalidates_nothing(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post_receive(rig, 7);
    arrives(rig, SEND_ONLY_INVALIDATE, first, .bytes = 8, .packet = {.invalidate_key = KEY_ALL});
    delivers(rig, id, IBV_WC_LOC_LEN_ERR);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first);
    assert_int_equal(rig->invalidated, 0);
}

/* IBA 11.6.2, local access error: a receive is there for the immediate of an RDMA WRITE, so its completion reports it,
 * and no event. */
static void c9_9_3_a_write_with_immediate_without_access_ends_a_receive(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 2; i++) {
        bool posted = i;
        rig_make(rig);
        rig_start(rig);
        uint64_t id = posted ? post_receive(rig, 8) : 0;
        arrives(rig, WRITE_ONLY_IMMEDIATE, first, .bytes = 8, .packet = {.rkey = 1, .length = 8});
        if (posted) {
            assert_int_equal(delivers(rig, id, IBV_WC_LOC_ACCESS_ERR)->reason, REASON_REMOTE_KEY_UNKNOWN);
            raises_nothing(rig);
        } else {
            raises(rig, IBV_EVENT_QP_ACCESS_ERR);
        }
        delivers_nothing(rig);
        refuses(rig, SYNDROME_NAK_REMOTE_ACCESS, first);
        assert_int_equal(rig->failures, 1);
    }
}

/* IBA table 59 "unsupported opcode": RDMA on a QP that is not set up for it. */
static void c9_7_4_1_3_each_kind_of_access_needs_its_flag(void **state)
{
    static const struct {
        enum operation operation;
        uint32_t bytes, length;
        unsigned access, placement;
    } kinds[] = {
        {OPERATION_WRITE_ONLY, 8, 8, IBV_ACCESS_REMOTE_WRITE},
        {OPERATION_ATOMIC_WRITE, 8, 8, IBV_ACCESS_REMOTE_WRITE},
        {OPERATION_READ_REQUEST, 0, 8, IBV_ACCESS_REMOTE_READ},
        {OPERATION_FETCH_ADD, 0, 0, IBV_ACCESS_REMOTE_ATOMIC},
        {OPERATION_FLUSH, 0, 8, NEWER_ACCESS_FLUSH_GLOBAL, NEWER_FLUSH_GLOBAL},
        {OPERATION_FLUSH, 0, 8, NEWER_ACCESS_FLUSH_PERSISTENT, NEWER_FLUSH_PERSISTENT},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < 2 * sizeof(kinds) / sizeof(*kinds); i++) {
        bool allowed = i & 1;
        rig_make(rig);
        rig->engine.rc.settings.access = allowed ? kinds[i / 2].access : ~kinds[i / 2].access;
        rig_start(rig);
        rig_arrive(rig, kinds[i / 2].operation, first,
                   (struct rig_packet){.bytes = kinds[i / 2].bytes,
                                       .packet = {RETH(0, kinds[i / 2].length), .placement = kinds[i / 2].placement}});
        assert_int_equal(rig->failures, !allowed);
        if (!allowed)
            refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first);
    }
}

/* IBA 9.7.4.1.2: the valid orders of packets. */
static void c9_7_4_1_2_a_message_must_not_be_interrupted(void **state)
{
    static const enum operation wrong[] = {OPERATION_SEND_ONLY,    OPERATION_SEND_FIRST,   OPERATION_WRITE_MIDDLE,
                                           OPERATION_WRITE_LAST,   OPERATION_READ_REQUEST, OPERATION_FETCH_ADD,
                                           OPERATION_ATOMIC_WRITE, OPERATION_WRITE_ONLY,   OPERATION_FLUSH};
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        rig_make(rig);
        rig_start(rig);
        uint64_t id = post_receive(rig, 1000);
        arrives(rig, SEND_FIRST, first, .bytes = 256);
        rig_arrive(rig, wrong[i], first + 1, (struct rig_packet){.bytes = 8, .packet = {RETH(0, 8)}});
        drops(rig, REASON_REQUEST_SEQUENCE);
        delivers(rig, id, IBV_WC_WR_FLUSH_ERR);
        refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 1);
    }
}

static void c9_7_4_1_5_a_write_must_not_grow_beyond_its_announcement(void **state)
{
    struct rig *rig = *state;
    arrives(rig, WRITE_FIRST, first, .bytes = 256, .packet = {RETH(0x40, 300)});
    arrives(rig, WRITE_LAST, first + 1, .bytes = 45, .fill = 0xee);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 1);
    assert_int_not_equal(rig->memory[0x40 + 256], 0xee);
}

static void c9_7_4_1_5_a_message_must_not_exceed_the_device(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.max_message = 1000;
    post_receive(rig, 2000);
    arrives(rig, SEND_FIRST, first, .bytes = 800);
    arrives(rig, SEND_LAST, first + 1, .bytes = 201);
    drops(rig, REASON_MESSAGE_LENGTH);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 1);
}

/* max_dest_rd_atomic: a peer that has more outstanding breaks the rules (IBA 9.7.4.1.3). */
static void c9_7_4_1_3_too_many_reads_are_refused(void **state)
{
    struct rig *rig = *state;
    for (unsigned i = 0; i < 4; i++)
        arrives(rig, READ_REQUEST, first + i, .packet = {RETH(0x40, 4)});
    assert_int_equal(rig->failures, 0);
    arrives(rig, READ_REQUEST, first + 4, .packet = {RETH(0x40, 4)});
    drops(rig, REASON_TOO_MANY_READS);
    raises(rig, IBV_EVENT_QP_REQ_ERR);
    for (unsigned i = 0; i < 4; i++)
        sends(rig, READ_RESPONSE_ONLY, first + i);
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first + 4);
    is_silent(rig);
}

static void c9_7_4_1_3_a_queue_pair_without_read_resources_refuses_them(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.max_dest_rd_atomic = 0;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 4)});
    refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first);
}

static void c9_7_4_1_4_a_read_whose_memory_goes_away_is_refused_then(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 600)});
    sends(rig, READ_RESPONSE_FIRST, first);
    rig->deregistered = true;
    refuses(rig, SYNDROME_NAK_REMOTE_ACCESS, first + 1);
    raises(rig, IBV_EVENT_QP_ACCESS_ERR);
    assert_int_equal(rig->failures, 1);
    drops(rig, REASON_REMOTE_KEY_UNKNOWN);
    is_silent(rig);
}

/* The memory is registered, and does not exist any more: the link finds that when it copies. */
static void c9_7_4_1_4_a_read_whose_memory_is_none_is_refused_with_its_reason(void **state)
{
    struct rig *rig = *state;
    arrives(rig, READ_REQUEST, first, .packet = {RETH(0x40, 600)});
    sends(rig, READ_RESPONSE_FIRST, first);
    struct packet response = *sends(rig, READ_RESPONSE_MIDDLE, first + 1);
    rc_unreadable(&rig->engine.rc, &response);
    refuses(rig, SYNDROME_NAK_REMOTE_ACCESS, first + 1);
    raises(rig, IBV_EVENT_QP_ACCESS_ERR);
    assert_int_equal(rig->failures, 1);
    assert_int_equal(rig->drops, 1);
    drops(rig, REASON_REMOTE_GONE);
    is_silent(rig);
}

static void c9_6_1_what_is_not_for_this_queue_pair_is_dropped(void **state)
{
    struct rig *rig = *state;
    struct packet packet = {.opcode = op_code(SERVICE_UC, OPERATION_SEND_ONLY), .psn = first, .pkey = 0xffff};
    rc_receive(&rig->engine.rc, &packet, rig->now);
    drops(rig, REASON_PACKET_SERVICE);
    packet.opcode = op_code(SERVICE_RC, 31);
    rc_receive(&rig->engine.rc, &packet, rig->now);
    drops(rig, REASON_PACKET_OPCODE);
    arrives(rig, SEND_ONLY, first, .packet = {.pkey = 0x8001});
    drops(rig, REASON_PACKET_PKEY);
    rig->engine.rc.settings.pkey = 0x7fff;
    arrives(rig, SEND_ONLY, first, .packet = {.pkey = 0x7fff});
    drops(rig, REASON_PACKET_PKEY);
    rig_make(rig);
    arrives(rig, SEND_ONLY, first, );
    drops(rig, REASON_PACKET_QP_STATE);
    is_silent(rig);
}

static void start_exactly(struct rig *rig)
{
    rig_make(rig);
    rig->engine.rc.settings.exact = true;
    rig_start(rig);
    post_receive(rig, 1000);
}

/* IBA 9.7.4.1.5: where messages are cut by the path MTU, another size shows that the two ends don't agree on it. */
static void c9_7_4_1_5_packets_have_the_path_mtus_size(void **state)
{
    static const struct {
        enum operation operation;
        struct rig_packet packet;
        bool fits;
    } sizes[] = {
        {OPERATION_SEND_FIRST, {.bytes = 256}, true},
        {OPERATION_SEND_FIRST, {.bytes = 255}, false},
        {OPERATION_SEND_FIRST, {.bytes = 512}, false},
        {OPERATION_SEND_ONLY, {.bytes = 256}, true},
        {OPERATION_SEND_ONLY, {.bytes = 257}, false},
        {OPERATION_WRITE_FIRST, {.bytes = 128, .packet = {RETH(0, 300)}}, false},
        {OPERATION_WRITE_ONLY, {.bytes = 257, .packet = {RETH(0, 257)}}, false},
        {OPERATION_WRITE_ONLY, {.packet = {RETH(0, 0)}}, true},
        {OPERATION_ATOMIC_WRITE, {.bytes = 8, .packet = {RETH(0, 8)}}, true},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        start_exactly(rig);
        rig_arrive(rig, sizes[i].operation, first, sizes[i].packet);
        assert_int_equal(rig->failures, !sizes[i].fits);
        if (!sizes[i].fits)
            refuses(rig, SYNDROME_NAK_INVALID_REQUEST, first);
    }
}

static void c9_7_4_1_5_later_packets_have_the_path_mtus_size_too(void **state)
{
    static const struct {
        enum operation operation;
        uint32_t bytes;
        bool fits;
    } sizes[] = {
        {OPERATION_SEND_MIDDLE, 256, true}, {OPERATION_SEND_MIDDLE, 100, false}, {OPERATION_SEND_MIDDLE, 300, false},
        {OPERATION_SEND_LAST, 256, true},   {OPERATION_SEND_LAST, 1, true},      {OPERATION_SEND_LAST, 257, false},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        start_exactly(rig);
        arrives(rig, SEND_FIRST, first, .bytes = 256);
        rig_arrive(rig, sizes[i].operation, first + 1, (struct rig_packet){.bytes = sizes[i].bytes});
        assert_int_equal(rig->failures, !sizes[i].fits);
    }
}

TESTS_OF(script, c9_7_4_1_6_a_message_longer_than_its_receive_fails_both,
                 c9_7_4_1_6_a_receive_with_a_bad_key_fails_both,
                 a_receive_is_wrong_only_where_bytes_are_stored,
                 c9_9_3_a_wrong_request_is_refused_for_good,
                 c9_9_3_a_key_that_cannot_be_invalidated_is_no_refusal,
                 c9_9_3_a_send_that_is_refused_invalidates_nothing,
                 c9_9_3_a_write_with_immediate_without_access_ends_a_receive,
                 c9_7_4_1_3_each_kind_of_access_needs_its_flag,
                 c9_7_4_1_2_a_message_must_not_be_interrupted,
                 c9_7_4_1_5_a_write_must_not_grow_beyond_its_announcement,
                 c9_7_4_1_5_a_message_must_not_exceed_the_device,
                 c9_7_4_1_3_too_many_reads_are_refused,
                 c9_7_4_1_3_a_queue_pair_without_read_resources_refuses_them,
                 c9_7_4_1_4_a_read_whose_memory_goes_away_is_refused_then,
                 c9_7_4_1_4_a_read_whose_memory_is_none_is_refused_with_its_reason,
                 c9_6_1_what_is_not_for_this_queue_pair_is_dropped,
                 c9_7_4_1_5_packets_have_the_path_mtus_size,
                 c9_7_4_1_5_later_packets_have_the_path_mtus_size_too)
