/* Random sequences of calls from a seed against a model of what must hold. Two programs, one thread each, classic
 * verbs.
 *
 *   api_fuzz self|shm [SEQUENCES [FIRST-SEED]]
 *
 * Each seed makes PDs, MRs, CQs, SRQs and queue pairs, posts, polls, resets and destroys in random order, also what
 * must be refused. The model (fuzz_model.h) knows the use counts, the queue depths, and for each queue the work that
 * must complete, in order and once. A failure prints the seed; the same seed makes the same calls, as far as they do
 * not depend on when completions arrive. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz_model.h"
#include "harness.h"

enum { DEFAULT_SEQUENCES = 3000, SECONDS = 12, STEPS = 200 };

static unsigned sequences = DEFAULT_SEQUENCES;
static uint64_t first_seed = 1;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A machine that is slow may need all of the time for one sequence, in which no work succeeds. */
static bool goes_on(double until)
{
    return now() < until || !model_tally.succeeded;
}

static void random_sequences_of_calls_keep_to_the_model(const void *row)
{
    double until = now() + SECONDS;
    unsigned done = 0;
    for (; done < sequences && goes_on(until); done++) {
        struct model *model = model_create(first_seed + done);
        for (int step = 0; step < STEPS; step++)
            model_step(model);
        model_finish(model);
    }
    printf("# %u sequences of %d calls from seed %llu on\n", done, STEPS, (unsigned long long)first_seed);
    printf("# completions: %lu good, %lu failed, %lu flushed; %lu sends refused\n", model_tally.succeeded,
           model_tally.failed, model_tally.flushed, model_tally.refused);
    EXPECT(model_tally.succeeded, >, 0);
}

static void all(void)
{
    CASE(random_sequences_of_calls_keep_to_the_model);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--remote"))
        return harness_main(argc, argv, all);
    if (argc > 2)
        sequences = (unsigned)strtoul(argv[2], NULL, 10);
    if (argc > 3)
        first_seed = strtoull(argv[3], NULL, 10);
    return harness_main(argc > 2 ? 2 : argc, argv, all);
}
