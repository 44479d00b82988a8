/* The changes of a device when the interface below it changes. */
#include "config/device_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <time.h>

#include "base/testing/group.h"
#include "config/gid.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

static union ibv_gid ipv4(uint8_t last)
{
    return gid_from_ipv4((uint8_t[4]){10, 0, 0, last});
}

/* An interface that is up and has the addresses 10.0.0.x. */
static struct interface interface_with(const uint8_t *last, unsigned count)
{
    struct interface interface = {.found = true, .up = true, .index = 7, .mtu = 1500, .address_count = count};
    memcpy(interface.mac, mac, sizeof mac);
    for (unsigned i = 0; i < count; i++)
        interface.addresses[i] = ipv4(last[i]);
    return interface;
}

static struct device_state follow(const struct device_state *before, const uint8_t *last, unsigned count)
{
    struct interface interface = interface_with(last, count);
    return device_state_follow(before, &interface);
}

static void assert_at(const struct device_state *state, unsigned place, uint8_t last)
{
    union ibv_gid gid = ipv4(last);
    assert_int_equal(device_state_find(state, &gid), place);
    assert_true(device_state_has(state, place));
}

static void the_first_state_has_the_link_local_gid_and_the_addresses_in_order(void **unused)
{
    static const struct device_state nothing;
    struct device_state state = follow(&nothing, (uint8_t[]){5, 6}, 2);
    static const uint8_t first[16] = {0xfe, 0x80, [11] = 0xff, 0xfe, 0, 0, 1};
    assert_memory_equal(state.gids[0].raw, first, sizeof first);
    assert_at(&state, 1, 5);
    assert_at(&state, 2, 6);
    assert_int_equal(state.gid_count, 3);
    assert_int_equal(state.mtu, 1024);
    assert_int_equal(state.interface, 7);
    assert_true(state.up);
}

static void a_gid_keeps_its_place_and_a_new_one_takes_the_first_that_is_free(void **unused)
{
    static const struct device_state nothing;
    struct device_state state = follow(&nothing, (uint8_t[]){5, 6, 7}, 3);
    state = follow(&state, (uint8_t[]){5, 7}, 2);
    assert_false(device_state_has(&state, 2));
    assert_int_equal(state.gid_count, 4);
    assert_at(&state, 3, 7);
    state = follow(&state, (uint8_t[]){9, 5, 7}, 3);
    assert_at(&state, 1, 5);
    assert_at(&state, 2, 9);
    assert_at(&state, 3, 7);
    state = follow(&state, (uint8_t[]){5}, 1);
    assert_int_equal(state.gid_count, 2);
}

static void places_before_the_first_stay_empty(void **unused)
{
    static const struct device_state nothing = {.first_gid = 2};
    struct device_state state = follow(&nothing, (uint8_t[]){5, 6}, 2);
    assert_false(device_state_has(&state, 0) || device_state_has(&state, 1));
    assert_int_equal(state.gids[2].raw[0], 0xfe);
    assert_at(&state, 3, 5);
    assert_at(&state, 4, 6);
    state = follow(&state, (uint8_t[]){7, 6}, 2);
    assert_at(&state, 3, 7);
    assert_false(device_state_has(&state, 0) || device_state_has(&state, 1));
    assert_int_equal(state.gid_count, 5);
}

static void what_finds_no_place_gets_one_as_soon_as_there_is_one(void **unused)
{
    static const struct device_state nothing;
    uint8_t last[GIDS + 1];
    for (uint8_t i = 0; i < sizeof last; i++)
        last[i] = (uint8_t)(i + 1);
    struct device_state state = follow(&nothing, last, GIDS + 1);
    union ibv_gid late = ipv4(GIDS);
    assert_int_equal(state.gid_count, GIDS);
    assert_int_equal(device_state_find(&state, &late), -1);
    state = follow(&state, last + 1, GIDS);
    assert_at(&state, 1, GIDS);
}

static void another_mac_is_another_link_local_gid(void **unused)
{
    static const struct device_state nothing;
    struct device_state state = follow(&nothing, (uint8_t[]){5}, 1);
    struct interface interface = interface_with((uint8_t[]){5}, 1);
    interface.mac[5] = 9;
    state = device_state_follow(&state, &interface);
    assert_int_equal(state.gids[0].raw[15], 9);
    assert_at(&state, 1, 5);
}

static void an_address_that_is_the_link_local_gid_is_there_once(void **unused)
{
    static const struct device_state nothing;
    struct interface interface = interface_with((uint8_t[]){5, 6}, 2);
    struct device_state state = device_state_follow(&nothing, &interface);
    interface.addresses[0] = state.gids[0];
    state = device_state_follow(&nothing, &interface);
    assert_int_equal(state.gid_count, 2);
    assert_at(&state, 1, 6);
}

