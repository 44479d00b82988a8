#include "base/testing/group.h"
#include "transport/unreliable/raw.h"

#include <string.h>

#include "transport/testing/script.h"
#include "wire/testing/ether_frames.h"

enum { SLOTS = 16, SLOT = sizeof(struct send_wqe) + 256, HEADERS = 54, TCP = 6, UDP = 17 };

/* An engine with the rig's host and memory. */
static struct engine engine;
static _Alignas(8) uint8_t slots[SLOTS * SLOT];
static uint8_t frame[RAW_FRAME_MAX];
static uint32_t length;

static int set_up(void **state)
{
    int failed = script_set_up(state);
    struct rig *rig = *state;
    engine_initialize_raw(&engine, &rig->owner,
                          &(struct send_queue){.memory = slots, .stride = SLOT, .capacity = SLOTS});
    engine_start_receiving(&engine, 0);
    engine_start_transmitting(&engine, 0);
    return failed;
}

static struct send_wqe *reserve(uint64_t id, uint8_t opcode, uint32_t bytes)
{
    struct send_wqe *work = send_queue_reserve(engine_queue(&engine));
    *work = (struct send_wqe){.id = id, .opcode = opcode, .flags = IBV_SEND_SIGNALED, .length = bytes, .sge_count = 1};
    work->sge[0] = (struct ibv_sge){.addr = 0, .length = bytes, .lkey = KEY_ALL};
    return work;
}

static struct send_wqe *post_frame(uint64_t id, uint32_t bytes)
{
    struct send_wqe *work = reserve(id, IBV_WR_SEND, bytes);
    send_queue_commit(engine_queue(&engine));
    engine_posted(&engine);
    return work;
}

static bool sends_next(void)
{
    bool sent = engine_next_frame(&engine, frame, &length);
    if (sent)
        engine_frame_sent(&engine);
    return sent;
}

static void frame_arrives(const struct frame_maker *maker)
{
    struct ether ether;
    ether_parse(&ether, maker->bytes, maker->length);
    engine_receive_frame(&engine, &(struct raw_frame){.ether = &ether, .checksums_hold = true, .flow_tag = 77});
}

static struct frame_maker tagged_frame(void)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_VLAN);
    frame_tag(&maker, 0x6005, 0x1234);
    frame_data(&maker, 50);
    return maker;
}

/* ---- sending ---- */

static void a_frame_is_sent_as_it_lies_in_memory(void **state)
{
    struct rig *rig = *state;
    memset(rig->memory, 9, 100);
    post_frame(1, 100);
    assert_true(engine_next_frame(&engine, frame, &length));
    assert_int_equal(length, 100);
    assert_memory_equal(frame, rig->memory, 100);
    ends_nothing(rig);
    assert_true(engine_next_frame(&engine, frame, &length)); /* had no room; the same again */
    engine_frame_sent(&engine);
    ends(rig, 1, IBV_WC_SUCCESS);
    assert_false(sends_next());
}

static void frames_too_short_or_too_long_break_the_send_side(void **state)
{
    static const uint32_t sizes[] = {0, ETHER_HEADER - 1, RAW_FRAME_MAX + 1};
    struct rig *rig = *state;
    for (unsigned i = 0; i < 3; i++) {
        post_frame(1, sizes[i]);
        post_frame(2, 60);
        assert_false(sends_next());
        ends(rig, 1, IBV_WC_LOC_LEN_ERR);
        ends(rig, 2, IBV_WC_WR_FLUSH_ERR);
        post_frame(3, 60);
        ends(rig, 3, IBV_WC_WR_FLUSH_ERR);
        engine_resume(&engine);
        post_frame(4, ETHER_HEADER);
        assert_true(sends_next());
        ends(rig, 4, IBV_WC_SUCCESS);
    }
    assert_int_equal(rig->failures, 3);
}

static void a_bad_local_key_is_found(void **state)
{
    struct rig *rig = *state;
    reserve(1, IBV_WR_SEND, 60)->sge[0].lkey = 5;
    send_queue_commit(engine_queue(&engine));
    assert_false(sends_next());
    ends(rig, 1, IBV_WC_LOC_PROT_ERR);
}

static void checksums_are_written_where_they_are_asked_for(void **state)
{
    struct rig *rig = *state;
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 3, 4);
    frame_data(&maker, 30);
    frame_finish(&maker);
    memcpy(rig->memory, maker.bytes, maker.length);
    for (int asked = 0; asked < 2; asked++) {
        struct ether ether;
        reserve(1, IBV_WR_SEND, maker.length)->flags = asked ? IBV_SEND_IP_CSUM : 0;
        send_queue_commit(engine_queue(&engine));
        assert_true(sends_next());
        ether_parse(&ether, frame, length);
        assert_int_equal(ether_checksums_hold(&ether), asked);
    }
}

