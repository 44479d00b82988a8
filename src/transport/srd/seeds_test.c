/* Random work between three SRD engines over a network that loses, doubles, delays and overtakes: each message arrives
 * at most once and with its bytes, and all work ends as it should. In other tests ends fail, die, forget and lack
 * memory, or one of them lies.
 * SOFTVERBS_SRD_SEEDS is how many seeds are run, SOFTVERBS_SRD_FIRST the first of them; with files of the name
 * SOFTVERBS_SRD_KEPT a run goes on where one was interrupted (make srd-seeds). */
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "transport/testing/srd_world.h"

enum { SEEDS = 300, STEPS = 600 };

static void judge(const struct desk *desk, uint64_t seed, enum world_rule rule)
{
    const char *wrong = world_judge(desk, rule);
    if (wrong)
        fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
}

/* With some seeds the owners hold packets back, as the adverse adapter does. */
static void hold_some_back(struct desk *desk, uint64_t seed)
{
    for (unsigned node = 0; node < DESK_NODES; node++)
        desk->nodes[node].late = seed % 5 == node ? 300 : 0;
}

static void run_seed(uint64_t seed)
{
    struct desk *desk = desk_make(seed);
    hold_some_back(desk, seed);
    for (unsigned i = 0; i < STEPS; i++)
        world_step(desk, seed % 4);
    world_finish(desk);
    judge(desk, seed, WORLD_ENDS_WELL);
    desk_free(desk);
}

static void run_rough_seed(uint64_t seed)
{
    struct desk *desk = desk_make(seed);
    hold_some_back(desk, seed);
    for (unsigned i = 0; i < 3 * STEPS; i++) {
        world_step(desk, true);
        if (chance_hits(&desk->chance, 30))
            world_disturb(desk);
        if (seed % 8 == 0 && i == STEPS)
            for (unsigned node = 0; node < DESK_NODES; node++)
                desk->nodes[node].engine.srd.responder->count = desk->nodes[node].engine.srd.requester->flow_count =
                    SRD_PEERS;
    }
    world_heal(desk);
    world_finish(desk);
    judge(desk, seed, WORLD_FAILS);
    desk_free(desk);
}

static void run_lying_seed(uint64_t seed)
{
    struct desk *desk = desk_make(seed);
    desk->last_lies = true;
    for (unsigned i = 0; i < 3 * STEPS; i++) {
        world_step(desk, true);
        for (unsigned turn = 0; turn < 1u << seed % 8; turn++)
            world_lie(desk);
        while (desk->flying_count > DESK_FLYING / 2 && desk_deliver(desk)) /* a full network would lose the others' */
            ;
    }
    world_finish(desk);
    judge(desk, seed, WORLD_LIES);
    desk_free(desk);
}

/* The next seed of a long run that was interrupted, or the first one. */
static uint64_t first_seed(const char *path)
{
    const char *first = getenv("SOFTVERBS_SRD_FIRST");
    unsigned long long seed = first ? strtoull(first, NULL, 10) : 1;
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file && fscanf(file, "%llu", &seed) != 1)
        fail_msg("%s has no number", path);
    if (file)
        fclose(file);
    return seed;
}

static void keep_seed(const char *path, uint64_t next)
{
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%llu\n", (unsigned long long)next) < 0 || fclose(file))
        fail_msg("%s can't be written", path);
}

static void run_seeds(void (*run)(uint64_t), const char *name)
{
    enum { BETWEEN = 500 };
    const char *wanted = getenv("SOFTVERBS_SRD_SEEDS"), *kept = getenv("SOFTVERBS_SRD_KEPT");
    char path[512];
    snprintf(path, sizeof path, "%s.%s", kept ? kept : "", name);
    uint64_t seed = first_seed(kept ? path : NULL),
             end = first_seed(NULL) + (wanted ? strtoull(wanted, NULL, 10) : SEEDS);
    for (; seed < end; seed++) {
        run(seed);
        if (kept && ((seed + 1) % BETWEEN == 0 || seed + 1 == end))
            keep_seed(path, seed + 1);
    }
}

static void all_work_ends_once_over_a_network_that_loses_and_doubles(void **state)
{
    (void)state;
    run_seeds(run_seed, "network");
}

static void work_that_succeeds_was_done_once_whatever_else_fails(void **state)
{
    (void)state;
    run_seeds(run_rough_seed, "failures");
}

static void a_peer_that_lies_harms_its_own_work_alone(void **state)
{
    (void)state;
    run_seeds(run_lying_seed, "lies");
}

TESTS(a_peer_that_lies_harms_its_own_work_alone, all_work_ends_once_over_a_network_that_loses_and_doubles,
      work_that_succeeds_was_done_once_whatever_else_fails)
