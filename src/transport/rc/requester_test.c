/* The requester: the packets that it sends for posted work, and their order. */
#include "base/testing/group.h"
#include "transport/testing/script.h"

#include <string.h>

/* IBA 9.7.3: one packet, one acknowledgement. */
static void c9_7_2_a_short_send_is_one_packet_and_ends_with_its_ack(void **state)
{
    struct rig *rig = *state;
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 8);
    const struct packet *packet = sends(rig, SEND_ONLY, RIG_OURS);
    assert_int_equal(packet->payload.length, 8);
    assert_memory_equal(rig->carried, rig->memory, 8);
    assert_true(packet->ack_requested);
    assert_false(packet->solicited);
    assert_int_equal(packet->pkey, 0xffff);
    is_silent(rig);
    ends_nothing(rig);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, id, IBV_WC_SUCCESS);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
}

/* IBA 9.4.1, table 38: FIRST, MIDDLE, LAST; the last is the short one. */
static void c9_4_1_a_long_message_is_first_middle_and_last(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND_WITH_IMM, .length = 600, .flags = IBV_SEND_SOLICITED, .immediate = 77);
    assert_int_equal(sends(rig, SEND_FIRST, RIG_OURS)->payload.length, 256);
    assert_false(rig->out.solicited);
    assert_int_equal(sends(rig, SEND_MIDDLE, RIG_OURS + 1)->payload.length, 256);
    assert_memory_equal(rig->carried, rig->memory + 256, 256);
    assert_int_equal(sends(rig, SEND_LAST_IMMEDIATE, RIG_OURS + 2)->payload.length, 88);
    assert_memory_equal(rig->carried, rig->memory + 512, 88);
    assert_true(rig->out.solicited);
    assert_true(rig->out.ack_requested);
    assert_int_equal(rig->out.immediate, 77);
    is_silent(rig);
}

static void c9_4_1_a_message_of_whole_segments_has_no_empty_last_packet(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 512);
    sends(rig, SEND_FIRST, RIG_OURS);
    assert_int_equal(sends(rig, SEND_LAST, RIG_OURS + 1)->payload.length, 256);
    is_silent(rig);
}

/* IBA 9.3.3: the first packet has the RETH, with the whole message's length. */
static void c9_3_3_a_write_announces_its_address_and_whole_length(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 300, .remote = 0x1234, .rkey = 9);
    const struct packet *packet = sends(rig, WRITE_FIRST, RIG_OURS);
    assert_int_equal(packet->address, 0x1234);
    assert_int_equal(packet->rkey, 9);
    assert_int_equal(packet->length, 300);
    sends(rig, WRITE_LAST, RIG_OURS + 1);
}

static void elements_of_a_list_become_one_payload(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 300, .at = 40, .sge_count = 3);
    assert_int_equal(sends(rig, SEND_FIRST, RIG_OURS)->payload.count, 3);
    assert_memory_equal(rig->carried, rig->memory + 40, 256);
    assert_int_equal(sends(rig, SEND_LAST, RIG_OURS + 1)->payload.count, 1);
    assert_memory_equal(rig->carried, rig->memory + 40 + 256, 44);
}

static void inline_data_is_what_it_was_when_posted(void **state)
{
    struct rig *rig = *state;
    uint8_t before[32];
    memcpy(before, rig->memory, sizeof(before));
    post(rig, .opcode = IBV_WR_SEND, .length = sizeof(before), .flags = IBV_SEND_INLINE);
    memset(rig->memory, 0, sizeof(before));
    sends(rig, SEND_ONLY, RIG_OURS);
    assert_memory_equal(rig->carried, before, sizeof(before));
    assert_int_equal(rig->looked_up, 0);
}

/* Semantics: zero-length operations are legal and touch no key. */
static void a_message_without_bytes_touches_no_key(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .lkey = 0xbad);
    post(rig, .opcode = IBV_WR_RDMA_WRITE, .lkey = 0xbad, .rkey = 0xbad);
    assert_int_equal(sends(rig, SEND_ONLY, RIG_OURS)->payload.length, 0);
    assert_int_equal(sends(rig, WRITE_ONLY, RIG_OURS + 1)->length, 0);
    assert_int_equal(rig->looked_up, 0);
}