static void without_an_interface_there_are_no_addresses_and_the_port_is_down(void **unused)
{
    static const struct device_state nothing;
    static const struct interface gone;
    struct device_state before = follow(&nothing, (uint8_t[]){5}, 1), state = device_state_follow(&before, &gone);
    assert_false(state.up);
    assert_int_equal(state.gid_count, 1);
    assert_int_equal(state.mtu, before.mtu);
    assert_int_equal(state.interface, 0);
    assert_memory_equal(&state.gids[0], &before.gids[0], sizeof state.gids[0]);
}

static void the_gid_of_zeros_is_nowhere(void **unused)
{
    static const struct device_state nothing;
    static const union ibv_gid zero;
    struct device_state state = follow(&nothing, (uint8_t[]){5, 6}, 2);
    state = follow(&state, (uint8_t[]){6}, 1);
    assert_int_equal(device_state_find(&state, &zero), -1);
}

static void a_state_stays_valid_and_the_same_one_is_kept_once(void **unused)
{
    static const struct device_state nothing;
    static struct device device;
    struct device_state one = follow(&nothing, (uint8_t[]){5}, 1), other = follow(&nothing, (uint8_t[]){6}, 1);
    unsigned changes = atomic_load(&device_changes);
    assert_true(device_state_publish(&device, &one));
    const struct device_state *first = device_now(&device);
    assert_true(device_state_publish(&device, &other));
    assert_int_equal(atomic_load(&device_changes), changes + 2);
    assert_true(device_state_equals(first, &one));
    assert_true(device_state_equals(device_now(&device), &other));
    assert_true(device_state_publish(&device, &one));
    assert_ptr_equal(device_now(&device), first);
}

static long clock_seconds;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    *time = (struct timespec){.tv_sec = clock_seconds};
    return 0;
}

/* Publishes this many states, all different and `seconds` apart; returns how many places of memory they had. */
static unsigned count_places(struct device *device, unsigned states, unsigned seconds)
{
    enum { SEEN_MOST = 8192 };
    static const struct device_state *seen[SEEN_MOST];
    unsigned count = 0;
    struct device_state state = {.gid_count = 1};
    for (unsigned i = 0; i < states; i++, clock_seconds += seconds) {
        state.mtu++;
        assert_true(device_state_publish(device, &state));
        const struct device_state *now = device_now(device);
        assert_true(device_state_equals(now, &state));
        unsigned k = 0;
        while (k < count && seen[k] != now)
            k++;
        if (k == count && count < SEEN_MOST)
            seen[count++] = now;
    }
    return count;
}

/* Hosts of the network can have the kernel make addresses, as many as they like. */
static void changes_for_ever_take_no_more_memory(void **unused)
{
    static struct device device;
    assert_in_range(count_places(&device, 2000, 61), 200, 256);
    assert_in_range(count_places(&device, 6000, 0), 256, 4096);
}

/* Until then it is as it was, for a reader that has it. */
static void a_state_is_not_overwritten_soon(void **unused)
{
    static struct device device;
    struct device_state state = {.gid_count = 1, .interface = 5};
    assert_true(device_state_publish(&device, &state));
    const struct device_state *first = device_now(&device);
    assert_in_range(count_places(&device, 4000, 0), 1, 4096);
    assert_int_equal(first->interface, 5);
}

static void the_mtu_of_verbs_fits_in_the_states(void **unused)
{
    static const struct {
        uint32_t bytes;
        enum ibv_mtu mtu;
    } rows[] = {{0, IBV_MTU_256},     {256, IBV_MTU_256},   {511, IBV_MTU_256},
                {1024, IBV_MTU_1024}, {4096, IBV_MTU_4096}, {9000, IBV_MTU_4096}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_state state = {.mtu = rows[i].bytes};
        assert_int_equal(device_state_mtu(&state), rows[i].mtu);
    }
}

TESTS(the_first_state_has_the_link_local_gid_and_the_addresses_in_order,
      a_gid_keeps_its_place_and_a_new_one_takes_the_first_that_is_free, places_before_the_first_stay_empty,
      what_finds_no_place_gets_one_as_soon_as_there_is_one, another_mac_is_another_link_local_gid,
      an_address_that_is_the_link_local_gid_is_there_once,
      without_an_interface_there_are_no_addresses_and_the_port_is_down, the_gid_of_zeros_is_nowhere,
      a_state_stays_valid_and_the_same_one_is_kept_once, changes_for_ever_take_no_more_memory,
      a_state_is_not_overwritten_soon, the_mtu_of_verbs_fits_in_the_states)
