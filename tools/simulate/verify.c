#include "simulate/verify.h"

#include <inttypes.h>

#include "simulate/once.h"
#include "simulate/standstill.h"

static bool are_equal(const struct sim_logged *one, const struct sim_logged *other)
{
    return one->now == other->now && one->result == other->result && one->serial == other->serial &&
           one->call == other->call;
}

static void name_call(const char *which, const struct once *once, uint32_t at)
{
    const struct sim_logged *call = &once->log[at];
    if (at >= once->logged)
        complain("sim: In the %s run it is not there.", which);
    else
        complain("sim: In the %s run thread %" PRIu32 " called %s after %.9f virtual seconds, with the result %" PRId64
                 ".",
                 which, call->serial, standstill_name(call->call), (double)call->now * 1e-9, call->result);
}

static void name_difference(const struct once *first, const struct once *second)
{
    uint32_t shorter = first->logged < second->logged ? first->logged : second->logged, at = 0;
    while (at < shorter && are_equal(&first->log[at], &second->log[at]))
        at++;
    if (at == first->logged && at == second->logged)
        return complain("sim: All calls that were logged, %" PRIu32 ", are the same.", at);
    complain("sim: Call %" PRIu32 " is the first that differs.", at + 1);
    name_call("first", first, at);
    name_call("second", second, at);
}

static int compare(const struct sim_choice *choice, const struct once *first, const struct once *second)
{
    const struct sim_end *one = &first->end, *other = &second->end;
    if (one->hash == other->hash && one->output == other->output && one->status == other->status)
        return one->status;
    complain("sim: Two runs of seed %" PRIu64 " differ: %" PRIu64 " and %" PRIu64
             " decisions, exit status %d and %d, and %s output.",
             choice->seed, one->decisions, other->decisions, one->status, other->status,
             one->output == other->output ? "the same" : "other");
    name_difference(first, second);
    return EXIT_NEGATIVE;
}

int verify_run(const struct command *command, const struct sim_options *options)
{
    struct sim_choice choice = options->choice;
    struct once *first = once_make(), *second = first ? once_make() : NULL;
    if (!second)
        return EXIT_SELF;
    choice.logs = true;
    int status = once_run(command, &choice, first, false);
    if (!first->has_run)
        return status;
    once_sum_up(&choice, first);
    once_run(command, &choice, second, true);
    if (!second->has_run)
        return complain_and(EXIT_SELF, "sim: The second run could not be made.");
    return compare(&choice, first, second);
}