static void c9_2_1_each_work_request_is_sent_with_its_own_operation(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND_WITH_INV, .length = 4, .immediate = 0x55);
    post(rig, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .length = 4, .immediate = 0x66);
    post(rig, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .length = 8, .compare_or_add = 3, .swap = 4);
    post(rig, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .compare_or_add = 5);
    post(rig, .opcode = IBV_WR_ATOMIC_WRITE, .length = 8);
    post(rig, .opcode = NEWER_WR_FLUSH, .remote = 0x40, .rkey = 9, .compare_or_add = 600, .swap = 0x102);
    assert_int_equal(sends(rig, SEND_ONLY_INVALIDATE, RIG_OURS)->invalidate_key, 0x55);
    assert_int_equal(sends(rig, WRITE_ONLY_IMMEDIATE, RIG_OURS + 1)->immediate, 0x66);
    sends(rig, COMPARE_SWAP, RIG_OURS + 2);
    assert_int_equal(rig->out.compare, 3);
    assert_int_equal(rig->out.swap_or_add, 4);
    assert_int_equal(sends(rig, FETCH_ADD, RIG_OURS + 3)->swap_or_add, 5);
    assert_int_equal(sends(rig, ATOMIC_WRITE, RIG_OURS + 4)->payload.length, 8);
    assert_int_equal(rig->out.length, 8);
    const struct packet *flush = sends(rig, FLUSH, RIG_OURS + 5);
    assert_int_equal(flush->address, 0x40);
    assert_int_equal(flush->rkey, 9);
    assert_int_equal(flush->length, 600);
    assert_int_equal(flush->placement, NEWER_FLUSH_PERSISTENT);
    assert_int_equal(flush->selectivity, NEWER_FLUSH_REGION);
    assert_int_equal(flush->payload.length, 0);
}

/* IBA 9.7.3.1: a READ request is one packet but takes the PSNs of its whole response. */
static void c9_7_3_1_a_read_takes_the_psns_of_its_response(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_RDMA_READ, .length = 600, .remote = 0x40, .rkey = 9);
    post(rig, .opcode = IBV_WR_SEND, .length = 1);
    const struct packet *packet = sends(rig, READ_REQUEST, RIG_OURS);
    assert_int_equal(packet->length, 600);
    assert_int_equal(packet->address, 0x40);
    assert_int_equal(packet->payload.length, 0);
    sends(rig, SEND_ONLY, RIG_OURS + 3);
}

static void c9_7_1_psns_wrap_around(void **state)
{
    struct rig *rig = *state;
    rc_start_transmitting(&rig->engine.rc, PSN_MASK);
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 600);
    sends(rig, SEND_FIRST, PSN_MASK);
    sends(rig, SEND_MIDDLE, 0);
    sends(rig, SEND_LAST, 1);
    is_acknowledged(rig, PSN_MASK);
    ends_nothing(rig);
    is_acknowledged(rig, 1);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* IBA 9.7.6: an ACK acknowledges everything before it too. Unsignalled work is handed over like the rest. */
static void c9_7_6_one_ack_ends_all_before_it_in_order(void **state)
{
    struct rig *rig = *state;
    uint64_t first = post(rig, .opcode = IBV_WR_SEND, .length = 1, .flags = IBV_SEND_SIGNALED);
    uint64_t second = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 300);
    uint64_t third = post(rig, .opcode = IBV_WR_SEND, .length = 1);
    sends(rig, SEND_ONLY, RIG_OURS);
    sends(rig, WRITE_FIRST, RIG_OURS + 1);
    sends(rig, WRITE_LAST, RIG_OURS + 2);
    sends(rig, SEND_ONLY, RIG_OURS + 3);
    is_acknowledged(rig, RIG_OURS + 2);
    ends(rig, first, IBV_WC_SUCCESS);
    ends(rig, second, IBV_WC_SUCCESS);
    ends_nothing(rig);
    is_acknowledged(rig, RIG_OURS + 3);
    ends(rig, third, IBV_WC_SUCCESS);
}

static void the_window_bounds_what_is_in_flight(void **state)
{
    struct rig *rig = *state;
    congestion_start(&rig->engine.rc.requester.congestion, 0, 3);
    for (unsigned i = 0; i < 5; i++)
        post(rig, .opcode = IBV_WR_SEND, .length = 1);
    for (unsigned i = 0; i < 3; i++)
        sends(rig, SEND_ONLY, RIG_OURS + i);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 3);
    is_silent(rig);
}

