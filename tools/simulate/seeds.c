#include "simulate/seeds.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "simulate/once.h"

enum { JOBS = 64, OUTCOMES = 64 };

struct outcome {
    enum sim_ending ending;
    int status;
    unsigned runs;
    uint64_t first;
};

struct job {
    pid_t process; /* 0: free */
    uint64_t seed;
    int processor;
    struct once *once;
};

struct seeds {
    const struct command *command;
    const struct sim_options *options;
    struct job jobs[JOBS];
    unsigned job_count;
    struct outcome outcomes[OUTCOMES];
    unsigned outcome_count;
    int worst;
    bool failed, broken; /* a run did not end with 0; could not be made */
};

/* --- outcomes */

static struct outcome *find_outcome(struct seeds *seeds, enum sim_ending ending, int status)
{
    struct outcome *outcome = seeds->outcomes;
    for (; outcome < seeds->outcomes + seeds->outcome_count; outcome++)
        if (outcome->ending == ending && outcome->status == status)
            return outcome;
    if (seeds->outcome_count == OUTCOMES)
        return &seeds->outcomes[OUTCOMES - 1];
    seeds->outcome_count++;
    *outcome = (struct outcome){ending, status, 0, SIM_NEVER};
    return outcome;
}

static void count(struct seeds *seeds, const struct job *job, int status)
{
    struct outcome *outcome = find_outcome(seeds, job->once->has_run ? job->once->end.ending : SIM_NOT_RUN, status);
    outcome->runs++;
    outcome->first = job->seed < outcome->first ? job->seed : outcome->first;
    seeds->failed |= status != 0;
    seeds->broken |= !job->once->has_run;
    seeds->worst = status > seeds->worst ? status : seeds->worst;
}

static int by_runs(const void *one, const void *other)
{
    const struct outcome *a = one, *b = other;
    return a->runs < b->runs ? 1 : a->runs > b->runs ? -1 : 0;
}

static void print_outcomes(struct seeds *seeds)
{
    static const char *const endings[] = {[SIM_ENDED] = NULL,
                                          [SIM_DEADLOCK] = "deadlock",
                                          [SIM_LIVELOCK] = "livelock",
                                          [SIM_LATE] = "limit",
                                          [SIM_NOT_RUN] = "not run"};
    qsort(seeds->outcomes, seeds->outcome_count, sizeof *seeds->outcomes, by_runs);
    printf("%8s  %20s  outcome\n", "runs", "first seed");
    for (unsigned i = 0; i < seeds->outcome_count; i++) {
        const struct outcome *outcome = &seeds->outcomes[i];
        printf("%8u  %20" PRIu64 "  ", outcome->runs, outcome->first);
        if (endings[outcome->ending])
            puts(endings[outcome->ending]);
        else
            printf("status %d\n", outcome->status);
    }
}

/* --- jobs */

/* One for each processor that this process may use. */
static void make_jobs(struct seeds *seeds)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE && seeds->job_count < JOBS; i++)
        if (CPU_ISSET(i, &set))
            seeds->jobs[seeds->job_count++] = (struct job){.processor = i, .once = once_make()};
}

static void use_processor(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static bool begin(struct seeds *seeds, struct job *job, uint64_t seed)
{
    struct sim_choice choice = seeds->options->choice;
    cpu_set_t before;
    choice.seed = job->seed = seed;
    sched_getaffinity(0, sizeof before, &before);
    use_processor(job->processor);
    job->process = once_begin(seeds->command, &choice, job->once, true);
    sched_setaffinity(0, sizeof before, &before);
    return job->process > 0;
}

/* Waits for one run to end. */
static void await_one(struct seeds *seeds)
{
    int how;
    pid_t process = wait(&how);
    for (unsigned i = 0; i < seeds->job_count; i++)
        if (seeds->jobs[i].process == process) {
            count(seeds, &seeds->jobs[i], WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
            seeds->jobs[i].process = 0;
        }
}

static struct job *free_job(struct seeds *seeds)
{
    for (unsigned i = 0; i < seeds->job_count; i++)
        if (!seeds->jobs[i].process)
            return &seeds->jobs[i];
    return NULL;
}

static bool some_job(const struct seeds *seeds)
{
    for (unsigned i = 0; i < seeds->job_count; i++)
        if (seeds->jobs[i].process > 0)
            return true;
    return false;
}

static void run_all(struct seeds *seeds)
{
    const struct sim_options *options = seeds->options;
    for (uint64_t seed = options->first; seed <= options->last; seed++) {
        struct job *job;
        while (!(job = free_job(seeds)))
            await_one(seeds);
        if (seeds->broken || (options->until_failure && seeds->failed) || !begin(seeds, job, seed) ||
            seed == UINT64_MAX)
            break;
    }
    while (some_job(seeds))
        await_one(seeds);
}

int seeds_run(const struct command *command, const struct sim_options *options)
{
    static struct seeds seeds;
    seeds = (struct seeds){.command = command, .options = options};
    make_jobs(&seeds);
    for (unsigned i = 0; i < seeds.job_count; i++)
        if (!seeds.jobs[i].once)
            return EXIT_SELF;
    run_all(&seeds);
    print_outcomes(&seeds);
    return seeds.worst;
}
