/* The order of a run by its seed, without processes. */
#include "sim/choose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { PROCESS = 2, OTHER = 3, STEPS = 2000, LATER = 1000000 };

static struct sim_run *run_of(uint64_t seed, enum sim_strategy strategy, unsigned threads)
{
    struct sim_run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    sim_begin(run, seed, strategy, 0);
    for (unsigned i = 0; i < threads; i++)
        assert_int_equal(sim_add(run, PROCESS, 0), i);
    return run;
}

static struct sim_thread *give(struct sim_run *run, unsigned to)
{
    assert_in_range(to, 0, SIM_THREADS - 1);
    run->current = to;
    run->threads[to].state = SIM_RUNNING;
    run->threads[to].deadline = SIM_NEVER;
    return &run->threads[to];
}

static void rest(struct sim_run *run, unsigned which, enum sim_wait wait, uint64_t deadline)
{
    struct sim_thread *thread = &run->threads[which];
    thread->state = SIM_WAITING;
    thread->wait = wait;
    thread->deadline = deadline;
    thread->seen = sim_count(run, wait);
    thread->since = run->now;
    thread->woken = thread->signalled = false;
}

/* Threads that look again and again, act and pass points: the hash of all decisions. */
static uint64_t walk(struct sim_run *run)
{
    unsigned here = sim_next(run);
    for (unsigned i = 0; i < STEPS; i++) {
        give(run, here);
        run->acts += i % 3 == 0;
        if (i % 2) {
            rest(run, here, SIM_SPINS, run->now + LATER);
            here = sim_next(run);
        } else {
            here = sim_at_point(run, here);
        }
    }
    return run->hash;
}

static uint64_t hash_of(uint64_t seed, enum sim_strategy strategy)
{
    struct sim_run *run = run_of(seed, strategy, 4);
    uint64_t hash = walk(run);
    free(run);
    return hash;
}

static void a_seed_gives_one_order_and_another_seed_another(void **state)
{
    for (int strategy = 0; strategy < SIM_STRATEGIES; strategy++) {
        assert_true(hash_of(7, (enum sim_strategy)strategy) == hash_of(7, (enum sim_strategy)strategy));
        assert_true(hash_of(7, (enum sim_strategy)strategy) != hash_of(8, (enum sim_strategy)strategy));
    }
    assert_true(hash_of(7, SIM_UNIFORM) != hash_of(7, SIM_PRIORITIES));
}

static void seeds_take_the_strategies_in_turn(void **state)
{
    for (unsigned seed = 0; seed < 6; seed++) {
        struct sim_run *run = run_of(seed, SIM_STRATEGIES, 1);
        assert_int_equal(run->plan.strategy, seed % SIM_STRATEGIES);
        assert_in_range(run->plan.every, 4, 1024);
        free(run);
    }
}

static void turns_that_were_written_down_give_the_same_order(void **state)
{
    for (int strategy = 0; strategy < SIM_STRATEGIES; strategy++) {
        struct sim_run *run = run_of(11, (enum sim_strategy)strategy, 4), *again = run_of(99, SIM_UNIFORM, 4);
        uint64_t hash = walk(run);
        assert_true(run->turns.count > 0);
        memcpy(again->turns.list, run->turns.list, sizeof run->turns.list);
        again->turns.count = run->turns.count;
        again->plan.replays = true;
        assert_true(walk(again) == hash);
        free(run);
        free(again);
    }
}

static void without_turns_each_thread_has_its_turn(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 3);
    run->plan.replays = true;
    for (unsigned i = 0; i < 9; i++) {
        unsigned here = sim_next(run);
        assert_int_equal(here, i % 3);
        give(run, here);
        run->acts++;
        rest(run, here, SIM_TRIES, SIM_NEVER);
        run->acts++;
    }
    free(run);
}

static void who_waits_for_an_act_runs_after_one(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 2);
    rest(run, 0, SIM_TRIES, SIM_NEVER);
    run->threads[1].deadline = LATER;
    assert_int_equal(sim_next(run), 1); /* time jumps to it */
    assert_true(run->now >= LATER);
    give(run, 1);
    rest(run, 1, SIM_SLEEPS, SIM_NEVER);
    run->moves++; /* which who spins sees alone */
    assert_int_equal(sim_next(run), SIM_NONE);
    run->over = false;
    run->acts++;
    assert_int_equal(sim_next(run), 0);
    free(run);
}

static void no_thread_that_can_run_is_the_end(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 2);
    rest(run, 0, SIM_SLEEPS, SIM_NEVER);
    rest(run, 1, SIM_TRIES, SIM_NEVER);
    assert_int_equal(sim_next(run), SIM_NONE);
    assert_true(run->over);
    free(run);
}

static void who_only_looks_again_for_300_s_is_in_a_livelock(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 2);
    unsigned here, rounds = 0;
    while ((here = sim_next(run)) != SIM_NONE && ++rounds < 1000000) {
        give(run, here);
        rest(run, here, SIM_SPINS, run->now + LATER);
    }
    assert_true(run->over);
    assert_in_range(run->now / 1000000000, 300, 301);
    free(run);
}