static void c9_7_3_a_message_longer_than_the_window_asks_for_acks_on_its_way(void **state)
{
    struct rig *rig = *state;
    unsigned asked = 0;
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 40 * RIG_SEGMENT);
    for (unsigned i = 0; i < 40; i++) {
        if (!rc_has_output(&rig->engine.rc))
            is_acknowledged(rig, RIG_OURS + i - 1);
        asked += sends(rig, SEND_FIRST + (i > 0) + (i == 39), RIG_OURS + i)->ack_requested;
    }
    assert_in_range(asked, 5, 12);
    is_acknowledged(rig, RIG_OURS + 39);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* Verbs: max_rd_atomic throttles and causes no error; later work waits in order. */
static void c9_4_4_outstanding_reads_are_throttled(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.max_rd_atomic = 2;
    for (unsigned i = 0; i < 3; i++)
        post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4);
    post(rig, .opcode = IBV_WR_SEND);
    sends(rig, READ_REQUEST, RIG_OURS);
    sends(rig, READ_REQUEST, RIG_OURS + 1);
    is_silent(rig);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4);
    sends(rig, READ_REQUEST, RIG_OURS + 2);
    sends(rig, SEND_ONLY, RIG_OURS + 3);
}

/* IBA 10.8.3.3: a fenced request waits until READ data and atomic results have landed. */
static void c10_8_3_3_a_fence_waits_for_reads_and_atomics(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_RDMA_READ, .length = 4);
    post(rig, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8);
    post(rig, .opcode = IBV_WR_SEND, .flags = IBV_SEND_FENCE);
    sends(rig, READ_REQUEST, RIG_OURS);
    sends(rig, FETCH_ADD, RIG_OURS + 1);
    is_silent(rig);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS, .bytes = 4);
    is_silent(rig);
    arrives(rig, ATOMIC_ACKNOWLEDGE, RIG_OURS + 1, .packet = {.syndrome = SYNDROME_ACK});
    sends(rig, SEND_ONLY, RIG_OURS + 2);
}

static void c10_8_3_3_a_fence_does_not_wait_for_sends(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND);
    post(rig, .opcode = IBV_WR_SEND, .flags = IBV_SEND_FENCE);
    sends(rig, SEND_ONLY, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
}

/* Local work takes no PSN, and may take away memory that work before it would need for a repeat. */
static void local_work_is_done_in_its_turn_without_a_psn(void **state)
{
    struct rig *rig = *state;
    uint64_t send = post(rig, .opcode = IBV_WR_SEND);
    uint64_t local = post(rig, .opcode = IBV_WR_LOCAL_INV);
    uint64_t next = post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_silent(rig);
    assert_int_equal(rig->local_operation, 0);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, send, IBV_WC_SUCCESS);
    sends(rig, SEND_ONLY, RIG_OURS + 1);
    assert_int_equal(rig->local_operation, local);
    ends(rig, local, IBV_WC_SUCCESS);
    is_acknowledged(rig, RIG_OURS + 1);
    ends(rig, next, IBV_WC_SUCCESS);
}

static void failed_local_work_flushes_the_rest(void **state)
{
    struct rig *rig = *state;
    rig->local_status = IBV_WC_MW_BIND_ERR;
    uint64_t bind = post(rig, .opcode = IBV_WR_BIND_MW);
    uint64_t next = post(rig, .opcode = IBV_WR_SEND);
    assert_true(rc_has_output(&rig->engine.rc));
    is_silent(rig);
    ends(rig, bind, IBV_WC_MW_BIND_ERR);
    ends(rig, next, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
}

static void a_link_that_ships_references_gets_large_segments(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.reference_segment = 4096;
    rig->engine.rc.settings.reference_from = 1000;
    post(rig, .opcode = IBV_WR_SEND, .length = 999);
    post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 5000);
    for (unsigned i = 0; i < 4; i++)
        assert_false(sends(rig, SEND_FIRST + (i > 0) + (i == 3), RIG_OURS + i)->payload.by_reference);
    assert_int_equal(sends(rig, WRITE_FIRST, RIG_OURS + 4)->payload.length, 4096);
    assert_true(rig->out.payload.by_reference);
    assert_int_equal(sends(rig, WRITE_LAST, RIG_OURS + 5)->payload.length, 904);
    assert_true(rig->out.payload.by_reference);
}

