#include "wire/foreign/foreign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A device whose copies happen when they are waited for, as late as they may. Its memory has addresses that are nothing
 * here. */
enum { MEMORY = 4 << 20, STAGE = 64 << 10, COPIES = 64, PACKET = 4096, BASE = 1 << 20 };

static struct {
    uint8_t bytes[MEMORY];
    struct copy {
        uint8_t *to;
        const uint8_t *from;
        size_t length;
    } begun[COPIES];
    unsigned begun_count, out, in;    /* copies that have not happened; all copies */
    unsigned refused_out, refused_in; /* how many are refused */
    unsigned fences;
    bool fails;     /* the next fence */
    size_t region;  /* the memory is regions of `region` bytes; 0: one region */
    size_t missing; /* the memory is missing from this offset on; 0: it is complete */
} device;

static uint8_t stage[STAGE], landings[FOREIGN_LANDINGS * FOREIGN_PIECE], aheads[FOREIGN_AHEAD * FOREIGN_PIECE];
static uint8_t pattern[MEMORY];

static uint8_t *at(size_t offset)
{
    return (uint8_t *)BASE + offset;
}

static bool begin(uint8_t *to, const uint8_t *from, size_t length, unsigned *refused, unsigned *count)
{
    if (*refused) {
        --*refused;
        return false;
    }
    ++*count;
    assert_true(device.begun_count < COPIES);
    device.begun[device.begun_count++] = (struct copy){to, from, length};
    return true;
}

static bool copy_out(void *of, void *to, const void *from, size_t length)
{
    memset(to, 0xdb, length);
    return begin(to, device.bytes + ((uintptr_t)from - BASE), length, &device.refused_out, &device.out);
}

static bool copy_in(void *of, void *to, const void *from, size_t length)
{
    return begin(device.bytes + ((uintptr_t)to - BASE), from, length, &device.refused_in, &device.in);
}

static bool fence(void *of)
{
    bool fine = !device.fails;
    device.fences++;
    for (unsigned i = 0; i < device.begun_count && fine; i++)
        memcpy(device.begun[i].to, device.begun[i].from, device.begun[i].length);
    device.begun_count = 0;
    device.fails = false;
    return fine;
}

static bool is_there(void *of, const void *from, size_t length)
{
    return !device.missing || (uintptr_t)from - BASE + length <= device.missing;
}

static const struct foreign *find(const void *from, size_t *length)
{
    static const struct foreign_operations operations = {copy_out, copy_in, fence, is_there};
    static const struct foreign foreign = {&operations, NULL, stage, STAGE, landings, aheads};
    if ((uintptr_t)from - BASE >= MEMORY)
        return NULL;
    size_t region = device.region ? device.region : MEMORY;
    *length = region - ((uintptr_t)from - BASE) % region;
    return &foreign;
}

static int prepare(void **state)
{
    foreign_settle();
    memset(&device, 0, sizeof device);
    for (size_t i = 0; i < MEMORY; i++)
        pattern[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16) * 29 + 1);
    foreign_find_by(find);
    return 0;
}

static bool copy(uint8_t *to, const uint8_t *from, size_t length, unsigned last)
{
    const struct iovec piece = {(void *)from, length}, there = {to, length};
    return foreign_payload_copy(&(struct payload){.length = (uint32_t)length, .count = 1, .pieces = &piece}, 0, &there,
                                1, last);
}

/* A packet of a message, to its place in the memory from the same place of the pattern. */
static bool land(bool *lost, size_t offset, bool ends)
{
    foreign_gather(lost, ends);
    bool landed = copy(at(offset), pattern + offset, PACKET, 8);
    foreign_gather(NULL, false);
    return landed;
}

static void packets_of_a_message_land_together(void **state)
{
    bool lost = false;
    for (size_t offset = 0; offset < 16 * PACKET; offset += PACKET)
        assert_true(land(&lost, offset, offset == 15 * PACKET));
    assert_int_equal(device.in, 2); /* the last word by itself */
    assert_memory_equal(device.bytes, pattern, 16 * PACKET);
    assert_false(foreign_waits() || lost);
}

