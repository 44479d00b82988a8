#include "simulate/shrink.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/once.h"
#include "simulate/rules.h"
#include "simulate/turns.h"

enum { RUNS_MOST = 2000 };

struct shrink {
    const struct command *command;
    const struct sim_options *options;
    struct once *once;
    enum sim_ending ending; /* of the run that is shrunk */
    int status;
    unsigned runs;
    struct sim_turn *turns, *tried; /* what is left, and what the next run has */
    uint32_t count;
};

/* Whether a run of these turns ends as the first one. */
static bool ends_so(struct shrink *shrink, uint32_t count)
{
    struct sim_choice choice = shrink->options->choice;
    choice.turns = shrink->tried;
    choice.turn_count = count;
    shrink->runs++;
    int status = once_run(shrink->command, &choice, shrink->once, true);
    return shrink->once->has_run && shrink->once->end.ending == shrink->ending && status == shrink->status;
}

static bool ends_without(struct shrink *shrink, uint32_t from, uint32_t length)
{
    uint32_t after = shrink->count - from - length;
    memcpy(shrink->tried, shrink->turns, from * sizeof *shrink->turns);
    memcpy(shrink->tried + from, shrink->turns + from + length, after * sizeof *shrink->turns);
    if (!ends_so(shrink, from + after))
        return false;
    shrink->count = from + after;
    memcpy(shrink->turns, shrink->tried, shrink->count * sizeof *shrink->turns);
    return true;
}

/* Leaves out pieces of this length. Returns whether one could go. */
static bool leave_out(struct shrink *shrink, uint32_t length)
{
    bool some = false;
    for (uint32_t from = 0; from < shrink->count && shrink->runs < RUNS_MOST;) {
        uint32_t piece = length < shrink->count - from ? length : shrink->count - from;
        if (ends_without(shrink, from, piece))
            some = true;
        else
            from += piece;
    }
    return some;
}

/* Delta debugging: halves, then quarters, down to single ones until none of them can go. */
static void leave_out_all(struct shrink *shrink)
{
    uint32_t length = shrink->count;
    while (length && shrink->count && shrink->runs < RUNS_MOST) {
        bool some = leave_out(shrink, length);
        if (length > 1)
            length = (length + 1) / 2;
        else if (!some)
            break;
    }
}

static bool ends_with_rules(void *of)
{
    struct shrink *shrink = of;
    memcpy(shrink->tried, shrink->turns, shrink->count * sizeof *shrink->turns);
    return shrink->runs < RUNS_MOST && ends_so(shrink, shrink->count);
}

/* Turns are by number, and a fault moves those that come after it: so it has to go with few turns. */
static void leave_out_rules(struct shrink *shrink)
{
    static char script[PATH_MAX];
    char *file = realpath(shrink->options->save, NULL);
    if (file && snprintf(script, sizeof script, "%s.script", file) < (int)sizeof script &&
        rules_leave_out(script, ends_with_rules, shrink))
        leave_out_all(shrink);
    free(file);
}

/* The run that is shrunk: how it ends, and its turns. */
static int look(struct shrink *shrink)
{
    const struct sim_choice *choice = &shrink->options->choice;
    shrink->status = once_run(shrink->command, choice, shrink->once, true);
    if (!shrink->once->has_run)
        return complain_and(EXIT_SELF, "sim: The programs could not be run.");
    if (!shrink->status)
        return complain_and(EXIT_USAGE, "sim: With seed %" PRIu64 " all programs end well: there is nothing to shrink.",
                            choice->seed);
    if (shrink->once->turns_lost)
        return complain_and(EXIT_SELF, "sim: The run has more than %d turns, which is too many to shrink.", SIM_TURNS);
    shrink->ending = shrink->once->end.ending;
    shrink->count = choice->turns ? choice->turn_count : shrink->once->turn_count;
    memcpy(shrink->turns, choice->turns ? choice->turns : shrink->once->turns, shrink->count * sizeof *shrink->turns);
    return 0;
}

static bool write_turns(const struct shrink *shrink)
{
    const struct turns_file file = {shrink->options->choice.seed, shrink->count, shrink->turns};
    return turns_write(shrink->options->save, &file);
}

static int shrink_turns(struct shrink *shrink)
{
    const struct sim_options *options = shrink->options;
    int status = look(shrink);
    if (status)
        return status;
    uint32_t before = shrink->count;
    memcpy(shrink->tried, shrink->turns, before * sizeof *shrink->turns);
    if (!ends_so(shrink, before))
        return complain_and(EXIT_NEGATIVE,
                            "sim: The run does not repeat by its %" PRIu32 " turns, so it can't be shrunk.", before);
    leave_out_all(shrink);
    if (!write_turns(shrink))
        return EXIT_SELF;
    leave_out_rules(shrink);
    if (!write_turns(shrink))
        return EXIT_SELF;
    rules_print_needless();
    printf("%" PRIu32 " of %" PRIu32 " turns are left after %u runs. Repeat it with: softverbs sim --replay %s",
           shrink->count, before, shrink->runs, options->save);
    rules_print_left();
    putchar('\n');
    return 0;
}

int shrink_run(const struct command *command, const struct sim_options *options)
{
    struct shrink shrink = {.command = command, .options = options, .once = once_make()};
    shrink.turns = malloc(SIM_TURNS * sizeof *shrink.turns);
    shrink.tried = malloc(SIM_TURNS * sizeof *shrink.tried);
    int status = EXIT_SELF;
    if (shrink.once && shrink.turns && shrink.tried)
        status = shrink_turns(&shrink);
    else if (shrink.once)
        complain("sim: There is not enough memory to shrink a run.");
    free(shrink.turns);
    free(shrink.tried);
    return status;
}