/* The peer may no longer read our memory. 5000 bytes are 2 packets by reference and 20 of 256 without. */
static void what_can_no_longer_be_fetched_goes_in_packets(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.reference_segment = 4096;
    rig->engine.rc.settings.reference_from = 1000;
    rig->engine.rc.settings.retry_count = rig->engine.rc.requester.retries_left = 0;
    uint64_t first = post(rig, .opcode = IBV_WR_SEND, .length = 5000);
    uint64_t second = post(rig, .opcode = IBV_WR_SEND, .length = 1);
    assert_true(sends(rig, SEND_FIRST, RIG_OURS)->payload.by_reference);
    assert_true(sends(rig, SEND_LAST, RIG_OURS + 1)->payload.by_reference);
    sends(rig, SEND_ONLY, RIG_OURS + 2);
    rig->engine.rc.settings.references_lost = true;
    waits(rig, RIG_ACK_TIMER * 3 / 4);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
    is_acknowledged(rig, RIG_OURS + 1);
    drops(rig, REASON_PACKET_STALE_RESPONSE); /* it has not been sent by its new number */
    waits(rig, RIG_ACK_TIMER / 2);            /* the timer began anew, so nothing is retried */
    for (unsigned i = 0; i < 20; i++) {
        const struct packet *packet = sends(rig, SEND_FIRST + (i > 0) + (i == 19), RIG_OURS + i);
        assert_int_equal(packet->payload.length, i < 19 ? 256 : 5000 - 19 * 256);
        assert_false(packet->payload.by_reference);
        is_acknowledged(rig, RIG_OURS + (i < 10 ? i : 10)); /* no more than the window are under way */
    }
    sends(rig, SEND_ONLY, RIG_OURS + 20);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS + 20);
    ends(rig, first, IBV_WC_SUCCESS);
    ends(rig, second, IBV_WC_SUCCESS);
}

/* The peer has the first 4096 bytes, which are 16 packets of 256. */
static void what_was_fetched_is_not_sent_again(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.reference_segment = 4096;
    rig->engine.rc.settings.reference_from = 1000;
    rig->engine.rc.settings.max_rd_atomic = 1;
    uint64_t send = post(rig, .opcode = IBV_WR_SEND, .length = 5000);
    uint64_t read = post(rig, .opcode = IBV_WR_RDMA_READ, .length = 8);
    sends(rig, SEND_FIRST, RIG_OURS);
    sends(rig, SEND_LAST, RIG_OURS + 1);
    sends(rig, READ_REQUEST, RIG_OURS + 2);
    rig->engine.rc.settings.references_lost = true;
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS + 1);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(sends(rig, SEND_MIDDLE + (i == 3), RIG_OURS + 1 + i)->payload.length,
                         i < 3 ? 256 : 5000 - 19 * 256);
    sends(rig, READ_REQUEST, RIG_OURS + 5);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS + 4);
    ends(rig, send, IBV_WC_SUCCESS);
    arrives(rig, READ_RESPONSE_ONLY, RIG_OURS + 5, .bytes = 8, .packet = {.syndrome = SYNDROME_ACK});
    ends(rig, read, IBV_WC_SUCCESS);
}

/* The owner of a queue pair forbids references when rules for packets are added. Begun work keeps its PSNs, and each
 * has the bytes of a reference. */
static void begun_work_goes_on_by_reference(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.reference_segment = 4096;
    rig->engine.rc.settings.reference_from = 1000;
    uint64_t first = post(rig, .opcode = IBV_WR_SEND, .length = 5000);
    sends(rig, SEND_FIRST, RIG_OURS);
    engine_allow_references(&rig->engine, 0);
    uint64_t second = post(rig, .opcode = IBV_WR_SEND, .length = 1000);
    assert_true(sends(rig, SEND_LAST, RIG_OURS + 1)->payload.by_reference);
    assert_false(sends(rig, SEND_FIRST, RIG_OURS + 2)->payload.by_reference);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
    assert_int_equal(sends(rig, SEND_FIRST, RIG_OURS)->payload.length, 4096);
    assert_true(rig->out.payload.by_reference);
    assert_int_equal(sends(rig, SEND_LAST, RIG_OURS + 1)->payload.length, 904);
    assert_true(rig->out.payload.by_reference);
    for (unsigned i = 0; i < 4; i++)
        assert_false(sends(rig, SEND_FIRST + (i > 0) + (i == 3), RIG_OURS + 2 + i)->payload.by_reference);
    is_acknowledged(rig, RIG_OURS + 5);
    ends(rig, first, IBV_WC_SUCCESS);
    ends(rig, second, IBV_WC_SUCCESS);
}