static void messages_that_come_at_once_land_each_together(void **state)
{
    bool lost[FOREIGN_LANES] = {false};
    for (size_t packet = 0; packet < 16; packet++)
        for (unsigned i = 0; i < FOREIGN_LANES; i++)
            assert_true(land(&lost[i], i * MEMORY / 8 + packet * PACKET, packet == 15));
    assert_int_equal(device.in, 2 * FOREIGN_LANES);
    for (unsigned i = 0; i < FOREIGN_LANES; i++)
        assert_memory_equal(device.bytes + i * MEMORY / 8, pattern + i * MEMORY / 8, 16 * PACKET);
    assert_false(foreign_waits());
}

static void more_messages_than_lanes_are_right(void **state)
{
    enum { MESSAGES = 2 * FOREIGN_LANES + 1 };
    bool lost[MESSAGES] = {false};
    for (size_t packet = 0; packet < 4; packet++)
        for (unsigned i = 0; i < MESSAGES; i++)
            assert_true(land(&lost[i], i * MEMORY / 16 + packet * PACKET, packet == 3));
    for (unsigned i = 0; i < MESSAGES; i++)
        assert_memory_equal(device.bytes + i * MEMORY / 16, pattern + i * MEMORY / 16, 4 * PACKET);
}

static void long_messages_wait_for_their_first_copies_only(void **state)
{
    bool lost = false;
    for (size_t offset = 0; offset < MEMORY; offset += PACKET)
        assert_true(land(&lost, offset, offset == MEMORY - PACKET));
    assert_int_equal(device.in, MEMORY / FOREIGN_PIECE + 1);
    assert_memory_equal(device.bytes, pattern, MEMORY);
}

static void a_refused_landing_is_its_own_messages(void **state)
{
    bool lost[2] = {false};
    assert_true(land(&lost[0], 0, false) && land(&lost[1], MEMORY / 2, false));
    device.refused_in = 1;
    foreign_settle_message(&lost[0]);
    assert_true(lost[0]);
    assert_true(land(&lost[1], MEMORY / 2 + PACKET, true));
    assert_false(lost[1]);
    assert_memory_equal(device.bytes + MEMORY / 2, pattern + MEMORY / 2, 2 * PACKET);
}

/* The driver does not say which. */
static void a_failed_fence_is_all_flying_messages(void **state)
{
    bool lost[2] = {false};
    assert_true(land(&lost[0], 0, false) && land(&lost[1], MEMORY / 2, false));
    device.fails = true;
    assert_false(foreign_settle());
    assert_true(lost[0] && lost[1]);
}

static void a_settled_message_leaves_the_others_waiting(void **state)
{
    bool lost[2] = {false};
    assert_true(land(&lost[0], 0, false) && land(&lost[1], MEMORY / 2, false));
    foreign_settle_message(&lost[0]);
    assert_true(foreign_waits());
    assert_int_equal(device.in, 1);
    assert_true(foreign_settle());
    assert_int_equal(device.in, 2);
}

/* The places are apart, as in a receive with several elements. */
static void packets_to_places_apart_land_each_there(void **state)
{
    static const size_t offsets[] = {0, MEMORY / 2, MEMORY / 2 + PACKET, MEMORY / 4};
    bool lost = false;
    for (unsigned i = 0; i < 4; i++)
        assert_true(land(&lost, offsets[i], i == 3));
    for (unsigned i = 0; i < 4; i++)
        assert_memory_equal(device.bytes + offsets[i], pattern + offsets[i], PACKET);
    assert_int_equal(device.in, 4); /* two of them together, and the last word */
    assert_false(foreign_waits() || lost);
}

static void what_waited_for_another_place_and_is_refused_is_lost(void **state)
{
    for (unsigned ends = 0; ends < 2; ends++) {
        bool lost = false;
        assert_true(land(&lost, 0, false));
        device.refused_in = 1;
        assert_false(land(&lost, MEMORY / 2, ends));
        foreign_settle_message(&lost);
        assert_true(lost);
        foreign_settle();
    }
}

/* A wait costs as much as a copy. */
static void what_has_landed_is_not_waited_for_again(void **state)
{
    bool lost[2] = {false};
    assert_true(land(&lost[0], 0, false) && land(&lost[1], MEMORY / 2, false));
    assert_true(foreign_settle());
    assert_int_equal(device.fences, 1); /* one for both */
    assert_true(foreign_settle());
    assert_int_equal(device.fences, 1);
}

static const char first_sender, second_sender;

/* A packet of an element that begins at the device's start; true: its bytes are right. */
static bool send_from(const void *sender, size_t offset, size_t element)
{
    uint8_t packet[PACKET];
    foreign_send(sender, at(0), element);
    return copy(packet, at(offset), PACKET, 0) && !memcmp(packet, device.bytes + offset, PACKET);
}