static void draining_lets_work_wait(void **state)
{
    struct rig *rig = *state;
    engine_drain(&engine, true);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    post_frame(1, 60);
    assert_false(sends_next());
    engine_drain(&engine, false);
    assert_true(sends_next());
    raises_nothing(rig);
}

/* ---- segmentation ---- */

static struct frame_maker tcp_header(bool six)
{
    static const uint8_t address[16] = {1};
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, six ? ETHER_TYPE_IPV6 : ETHER_TYPE_IPV4);
    six ? (void)frame_ipv6(&maker, TCP, address, address) : bytes_put16(frame_ipv4(&maker, TCP, 3, 4) + 4, 0xffff);
    uint8_t *tcp = frame_tcp(&maker, 5, 6);
    bytes_put32(tcp + 4, 0xfffffff0);
    tcp[13] = 0x99; /* CWR, ACK, PSH, FIN */
    return maker;
}

static void post_tso(uint64_t id, const struct frame_maker *header, uint32_t bytes, uint32_t mss)
{
    struct send_wqe *work = reserve(id, IBV_WR_TSO, bytes);
    work->remote_address = 64;
    work->compare_or_add = header->length;
    work->swap = mss;
    memcpy(raw_tso_header(work), header->bytes, header->length);
    send_queue_commit(engine_queue(&engine));
}

static void large_data_goes_out_in_segments(void **state)
{
    struct rig *rig = *state;
    struct ether ether;
    for (int six = 0; six < 2; six++) {
        struct frame_maker header = tcp_header(six);
        for (int i = 0; i < 250; i++)
            rig->memory[i] = (uint8_t)i;
        post_tso(1, &header, 250, 100);
        for (uint32_t segment = 0; segment < 3; segment++) {
            uint32_t bytes = segment == 2 ? 50 : 100;
            ends_nothing(rig);
            assert_true(sends_next());
            assert_int_equal(length, header.length + bytes);
            assert_memory_equal(frame + header.length, rig->memory + segment * 100, bytes);
            ether_parse(&ether, frame, length);
            const uint8_t *ip = ether_header(&ether, &ether.layers[1]), *tcp = ether_header(&ether, &ether.layers[2]);
            assert_int_equal(ether.layers[2].end, length);
            assert_int_equal(bytes_get32(tcp + 4), 0xfffffff0 + segment * 100);
            assert_int_equal(tcp[13], 0x10 | (segment ? 0 : 0x80) | (segment == 2 ? 0x09 : 0));
            if (!six) {
                assert_int_equal(bytes_get16(ip + 4), (uint16_t)(0xffff + segment));
                assert_true(ether_checksums_hold(&ether));
            }
        }
        ends(rig, 1, IBV_WC_SUCCESS);
        assert_false(sends_next());
    }
}

static void a_header_that_cannot_be_segmented_is_refused(void **state)
{
    struct rig *rig = *state;
    struct frame_maker good = tcp_header(false), longer = good, shorter = good, fragment = good, other = {0};
    longer.length++;
    shorter.length--;
    fragment.bytes[ETHER_HEADER + 6] |= 0x20; /* more fragments */
    frame_ethernet(&other, 1, 2, 0x1234);
    frame_data(&other, 40);
    struct frame_maker *bad[] = {&longer, &shorter, &fragment, &other};
    for (unsigned i = 0; i < 4; i++) {
        post_tso(i, bad[i], 100, 50);
        assert_false(sends_next());
        ends(rig, i, IBV_WC_LOC_QP_OP_ERR);
        engine_resume(&engine);
    }
    post_tso(7, &good, 100, 0);
    assert_false(sends_next());
    ends(rig, 7, IBV_WC_LOC_QP_OP_ERR);
}

/* The inner headers would have to be repeated, too. */
static void a_tunnel_cannot_be_segmented(void **state)
{
    struct rig *rig = *state;
    for (int tunnel = 0; tunnel < 2; tunnel++) {
        struct frame_maker header = {0}, inner = {0};
        frame_ethernet(&header, 1, 2, ETHER_TYPE_IPV4);
        frame_ipv4(&header, UDP, 3, 4);
        frame_udp(&header, 5, tunnel ? 4789 : 4788); /* VXLAN's port */
        frame_word(&inner, 0x08000000);
        frame_word(&inner, 0x123456 << 8);
        frame_ethernet(&inner, 3, 4, ETHER_TYPE_IPV4);
        frame_ipv4(&inner, TCP, 3, 4);
        frame_tcp(&inner, 7, 8);
        memcpy(rig->memory, inner.bytes, inner.length);
        post_tso(1, &header, 200, 200);
        assert_int_equal(sends_next(), !tunnel);
        ends(rig, 1, tunnel ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_SUCCESS);
        engine_resume(&engine);
    }
}