static void who_sleeps_for_long_is_in_no_livelock(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 3);
    const uint64_t hour = 3600ull * 1000000000, second = 1000000000;
    unsigned here, looked = 0;
    rest(run, 0, SIM_SLEEPS, hour);
    rest(run, 1, SIM_TRIES, second);
    rest(run, 2, SIM_SPINS, LATER);
    while ((here = sim_next(run)) == 1 || here == 2) {
        give(run, here);
        rest(run, here, here == 1 ? SIM_TRIES : SIM_SPINS, run->now + second);
        looked += here == 1;
    }
    assert_int_equal(here, 0); /* it was due after an hour */
    assert_in_range(looked, 3000, 3700);
    free(run);
}

static void a_computation_goes_on_when_no_other_thread_can(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 2);
    rest(run, 0, SIM_STOPS, SIM_NEVER);
    rest(run, 1, SIM_SLEEPS, LATER);
    assert_int_equal(sim_next(run), 1); /* it may be what the loop waits for */
    give(run, 1);
    rest(run, 1, SIM_SLEEPS, SIM_NEVER);
    assert_int_equal(sim_next(run), 0);
    give(run, 0);
    rest(run, 0, SIM_STOPS, SIM_NEVER);
    assert_int_equal(sim_next(run), 0);
    assert_false(run->over);
    free(run);
}

static void a_timer_is_served_by_a_thread_of_its_process(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 1);
    unsigned other = sim_add(run, OTHER, 0);
    rest(run, 0, SIM_TRIES, SIM_NEVER);
    rest(run, other, SIM_TRIES, SIM_NEVER);
    run->timers[5] = (struct sim_timer){.pid = OTHER, .descriptor = 9, .at = LATER};
    assert_int_equal(sim_next(run), other);
    assert_true(sim_timer_is_due(run, OTHER));
    assert_false(sim_timer_is_due(run, PROCESS));
    free(run);
}

static void a_timer_without_a_thread_to_serve_it_is_dropped(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 1);
    rest(run, 0, SIM_SLEEPS, SIM_NEVER);
    run->timers[0] = (struct sim_timer){.pid = OTHER, .descriptor = 9, .at = LATER};
    assert_int_equal(sim_next(run), SIM_NONE);
    free(run);
}

static void an_end_is_seen_by_who_waits_and_frees_its_places(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 1);
    unsigned other = sim_add(run, OTHER, 0);
    rest(run, 0, SIM_TRIES, SIM_NEVER);
    run->timers[0] = (struct sim_timer){.pid = OTHER, .descriptor = 9, .at = LATER};
    sim_remove(run, OTHER, 0);
    assert_int_equal(run->threads[other].state, SIM_FREE);
    assert_int_equal(run->timers[0].pid, 0);
    assert_int_equal(sim_next(run), 0);
    free(run);
}

static void a_thread_that_ends_wakes_those_that_sleep_for_its_locks(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, 2);
    run->threads[1].tid = 77;
    rest(run, 0, SIM_SLEEPS, SIM_NEVER);
    run->threads[0].key = 42;
    sim_remove(run, PROCESS, 77);
    assert_int_equal(sim_next(run), 0);
    free(run);
}

static void the_starved_thread_runs_later_than_others(void **state)
{
    struct sim_run *run = run_of(2, SIM_STARVATION, 3);
    unsigned runs[3] = {0};
    run->plan.starved = run->threads[1].serial;
    run->plan.starved_until = SIM_NEVER;
    for (unsigned i = 0; i < 300; i++) {
        unsigned here = sim_next(run);
        runs[here]++;
        give(run, here)->state = SIM_READY;
        run->threads[here].deadline = 0;
    }
    assert_int_equal(runs[1], 0);
    assert_true(runs[0] > 50 && runs[2] > 50);
    free(run);
}

static void the_highest_priority_runs_until_it_changes(void **state)
{
    struct sim_run *run = run_of(3, SIM_PRIORITIES, 3);
    unsigned first = give(run, sim_next(run)) - run->threads;
    run->plan.next_change = 10;
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(sim_at_point(run, first), first);
    assert_int_not_equal(sim_at_point(run, first), first);
    free(run);
}

static void all_places_taken_is_refused(void **state)
{
    struct sim_run *run = run_of(1, SIM_UNIFORM, SIM_THREADS);
    assert_int_equal(sim_add(run, OTHER, 0), SIM_NONE);
    free(run);
}

static void waiters_are_chosen_by_the_seed(void **state)
{
    unsigned seen = 0;
    struct sim_run *run = run_of(5, SIM_UNIFORM, 1);
    for (unsigned i = 0; i < 200; i++)
        seen |= 1u << sim_pick_waiter(run, 4);
    assert_int_equal(seen, 0xf);
    assert_int_equal(sim_pick_waiter(run, 1), 0);
    free(run);
}

TESTS_OF(cmocka_unit_test, a_seed_gives_one_order_and_another_seed_another, seeds_take_the_strategies_in_turn,
         turns_that_were_written_down_give_the_same_order, without_turns_each_thread_has_its_turn,
         who_waits_for_an_act_runs_after_one, no_thread_that_can_run_is_the_end,
         who_only_looks_again_for_300_s_is_in_a_livelock, who_sleeps_for_long_is_in_no_livelock,
         a_computation_goes_on_when_no_other_thread_can, a_timer_is_served_by_a_thread_of_its_process,
         a_timer_without_a_thread_to_serve_it_is_dropped, an_end_is_seen_by_who_waits_and_frees_its_places,
         a_thread_that_ends_wakes_those_that_sleep_for_its_locks, the_starved_thread_runs_later_than_others,
         the_highest_priority_runs_until_it_changes, all_places_taken_is_refused, waiters_are_chosen_by_the_seed)
