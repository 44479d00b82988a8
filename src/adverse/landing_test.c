#include "adverse/landing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/testing/group.h"

static struct adverse_source source;
static struct landings landings;
static uint8_t memory[256];

static int begin(void **state)
{
    landings_begin(&landings);
    memset(memory, 0, sizeof memory);
    return 0;
}

static int end(void **state)
{
    landings_drop(&landings);
    atomic_store(&adverse_on, 0);
    return 0;
}

/* Keeps `length` bytes of this value for the memory at this offset. */
static void keep(size_t at, size_t length, uint8_t value, nanos due)
{
    uint8_t bytes[sizeof memory];
    struct iovec from = {bytes, length}, to = {memory + at, length};
    memset(bytes, value, length);
    const struct payload payload = {.length = (uint32_t)length, .count = 1, .pieces = &from};
    assert_true(landings_keep(&landings, &payload, 0, &to, due));
}

/* A reader on a busy machine runs only when the writer sleeps. */
static void pauses_between_pieces_give_the_processor_away(void **state)
{
    enum { TURNS = 32 };
    struct rusage before, after;
    uint8_t bytes[sizeof memory] = {1};
    struct iovec from = {bytes, sizeof bytes}, to = {memory, sizeof memory};
    const struct payload payload = {.length = sizeof bytes, .count = 1, .pieces = &from};
    assert_true(adverse_begin("only=pieces"));
    getrusage(RUSAGE_THREAD, &before);
    for (unsigned i = 0; i < TURNS; i++)
        assert_true(landing_scatter(&payload, 0, &to, 1, &source));
    getrusage(RUSAGE_THREAD, &after);
    assert_true(after.ru_nvcsw > before.ru_nvcsw);
    assert_memory_equal(memory, bytes, sizeof bytes);
}

static void what_is_kept_lands_when_it_is_due(void **state)
{
    keep(0, 8, 1, 100);
    assert_int_equal(landings_due(&landings), 100);
    landings_land(&landings, &source, 99);
    assert_int_equal(memory[0], 0);
    landings_land(&landings, &source, 100);
    assert_int_equal(memory[0], 1);
    assert_true(landings_due(&landings) == NANOS_NEVER);
}

static void nothing_overtakes_what_came_before(void **state)
{
    keep(0, 8, 1, 100);
    keep(8, 8, 2, 50);
    landings_land(&landings, &source, 50);
    assert_int_equal(memory[8], 0);
    landings_land(&landings, &source, 100);
    assert_int_equal(memory[8], 2);
}

static void with_write_order_it_does_but_never_on_the_same_bytes(void **state)
{
    atomic_store(&adverse_on, 1u << ADVERSE_WRITE_ORDER);
    keep(0, 8, 1, 100);
    keep(8, 8, 2, 50);
    keep(4, 8, 3, 60);
    landings_land(&landings, &source, 50);
    assert_int_equal(memory[8], 2);
    assert_int_equal(memory[0], 0);
    landings_land(&landings, &source, NANOS_NEVER - 1);
    assert_int_equal(memory[0], 1);
    assert_int_equal(memory[4], 3);
    assert_int_equal(memory[11], 3);
    assert_int_equal(memory[12], 2);
}

static void a_scattered_payload_is_whole_at_the_end(void **state)
{
    uint8_t bytes[200];
    for (size_t length = 0; length < sizeof bytes; length++) {
        struct iovec from = {bytes, length}, to[2] = {{memory, length / 3}, {memory + 100, length - length / 3}};
        const struct payload payload = {.length = (uint32_t)length, .count = 1, .pieces = &from};
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)(i + length);
        assert_true(landing_scatter(&payload, 0, to, 2, &source));
        assert_memory_equal(memory, bytes, length / 3);
        assert_memory_equal(memory + 100, bytes + length / 3, length - length / 3);
    }
}

static void what_is_dropped_never_lands(void **state)
{
    keep(0, 8, 1, 100);
    landings_drop(&landings);
    landings_land(&landings, &source, NANOS_NEVER - 1);
    assert_int_equal(memory[0], 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

TESTS_OF(CASE, what_is_kept_lands_when_it_is_due,
               nothing_overtakes_what_came_before,
               with_write_order_it_does_but_never_on_the_same_bytes,
               a_scattered_payload_is_whole_at_the_end,
               pauses_between_pieces_give_the_processor_away,
               what_is_dropped_never_lands)
