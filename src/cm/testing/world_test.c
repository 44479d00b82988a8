/* Many seeds of the simulator: SIMULATOR_SEEDS of them, from SIMULATOR_FIRST on. SIMULATOR_SEED runs one and shows all
 * messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/time_scale.h"
#include "cm/testing/world.h"

enum { SEEDS = 600, SCALED_SEEDS = 100, REPLAYS = 10 };

static struct world world;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void run_seeds(uint64_t seeds)
{
    uint64_t first = number_from("SIMULATOR_FIRST", 1), failed = 0;
    unsigned long established = 0, rejected = 0, unreachable = 0, disconnected = 0, lost = 0, forged = 0;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        world_run(&world, seed, NULL);
        established += world.statistics.established;
        rejected += world.statistics.rejected;
        unreachable += world.statistics.unreachable;
        disconnected += world.statistics.disconnected;
        lost += world.statistics.lost;
        forged += world.statistics.forged;
        if (!world.complaint[0])
            continue;
        failed++;
        print_error("seed %llu: %s\n", (unsigned long long)seed, world.complaint);
    }
    print_message("%lu established, %lu rejected, %lu unreachable, %lu disconnected; %lu messages lost, %lu forged\n",
                  established, rejected, unreachable, disconnected, lost, forged);
    assert_int_equal(failed, 0);
    assert_true(seeds < SCALED_SEEDS || (established && rejected && unreachable && disconnected && lost && forged));
}

static void every_seed_satisfies_the_rules(void **state)
{
    run_seeds(number_from("SIMULATOR_SEEDS", SEEDS));
}

/* SOFTVERBS_TIME_SCALE. */
static void so_it_does_in_scaled_time(void **state)
{
    time_scale_set(TIME_SCALE_WHOLE / 100);
    run_seeds(number_from("SIMULATOR_SEEDS", SCALED_SEEDS));
}

static int give_time_back(void **state)
{
    time_scale_set(TIME_SCALE_WHOLE);
    return 0;
}

static void a_seed_replays_exactly(void **state)
{
    for (uint64_t seed = 1; seed <= REPLAYS; seed++) {
        world_run(&world, seed, NULL);
        uint64_t trace = world.trace;
        world_run(&world, seed, NULL);
        assert_true(world.trace == trace);
        world_run(&world, seed + 1, NULL);
        assert_true(world.trace != trace);
    }
}

static int show(uint64_t seed)
{
    world_run(&world, seed, stdout);
    printf("seed %llu: %s\n", (unsigned long long)seed, world.complaint[0] ? world.complaint : "fine");
    return world.complaint[0] != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_satisfies_the_rules),
        cmocka_unit_test_teardown(so_it_does_in_scaled_time, give_time_back),
        cmocka_unit_test(a_seed_replays_exactly),
    };
    uint64_t seed = number_from("SIMULATOR_SEED", 0);
    return seed ? show(seed) : cmocka_run_group_tests(tests, NULL, NULL);
}
