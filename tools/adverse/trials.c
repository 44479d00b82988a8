#include "adverse/trials.h"

#include <inttypes.h>
#include <stdio.h>

static const unsigned numbers[ADVERSE_BEHAVIOURS] = {
#define ADVERSE(number, ...) number,
#include "adverse/adverse.def"
};

void trials_write_list(const struct trials *trials, uint32_t on, uint64_t seed, char list[TRIALS_LIST])
{
    int used = snprintf(list, TRIALS_LIST, "seed=%" PRIu64, seed);
    if (trials->plan.scale != 100)
        used += snprintf(list + used, TRIALS_LIST - (size_t)used, ",scale=%u%%", trials->plan.scale);
    if (!on)
        snprintf(list + used, TRIALS_LIST - (size_t)used, ",only=%u,without=%u", numbers[0], numbers[0]);
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS; i++)
        if (on >> i & 1)
            used += snprintf(list + used, TRIALS_LIST - (size_t)used, ",only=%u", numbers[i]);
}

enum { FACTOR = 20, LEAST = 10, WITHOUT = 600 };

static bool run(struct trials *trials)
{
    trials->attempt = (struct attempt){
        .program = trials->program, .adverse = trials->list, .seconds = trials->seconds ? trials->seconds : WITHOUT};
    if (trials->broken)
        return false;
    trials->broken = !attempt_run(&trials->attempt);
    trials->runs++;
    return !trials->broken && trials->attempt.outcome != SWEEP_ENDS_WELL;
}

bool trials_fail_without(struct trials *trials)
{
    *trials->list = 0;
    bool failed = run(trials);
    if (!trials->seconds)
        trials->seconds = (unsigned)trials->attempt.took * FACTOR + LEAST;
    return failed;
}

static bool run_with(struct trials *trials, uint32_t on, uint64_t seed)
{
    trials_write_list(trials, on, seed, trials->list);
    return run(trials);
}

static uint32_t bits_of(uint32_t shown)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS; i++)
        bits |= (shown >> numbers[i] & 1) << i;
    return bits;
}

void trials_scan(struct trials *trials, uint32_t on, struct failing *failing)
{
    *failing = (struct failing){0};
    for (uint64_t seed = trials->first; seed <= trials->last; seed++)
        if (run_with(trials, on, seed)) {
            failing->seeds[failing->count++] = seed;
            failing->shown |= bits_of(trials->attempt.shown);
        }
}

/* The n-th seed: those that are known to fail, and then all of the range, over and over. */
static uint64_t seed_of(const struct trials *trials, const struct failing *first, unsigned n)
{
    return n < first->count ? first->seeds[n] : trials->first + (n - first->count) % (trials->last - trials->first + 1);
}

bool trials_fail(struct trials *trials, const struct failing *first, struct proof *proof)
{
    for (unsigned n = 0; n < trials->tries; n++) {
        proof->seed = seed_of(trials, first, n);
        if (run_with(trials, proof->on, proof->seed)) {
            proof->outcome = trials->attempt.outcome;
            proof->value = trials->attempt.value;
            return true;
        }
    }
    return false;
}

unsigned trials_wanted(const struct trials *trials, unsigned failed, unsigned of)
{
    enum { FEWEST = 5, MOST = 100 };
    const double enough = 0.02;
    unsigned tries = 0;
    if (trials->tries)
        return trials->tries;
    for (double none = 1; none > enough && tries < MOST; tries++)
        none *= 1 - (double)failed / of;
    return tries < FEWEST ? FEWEST : tries;
}