static void what_has_begun_is_finished_while_draining(void **state)
{
    struct rig *rig = *state;
    struct frame_maker header = tcp_header(false);
    post_tso(1, &header, 200, 100);
    post_tso(2, &header, 200, 100);
    assert_true(sends_next());
    engine_drain(&engine, true);
    raises_nothing(rig);
    assert_true(sends_next());
    ends(rig, 1, IBV_WC_SUCCESS);
    raises(rig, IBV_EVENT_SQ_DRAINED);
    assert_false(sends_next());
}

/* ---- receiving ---- */

static void a_frame_arrives_whole(void **state)
{
    struct rig *rig = *state;
    struct frame_maker maker = tagged_frame();
    uint64_t receive = post_receive(rig, 200);
    frame_arrives(&maker);
    const struct recv_cqe *arrival = delivers(rig, receive, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, maker.length);
    assert_int_equal(arrival->flow_tag, 77);
    assert_int_equal(arrival->cvlan, 0);
    assert_int_equal(arrival->flags, IBV_WC_IP_CSUM_OK);
    assert_memory_equal(rig->memory + 0x8000, maker.bytes, maker.length);
}

static void a_tag_is_stripped_into_the_completion(void **state)
{
    struct rig *rig = *state;
    struct frame_maker maker = tagged_frame();
    uint64_t receive = post_receive(rig, 200);
    engine_configure(&engine, &(struct engine_settings){.options = RAW_STRIP_VLAN});
    frame_arrives(&maker);
    const struct recv_cqe *arrival = delivers(rig, receive, IBV_WC_SUCCESS);
    assert_int_equal(arrival->length, maker.length - 4);
    assert_int_equal(arrival->cvlan, 0x6005);
    assert_memory_equal(rig->memory + 0x8000, maker.bytes, 12);
    assert_memory_equal(rig->memory + 0x800c, maker.bytes + 16, maker.length - 16);
}

static void the_frame_check_sequence_is_stored_behind_the_frame(void **state)
{
    struct rig *rig = *state;
    struct frame_maker maker = tagged_frame();
    uint8_t check[ETHER_FCS];
    uint64_t receive = post_receive(rig, 200);
    engine_configure(&engine, &(struct engine_settings){.options = RAW_STORE_FRAME_CHECK});
    frame_arrives(&maker);
    assert_int_equal(delivers(rig, receive, IBV_WC_SUCCESS)->length, maker.length + ETHER_FCS);
    ether_frame_check(maker.bytes, maker.length, check);
    assert_memory_equal(rig->memory + 0x8000 + maker.length, check, ETHER_FCS);
}

static void frames_without_room_are_dropped(void **state)
{
    struct rig *rig = *state;
    struct frame_maker maker = tagged_frame();
    frame_arrives(&maker);
    drops(rig, REASON_PACKET_NO_RECEIVE);
    uint64_t receive = post_receive(rig, maker.length - 1);
    frame_arrives(&maker);
    drops(rig, REASON_PACKET_TOO_LONG);
    delivers_nothing(rig);
    maker.length--;
    frame_arrives(&maker);
    delivers(rig, receive, IBV_WC_SUCCESS);
    assert_int_equal(rig->failures, 0);
}

static void a_receive_without_memory_is_an_error(void **state)
{
    struct rig *rig = *state;
    struct frame_maker maker = tagged_frame();
    uint64_t receive = rig_post_receive(rig, 0, 200, KEY_NOTHING);
    post_frame(1, 60);
    frame_arrives(&maker);
    delivers(rig, receive, IBV_WC_LOC_PROT_ERR);
    ends(rig, 1, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(rig->failures, 1);
    frame_arrives(&maker);
    drops(rig, REASON_PACKET_QP_STATE);
}

static void a_reset_forgets_everything_but_the_options(void **state)
{
    struct rig *rig = *state;
    engine_configure(&engine, &(struct engine_settings){.options = RAW_STRIP_VLAN});
    post_frame(1, 60);
    engine_reset(&engine);
    ends_nothing(rig);
    assert_false(engine_has_output(&engine));
    assert_int_equal(engine_settings_of(&engine)->options, RAW_STRIP_VLAN);
    struct frame_maker maker = tagged_frame();
    frame_arrives(&maker);
    drops(rig, REASON_PACKET_QP_STATE);
}

#define raw_script(test) cmocka_unit_test_setup_teardown(test, set_up, script_tear_down)

TESTS_OF(raw_script, a_frame_is_sent_as_it_lies_in_memory, frames_too_short_or_too_long_break_the_send_side,
         a_bad_local_key_is_found, checksums_are_written_where_they_are_asked_for, draining_lets_work_wait,
         large_data_goes_out_in_segments, a_header_that_cannot_be_segmented_is_refused, a_tunnel_cannot_be_segmented,
         what_has_begun_is_finished_while_draining, a_frame_arrives_whole, a_tag_is_stripped_into_the_completion,
         the_frame_check_sequence_is_stored_behind_the_frame, frames_without_room_are_dropped,
         a_receive_without_memory_is_an_error, a_reset_forgets_everything_but_the_options)