static void fill(uint8_t seed)
{
    for (size_t i = 0; i < MEMORY; i++)
        device.bytes[i] = (uint8_t)(pattern[i] + seed);
}

static void an_element_is_read_in_long_pieces(void **state)
{
    fill(0);
    for (size_t offset = 0; offset < MEMORY; offset += PACKET)
        assert_true(send_from(&first_sender, offset, MEMORY));
    assert_int_equal(device.out, 2 + (MEMORY - (192 << 10) + FOREIGN_PIECE - 1) / FOREIGN_PIECE);
}

static void what_is_sent_again_is_read_already(void **state)
{
    fill(0);
    for (size_t offset = 0; offset < MEMORY / 2; offset += PACKET)
        assert_true(send_from(&first_sender, offset, MEMORY));
    unsigned copies = device.out;
    for (size_t back = PACKET; back < 400 << 10; back += 3 * PACKET)
        for (size_t offset = MEMORY / 2 - back; offset < MEMORY / 2; offset += PACKET)
            assert_true(send_from(&first_sender, offset, MEMORY));
    assert_int_equal(device.out, copies);
    for (size_t offset = MEMORY / 2; offset < MEMORY; offset += PACKET)
        assert_true(send_from(&first_sender, offset, MEMORY));
}

/* The program may have changed them between two works. */
static void the_start_of_an_element_is_read_anew(void **state)
{
    for (uint8_t seed = 0; seed < 3; seed++) {
        fill(seed);
        for (size_t offset = 0; offset < (size_t)(2 + seed) * PACKET; offset += PACKET)
            assert_true(send_from(&first_sender, offset, MEMORY));
    }
}

static void senders_of_one_element_do_not_disturb_each_other(void **state)
{
    fill(0);
    for (size_t offset = 0; offset < MEMORY / 2; offset += PACKET)
        assert_true(send_from(&first_sender, MEMORY / 2 + offset, MEMORY) && send_from(&second_sender, offset, MEMORY));
    assert_true(device.out <= 2 * (3 + MEMORY / 2 / FOREIGN_PIECE));
}

static void what_was_refused_is_not_sent(void **state)
{
    for (unsigned refused = 1; refused < 4; refused++) {
        fill((uint8_t)(2 * refused));
        assert_true(send_from(&first_sender, 0, MEMORY) && send_from(&first_sender, PACKET, MEMORY));
        fill((uint8_t)(2 * refused + 1));
        device.refused_out = refused;
        bool sent = send_from(&first_sender, 0, MEMORY);
        device.refused_out = 0;
        assert_true(sent || refused > 1);
        assert_true(send_from(&first_sender, 0, MEMORY) && send_from(&first_sender, PACKET, MEMORY));
    }
}

/* The bytes are asked for before they are read, as for a frame whose fate is drawn. */
static void bytes_that_are_there_are_read_once(void **state)
{
    fill(0);
    for (uint8_t seed = 0; seed < 2; seed++) {
        fill(seed);
        for (size_t offset = 0; offset < MEMORY / 2; offset += PACKET) {
            foreign_send(&first_sender, at(0), MEMORY);
            assert_true(foreign_is_there(&(struct iovec){at(offset), PACKET}));
            assert_true(send_from(&first_sender, offset, MEMORY));
        }
        foreign_settle();
    }
    assert_true(device.out <= 2 * (3 + MEMORY / 2 / FOREIGN_PIECE));
}

/* If a packet has several elements, only the last one is named; another work may begin with it. */
static void bytes_without_a_name_are_read_anew(void **state)
{
    uint8_t packet[PACKET];
    fill(0);
    assert_true(send_from(&first_sender, 0, MEMORY) && send_from(&first_sender, PACKET, MEMORY));
    fill(1);
    assert_true(copy(packet, at(0), PACKET, 0) && !memcmp(packet, device.bytes, PACKET));
    assert_true(send_from(&first_sender, PACKET, MEMORY) && send_from(&first_sender, 2 * PACKET, MEMORY));
}