/* The peer loses its right to read after references were forbidden. */
static void begun_work_loses_references_that_were_forbidden(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.reference_segment = 4096;
    rig->engine.rc.settings.reference_from = 1000;
    uint64_t send = post(rig, .opcode = IBV_WR_SEND, .length = 1100);
    assert_true(sends(rig, SEND_ONLY, RIG_OURS)->payload.by_reference);
    engine_allow_references(&rig->engine, 0);
    rig->engine.rc.settings.references_lost = true;
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS);
    for (unsigned i = 0; i < 5; i++)
        assert_false(sends(rig, SEND_FIRST + (i > 0) + (i == 4), RIG_OURS + i)->payload.by_reference);
    is_refused(rig, SYNDROME_NAK_SEQUENCE, RIG_OURS + 1); /* is one of many repeats now */
    assert_int_equal(sends(rig, SEND_MIDDLE, RIG_OURS + 1)->payload.length, 256);
    is_acknowledged(rig, RIG_OURS + 4);
    ends(rig, send, IBV_WC_SUCCESS);
}

/* SQD: begun work ends, new work waits, the event is raised once. */
static void draining_ends_begun_work_and_starts_none(void **state)
{
    struct rig *rig = *state;
    uint64_t begun = post(rig, .opcode = IBV_WR_SEND, .length = 300);
    post(rig, .opcode = IBV_WR_SEND, .length = 1);
    sends(rig, SEND_FIRST, RIG_OURS);
    rc_drain(&rig->engine.rc, true);
    raises_nothing(rig);
    sends(rig, SEND_LAST, RIG_OURS + 1);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS + 1);
    ends(rig, begun, IBV_WC_SUCCESS);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    is_silent(rig);
    rc_drain(&rig->engine.rc, false);
    sends(rig, SEND_ONLY, RIG_OURS + 2);
    is_acknowledged(rig, RIG_OURS + 2);
    raises_nothing(rig);
}

static void an_idle_queue_is_drained_at_once(void **state)
{
    struct rig *rig = *state;
    rc_drain(&rig->engine.rc, true);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    raises_nothing(rig);
}

static void draining_repeats_what_was_lost(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, RIG_OURS);
    rc_drain(&rig->engine.rc, true);
    waits(rig, NANOS_SECOND);
    sends(rig, SEND_ONLY, RIG_OURS);
    raises_nothing(rig);
    is_acknowledged(rig, RIG_OURS);
    raises(rig, IBV_EVENT_SQ_DRAINED);
}

/* IBA 9.2.6: XRC requests name the shared receive queue; the answers are RC's. */
static void a14_3_an_xrc_request_names_its_receive_queue(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.service = SERVICE_XRC;
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .srq = 0x77);
    assert_int_equal(sends(rig, SEND_ONLY, RIG_OURS)->srq, 0x77);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, id, IBV_WC_SUCCESS);
}

/* Work before it, for the receiver to which the owner is connected, is sent at once. */
static void work_waits_until_its_receiver_is_reached(void **state)
{
    struct rig *rig = *state;
    rig->engine.rc.settings.service = SERVICE_XRC;
    rig->reached = 0x33;
    uint64_t first = post(rig, .opcode = IBV_WR_SEND, .receiver = 0x33);
    uint64_t second = post(rig, .opcode = IBV_WR_SEND, .receiver = 0x44);
    assert_int_equal(sends(rig, SEND_ONLY, RIG_OURS)->srq, 0x33);
    is_silent(rig);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, first, IBV_WC_SUCCESS);
    is_silent(rig);
    rig->reached = 0x44;
    assert_int_equal(sends(rig, SEND_ONLY, RIG_OURS + 1)->srq, 0x44);
    is_acknowledged(rig, RIG_OURS + 1);
    ends(rig, second, IBV_WC_SUCCESS);
}

