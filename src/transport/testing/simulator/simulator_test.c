/* Many seeds of the simulator: SIMULATOR_SEEDS of them, from SIMULATOR_FIRST on. SIMULATOR_SEED runs one and shows all
 * that happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_scale.h"
#include "transport/testing/simulator/simulator.h"

enum { SEEDS = 1000, SCALED_SEEDS = 200, REPLAYS = 25 };

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void add(struct statistics *sum, const struct statistics *more)
{
    sum->events += more->events;
    sum->packets += more->packets;
    sum->lost += more->lost;
    sum->duplicated += more->duplicated;
    sum->received += more->received;
    sum->lent += more->lent;
    sum->along += more->along;
    sum->changed += more->changed;
    for (unsigned i = 0; i < IBV_WC_GENERAL_ERR; i++)
        sum->ended[i] += more->ended[i];
}

/* The runs were about something. */
static void check_variety(const struct statistics *sum)
{
    static const enum ibv_wc_status seen[] = {
        IBV_WC_SUCCESS,      IBV_WC_LOC_LEN_ERR,     IBV_WC_LOC_PROT_ERR,
        IBV_WC_WR_FLUSH_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR,
        IBV_WC_REM_OP_ERR,   IBV_WC_RETRY_EXC_ERR,   IBV_WC_RNR_RETRY_EXC_ERR,
    };
    for (unsigned i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
        print_message("%llu works ended with status %d\n", (unsigned long long)sum->ended[seen[i]], seen[i]);
        assert_true(sum->ended[seen[i]] > 0);
    }
    print_message("%llu messages, %llu packets, %llu lost, %llu doubled, position lent %llu times\n",
                  (unsigned long long)sum->received, (unsigned long long)sum->packets, (unsigned long long)sum->lost,
                  (unsigned long long)sum->duplicated, (unsigned long long)sum->lent);
    print_message("%llu ACKs went along with a request, settings changed %llu times under begun references\n",
                  (unsigned long long)sum->along, (unsigned long long)sum->changed);
    assert_true(sum->lost && sum->duplicated && sum->received && sum->lent && sum->along && sum->changed);
}

static void run_seeds(uint64_t seeds, struct statistics *sum)
{
    struct simulator_report report;
    uint64_t first = number_from("SIMULATOR_FIRST", 1), failed = 0;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        simulator_run(seed, NULL, &report);
        add(sum, &report.statistics);
        if (!report.complaint[0])
            continue;
        failed++;
        print_error("seed %llu: %s\n", (unsigned long long)seed, report.complaint);
    }
    assert_int_equal(failed, 0);
}

static void every_seed_satisfies_the_oracle(void **state)
{
    struct statistics sum = {0};
    uint64_t seeds = number_from("SIMULATOR_SEEDS", SEEDS);
    run_seeds(seeds, &sum);
    if (seeds >= SEEDS)
        check_variety(&sum);
}

/* SOFTVERBS_TIME_SCALE: judgements by the time that has passed use the shortened one. */
static void so_it_does_in_scaled_time(void **state)
{
    struct statistics sum = {0};
    time_scale_set(TIME_SCALE_WHOLE / 100);
    run_seeds(number_from("SIMULATOR_SEEDS", SCALED_SEEDS), &sum);
    assert_true(sum.ended[IBV_WC_RETRY_EXC_ERR] && sum.ended[IBV_WC_RNR_RETRY_EXC_ERR]);
}

static int give_time_back(void **state)
{
    time_scale_set(TIME_SCALE_WHOLE);
    return 0;
}

static void a_seed_replays_exactly(void **state)
{
    struct simulator_report first, second;
    for (uint64_t seed = 1; seed <= REPLAYS; seed++) {
        simulator_run(seed, NULL, &first);
        simulator_run(seed, NULL, &second);
        assert_true(first.trace == second.trace);
        assert_memory_equal(&first.statistics, &second.statistics, sizeof(first.statistics));
        simulator_run(seed + 1, NULL, &second);
        assert_true(first.trace != second.trace);
    }
}

static int show(uint64_t seed)
{
    struct simulator_report report;
    simulator_run(seed, stdout, &report);
    printf("seed %llu: %s\n", (unsigned long long)seed, report.complaint[0] ? report.complaint : "fine");
    return report.complaint[0] != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_satisfies_the_oracle),
        cmocka_unit_test_teardown(so_it_does_in_scaled_time, give_time_back),
        cmocka_unit_test(a_seed_replays_exactly),
    };
    uint64_t seed = number_from("SIMULATOR_SEED", 0);
    return seed ? show(seed) : cmocka_run_group_tests(tests, NULL, NULL);
}
