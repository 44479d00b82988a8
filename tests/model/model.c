/* The model checker's program. See docs/evidence/model.md. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "memory.h"
#include "scenario.h"
#include "search.h"
#include "trace.h"

struct options {
    const char *scenario, *replay;
    bool must_fail, everything;
    double seconds;
    unsigned preemptions, part, parts;
};

static const struct scenario *at_work;

static void usage(void)
{
    printf("Usage: model [OPTION...]\n"
           "  --scenario NAME       this one only (--list shows them)\n"
           "  --part K/N            every N-th of them, from the K-th on\n"
           "  --long                with wider bounds; also with SOFTVERBS_MODEL_LONG=1\n"
           "  --seconds N           give up a scenario after so long\n"
           "  --preemptions N       at most so many\n"
           "  --replay SCHEDULE     one execution, step by step\n"
           "  --must-fail           success when something wrong is found\n");
}

static void begin(const struct scenario *scenario, const struct budget *budget)
{
    at_work = scenario;
    host_begin();
    trace_forget_names();
    schedule_begin(budget);
    memory_begin();
    schedule_hold_stores(scenario->hold_stores);
    scenario->set_up();
    memory_snapshot();
    host_snapshot();
    schedule_snapshot();
}

static void replay(const struct scenario *scenario, const char *schedule)
{
    if (!search_replay(schedule)) {
        fprintf(stderr, "model: '%s' is not a schedule\n", schedule);
        exit(2);
    }
    trace_on = true;
    const char *fault = schedule_run(&scenario->checks);
    trace_on = false;
    trace_print();
    printf("# %s\n", fault ? fault : "nothing is wrong");
}

/* NULL, or what is wrong. */
static const char *explore(const struct scenario *scenario, const struct search_limits *limits)
{
    search_begin(limits);
    const char *fault;
    do
        fault = schedule_run(&scenario->checks);
    while (!fault && search_next());
    return fault;
}

/* The same again with as few preemptions as it needs, which is what a reader wants to see. */
static const char *explore_simply(const struct scenario *scenario, const struct budget *budget, const char *fault)
{
    const struct search_limits limits = {.seconds = 10};
    for (unsigned i = 0; i < 4; i++) {
        struct budget simple = *budget;
        simple.preemptions = i;
        begin(scenario, &simple);
        const char *simpler = explore(scenario, &limits);
        if (simpler)
            return simpler;
    }
    begin(scenario, budget);
    return explore(scenario, &(struct search_limits){0});
}

static void report(const struct scenario *scenario, const struct budget *budget, const char *found)
{
    static char schedule[4096], fault[512];
    snprintf(fault, sizeof fault, "%s", explore_simply(scenario, budget, found));
    search_write_schedule(schedule, sizeof schedule);
    printf("# %s: %s\n", scenario->name, fault);
    printf("# Once more: model --scenario %s --replay '%s'\n", scenario->name, schedule);
    replay(scenario, schedule);
}

static bool check(unsigned number, const struct scenario *scenario, const struct options *options)
{
    struct budget budget = options->everything ? scenario->more : scenario->budget;
    struct search_limits limits = {.seconds = options->seconds};
    struct search_result result;
    if (options->preemptions != UINT32_MAX)
        budget.preemptions = options->preemptions;
    begin(scenario, &budget);
    const char *fault = explore(scenario, &limits);
    search_result(&result);
    bool good = options->must_fail ? fault != NULL : !fault;
    printf("%sok %u - %s: %s\n", good ? "" : "not ", number, scenario->name,
           options->must_fail ? "something wrong is found" : scenario->about);
    printf("# %llu states, %llu executions of at most %u questions, %.1f s%s\n", (unsigned long long)result.states,
           (unsigned long long)result.executions, result.deepest, result.seconds,
           fault             ? ""
           : result.complete ? ", all there is within the bounds"
                             : ", not all");
    if (fault && !(options->must_fail && good))
        report(scenario, &budget, fault);
    else if (fault)
        printf("# found: %s\n", fault);
    fflush(stdout);
    return good;
}

/* The code under test has touched what isn't there. */
static void crashed(int signal)
{
    static char schedule[4096];
    search_write_schedule(schedule, sizeof schedule);
    printf("not ok - %s: signal %d\n# Once more: model --scenario %s --replay '%s'\n", at_work ? at_work->name : "",
           signal, at_work ? at_work->name : "", schedule);
    if (trace_on)
        trace_print();
    fflush(stdout);
    _exit(1);
}

static void catch_crashes(void)
{
    static char stack[64 << 10];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

static int read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"scenario", required_argument, NULL, 's'},
                                          {"part", required_argument, NULL, 'P'},
                                          {"long", no_argument, NULL, 'l'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"preemptions", required_argument, NULL, 'p'},
                                          {"replay", required_argument, NULL, 'r'},
                                          {"must-fail", no_argument, NULL, 'f'},
                                          {"list", no_argument, NULL, 'L'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    const char *wide = getenv("SOFTVERBS_MODEL_LONG");
    *options = (struct options){.preemptions = UINT32_MAX, .part = 1, .parts = 1, .everything = wide && *wide && *wide != '0'};
    for (int message; (message = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (message) {
        case 's':
            options->scenario = optarg;
            break;
        case 'P':
            if (sscanf(optarg, "%u/%u", &options->part, &options->parts) == 2 && options->part && options->parts)
                break;
            usage();
            exit(2);
        case 'l':
            options->everything = true;
            break;
        case 't':
            options->seconds = atof(optarg);
            break;
        case 'p':
            options->preemptions = (unsigned)atoi(optarg);
            break;
        case 'r':
            options->replay = optarg;
            break;
        case 'f':
            options->must_fail = true;
            break;
        case 'L':
            for (unsigned i = 0; scenarios[i]; i++)
                printf("%-20s %s\n", scenarios[i]->name, scenarios[i]->about);
            exit(0);
        default:
            usage();
            exit(message == 'h' ? 0 : 2);
        }
    return 0;
}

static bool is_wanted(const struct options *options, unsigned i)
{
    if (options->scenario)
        return !strcmp(options->scenario, scenarios[i]->name);
    return i % options->parts == options->part - 1;
}

int main(int argc, char **argv)
{
    struct options options;
    unsigned count = 0, failed = 0;
    read_options(argc, argv, &options);
    if (!memory_open()) {
        printf("1..0 # SKIP the model's address space can't be reserved here\n");
        return 0;
    }
    catch_crashes();
    for (unsigned i = 0; scenarios[i]; i++) {
        if (!is_wanted(&options, i))
            continue;
        count++;
        if (options.replay) {
            begin(scenarios[i], options.everything ? &scenarios[i]->more : &scenarios[i]->budget);
            replay(scenarios[i], options.replay);
        } else
            failed += !check(count, scenarios[i], &options);
    }
    printf("1..%u\n", count);
    return failed != 0;
}
