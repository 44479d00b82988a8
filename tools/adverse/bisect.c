#include "adverse/bisect.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_one(uint32_t on)
{
    return on && !(on & (on - 1));
}

static void say(const struct bisect *bisect, const char *what, uint32_t on)
{
    if (bisect->quiet)
        return;
    fputs(what, stderr);
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS; i++)
        if (on >> i & 1)
            fprintf(stderr, " %s", bisect_word((enum adverse)i));
    fputs("\n", stderr);
}

/* The behaviours that the log of the failing runs names, if they alone make the program fail; else all behaviours. */
static uint32_t narrow(struct bisect *bisect)
{
    struct proof proof = {.on = bisect->all.shown & bisect->trials.plan.on};
    bool fewer = proof.on && proof.on != bisect->trials.plan.on;
    return fewer && trials_fail(&bisect->trials, &bisect->all, &proof) ? proof.on : bisect->trials.plan.on;
}

static void find_single(struct bisect *bisect, uint32_t among)
{
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS && !bisect->trials.broken; i++) {
        struct proof *proof = &bisect->proofs[bisect->count];
        *proof = (struct proof){.on = 1u << i & among};
        if (!proof->on)
            continue;
        bool fails = trials_fail(&bisect->trials, &bisect->all, proof);
        say(bisect, fails ? "fails with" : "bears", proof->on);
        bisect->count += fails;
    }
}

/* Finds several behaviours that make the program fail together: leaves out each that is not needed, one by one. */
static void find_several(struct bisect *bisect, uint32_t among)
{
    struct proof *proof = &bisect->proofs[0], fewer;
    *proof = (struct proof){.on = among};
    if (!trials_fail(&bisect->trials, &bisect->all, proof))
        return;
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS && !is_one(proof->on); i++) {
        fewer = (struct proof){.on = proof->on & ~(1u << i)};
        if (fewer.on != proof->on && trials_fail(&bisect->trials, &bisect->all, &fewer)) {
            *proof = fewer;
            say(bisect, "fails with", proof->on);
        }
    }
    bisect->count = 1;
}

/* Scans the seeds under which each found behaviour fails, and whether the program bears the others. */
static void look_around(struct bisect *bisect)
{
    uint32_t rest = bisect->trials.plan.on;
    for (unsigned i = 0; i < bisect->count; i++) {
        struct proof *proof = &bisect->proofs[i];
        rest &= ~proof->on;
        trials_scan(&bisect->trials, proof->on, &proof->failing);
    }
    trials_scan(&bisect->trials, rest, &bisect->rest);
}

static enum bisect_end find(struct bisect *bisect)
{
    struct trials *trials = &bisect->trials;
    trials->tries = trials_wanted(trials, bisect->all.count, (unsigned)(trials->last - trials->first + 1));
    if (trials_fail(trials, &bisect->all, &bisect->bare))
        return BISECT_BARE;
    uint32_t among = narrow(bisect);
    find_single(bisect, among);
    if (!bisect->count)
        find_several(bisect, among);
    if (!bisect->count)
        return BISECT_LOST;
    look_around(bisect);
    return BISECT_FOUND;
}

static void run_without(struct bisect *bisect)
{
    bisect->without++;
    if (!trials_fail_without(&bisect->trials))
        return;
    bisect->without_failed++;
    bisect->outcome = bisect->trials.attempt.outcome;
    bisect->value = bisect->trials.attempt.value;
}

static enum bisect_end search(struct bisect *bisect)
{
    enum { WITHOUT = 3 };
    while (bisect->without < WITHOUT && !bisect->trials.broken)
        run_without(bisect);
    if (bisect->trials.broken || bisect->without_failed)
        return BISECT_ALWAYS;
    say(bisect, "bears the runs without the adverse adapter; trying seeds", 0);
    trials_scan(&bisect->trials, bisect->trials.plan.on, &bisect->all);
    if (!bisect->all.count)
        return BISECT_NEVER;
    return bisect->scan_only ? BISECT_FOUND : find(bisect);
}

void bisect_run(struct bisect *bisect)
{
    bisect->end = search(bisect);
    if (bisect->trials.broken)
        bisect->end = BISECT_BROKEN;
}