static void work_whose_receiver_is_not_reached_fails_with_the_rest(void **state)
{
    struct rig *rig = *state;
    rig->reached = 0x33;
    uint64_t first = post(rig, .opcode = IBV_WR_RDMA_WRITE, .length = 8, .receiver = 0x44);
    uint64_t second = post(rig, .opcode = IBV_WR_SEND, .receiver = 0x33);
    is_silent(rig);
    engine_refuse(&rig->engine, IBV_WC_REM_ACCESS_ERR, REASON_REMOTE_ACCESS);
    ends(rig, first, IBV_WC_REM_ACCESS_ERR);
    ends(rig, second, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
}

static void work_waits_until_the_queue_pair_may_send(void **state)
{
    struct rig *rig = *state;
    rig_make(rig);
    rc_start_receiving(&rig->engine.rc, RIG_THEIRS);
    post(rig, .opcode = IBV_WR_SEND);
    is_silent(rig);
    rc_start_transmitting(&rig->engine.rc, RIG_OURS);
    sends(rig, SEND_ONLY, RIG_OURS);
}

static void reset_forgets_everything_but_the_settings(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, RIG_OURS);
    rc_reset(&rig->engine.rc);
    is_silent(rig);
    ends_nothing(rig);
    assert_int_equal(rc_deadline(&rig->engine.rc), NANOS_NEVER);
    rig_start(rig);
    uint64_t id = post(rig, .opcode = IBV_WR_SEND);
    sends(rig, SEND_ONLY, RIG_OURS);
    is_acknowledged(rig, RIG_OURS);
    ends(rig, id, IBV_WC_SUCCESS);
}

static void a_packet_may_begin_and_end_within_elements(void **state)
{
    struct rig *rig = *state;
    post(rig, .opcode = IBV_WR_SEND, .length = 600, .at = 40, .sge_count = 3);
    sends(rig, SEND_FIRST, RIG_OURS);
    assert_int_equal(sends(rig, SEND_MIDDLE, RIG_OURS + 1)->payload.count, 2);
    assert_memory_equal(rig->carried, rig->memory + 40 + 256, 256);
}

/* IBA 9.7.1: PSNs of more than half the circle could not be distinguished from repeats. The packets that fit fill the
 * window. */
static void c9_7_1_less_than_half_of_the_psns_are_in_flight(void **state)
{
    struct rig *rig = *state;
    const uint32_t most = (PSN_MASK / 2 - rig->engine.rc.settings.window) * RIG_SEGMENT;
    rig->engine.rc.settings.max_message = UINT32_MAX;
    post(rig, .opcode = IBV_WR_RDMA_READ, .length = most);
    post(rig, .opcode = IBV_WR_SEND);
    sends(rig, READ_REQUEST, RIG_OURS);
    is_silent(rig);
    rig_make(rig);
    rig->engine.rc.settings.max_message = UINT32_MAX;
    rig_start(rig);
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = most + 1);
    is_silent(rig);
    ends(rig, id, IBV_WC_LOC_LEN_ERR);
}

TESTS_OF(script, c9_7_2_a_short_send_is_one_packet_and_ends_with_its_ack,
                 c9_4_1_a_long_message_is_first_middle_and_last,
                 c9_4_1_a_message_of_whole_segments_has_no_empty_last_packet,
                 c9_3_3_a_write_announces_its_address_and_whole_length,
                 elements_of_a_list_become_one_payload,
                 a_packet_may_begin_and_end_within_elements,
                 inline_data_is_what_it_was_when_posted,
                 a_message_without_bytes_touches_no_key,
                 c9_2_1_each_work_request_is_sent_with_its_own_operation,
                 c9_7_3_1_a_read_takes_the_psns_of_its_response,
                 c9_7_1_psns_wrap_around,
                 c9_7_6_one_ack_ends_all_before_it_in_order,
                 the_window_bounds_what_is_in_flight,
                 c9_7_3_a_message_longer_than_the_window_asks_for_acks_on_its_way,
                 c9_4_4_outstanding_reads_are_throttled,
                 c10_8_3_3_a_fence_waits_for_reads_and_atomics,
                 c10_8_3_3_a_fence_does_not_wait_for_sends,
                 local_work_is_done_in_its_turn_without_a_psn,
                 failed_local_work_flushes_the_rest,
                 a_link_that_ships_references_gets_large_segments,
                 what_can_no_longer_be_fetched_goes_in_packets,
                 what_was_fetched_is_not_sent_again,
                 begun_work_goes_on_by_reference,
                 begun_work_loses_references_that_were_forbidden,
                 draining_ends_begun_work_and_starts_none,
                 an_idle_queue_is_drained_at_once,
                 draining_repeats_what_was_lost,
                 a14_3_an_xrc_request_names_its_receive_queue,
                 work_waits_until_its_receiver_is_reached,
                 work_whose_receiver_is_not_reached_fails_with_the_rest,
                 work_waits_until_the_queue_pair_may_send,
                 reset_forgets_everything_but_the_settings,
                 c9_7_1_less_than_half_of_the_psns_are_in_flight)