/* An element of one packet has no lane: another sender keeps its lane. */
static void an_element_of_one_packet_disturbs_nobody(void **state)
{
    fill(0);
    assert_true(send_from(&first_sender, 0, MEMORY) && send_from(&first_sender, PACKET, MEMORY));
    unsigned copies = device.out;
    for (unsigned i = 0; i < FOREIGN_LANES; i++)
        assert_true(send_from(stage + i, 0, PACKET));
    assert_int_equal(device.out, copies + FOREIGN_LANES);
    assert_true(send_from(&first_sender, 2 * PACKET, MEMORY));
    assert_int_equal(device.out, copies + FOREIGN_LANES);
}

static void a_piece_is_there_when_each_region_of_it_is(void **state)
{
    struct iovec piece = {at(PACKET / 2), 2 * PACKET};
    device.region = PACKET;
    assert_true(foreign_is_there(&piece));
    device.missing = 2 * PACKET + PACKET / 2;
    assert_true(foreign_is_there(&piece));
    for (device.missing = PACKET / 2; device.missing < 2 * PACKET + PACKET / 2; device.missing += PACKET / 2)
        assert_false(foreign_is_there(&piece));
    device.missing = 0;
    assert_false(foreign_is_there(&(struct iovec){at(MEMORY - PACKET), 2 * PACKET})); /* the end of the device */
    assert_true(foreign_is_there(&(struct iovec){at(0), 0}));
}

static uint64_t *word_at(size_t offset)
{
    return (uint64_t *)(void *)(device.bytes + offset);
}

static void a_word_is_compared_and_swapped(void **state)
{
    uint64_t found = 0;
    *word_at(64) = 5;
    assert_true(foreign_compare_and_swap(at(64), 6, 7, &found));
    assert_int_equal(found, 5);
    assert_int_equal(*word_at(64), 5);
    assert_true(foreign_compare_and_swap(at(64), 5, 7, &found));
    assert_int_equal(found, 5);
    assert_int_equal(*word_at(64), 7);
    device.refused_out = 1;
    assert_false(foreign_compare_and_swap(at(64), 7, 8, &found));
    device.refused_in = 1;
    assert_false(foreign_compare_and_swap(at(64), 7, 8, &found));
    assert_int_equal(*word_at(64), 7);
}

static void a_word_is_fetched_and_added_to(void **state)
{
    uint64_t found = 0;
    *word_at(64) = 5;
    assert_true(foreign_fetch_and_add(at(64), 3, &found));
    assert_int_equal(found, 5);
    assert_int_equal(*word_at(64), 8);
    device.refused_out = 1;
    assert_false(foreign_fetch_and_add(at(64), 3, &found));
    device.refused_in = 1;
    assert_false(foreign_fetch_and_add(at(64), 3, &found));
    assert_int_equal(*word_at(64), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(packets_of_a_message_land_together, prepare),
        cmocka_unit_test_setup(messages_that_come_at_once_land_each_together, prepare),
        cmocka_unit_test_setup(more_messages_than_lanes_are_right, prepare),
        cmocka_unit_test_setup(long_messages_wait_for_their_first_copies_only, prepare),
        cmocka_unit_test_setup(a_refused_landing_is_its_own_messages, prepare),
        cmocka_unit_test_setup(a_failed_fence_is_all_flying_messages, prepare),
        cmocka_unit_test_setup(a_settled_message_leaves_the_others_waiting, prepare),
        cmocka_unit_test_setup(packets_to_places_apart_land_each_there, prepare),
        cmocka_unit_test_setup(what_waited_for_another_place_and_is_refused_is_lost, prepare),
        cmocka_unit_test_setup(what_has_landed_is_not_waited_for_again, prepare),
        cmocka_unit_test_setup(an_element_is_read_in_long_pieces, prepare),
        cmocka_unit_test_setup(what_is_sent_again_is_read_already, prepare),
        cmocka_unit_test_setup(the_start_of_an_element_is_read_anew, prepare),
        cmocka_unit_test_setup(senders_of_one_element_do_not_disturb_each_other, prepare),
        cmocka_unit_test_setup(what_was_refused_is_not_sent, prepare),
        cmocka_unit_test_setup(bytes_that_are_there_are_read_once, prepare),
        cmocka_unit_test_setup(bytes_without_a_name_are_read_anew, prepare),
        cmocka_unit_test_setup(an_element_of_one_packet_disturbs_nobody, prepare),
        cmocka_unit_test_setup(a_piece_is_there_when_each_region_of_it_is, prepare),
        cmocka_unit_test_setup(a_word_is_compared_and_swapped, prepare),
        cmocka_unit_test_setup(a_word_is_fetched_and_added_to, prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
