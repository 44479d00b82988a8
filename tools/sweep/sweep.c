/* softverbs sweep: runs a program again and again, and lets something else go wrong in each run. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "command.h"
#include "script/parse.h"
#include "sweep/attempt.h"
#include "sweep/found.h"

enum { RULE_MOST = 1 << 14, RUNS_MOST = 1000, SECONDS_LEAST = 5, SECONDS_FACTOR = 10 };

struct sweep {
    char **program;
    const char *error; /* name of the errno with which calls fail */
    bool of[SWEEP_KINDS];
    unsigned seconds; /* after which a run hangs; 0: by the run without faults */
    unsigned most;    /* runs of each kind */
    struct found *found;
};

/* --- which rule */

/* The number of a program's polls depends on chance, and calls that only read a member of a struct fail nowhere. */
static bool is_swept(enum script_call call)
{
    static const char *const others[] = {"ibv_poll_cq",         "ibv_start_poll",      "ibv_next_poll",
                                         "ibv_get_device_list", "ibv_get_device_name", "ibv_get_device_index",
                                         "ibv_get_device_guid", "ibv_get_sysfs_path",  "ibv_qp_to_qp_ex"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(script_title(call), others[i]))
            return false;
    return script_names[call].answer < SCRIPT_ANSWER_nothing;
}

static void write_calls(const struct sweep *sweep, unsigned nth, char *rule)
{
    size_t used = 0;
    for (enum script_call call = 0; call < SCRIPT_CALLS; call++)
        if (is_swept(call) && used < RULE_MOST - 64)
            used += (size_t)snprintf(rule + used, RULE_MOST - used, "%s%s", used ? "," : "", script_title(call));
    snprintf(rule + used, RULE_MOST - used, ":error=%s:when=%u", sweep->error, nth);
}

static void write_rule(const struct sweep *sweep, enum sweep_kind kind, unsigned nth, char *rule)
{
    if (kind == SWEEP_CALLS)
        write_calls(sweep, nth, rule);
    else if (kind == SWEEP_COMPLETIONS)
        snprintf(rule, RULE_MOST, "when work, nth %u: complete RETRY_EXC_ERR", nth);
    else
        snprintf(rule, RULE_MOST, "when event, nth %u: duplicate", nth);
}

/* --- the runs */

enum { TRIES = 2, MISSES = 2 };

/* False: the program met no fault, or can't be run. One run without a fault may be chance: of several processes one was
 * too late for another. */
static bool try_one(struct sweep *sweep, enum sweep_kind kind, unsigned nth)
{
    char rule[RULE_MOST];
    struct attempt attempt = {.program = sweep->program, .rule = rule, .seconds = sweep->seconds};
    write_rule(sweep, kind, nth, rule);
    for (int tries = 0; tries < TRIES && !*attempt.fault; tries++)
        if (!attempt_run(&attempt))
            return false;
    if (*attempt.fault)
        found_add(sweep->found, kind, nth, &attempt);
    return *attempt.fault;
}

/* Tries the faults of a kind in turn, up to the first two numbers in a row that no call has. */
static void sweep_kind(struct sweep *sweep, enum sweep_kind kind)
{
    unsigned misses = 0;
    for (unsigned nth = found_last(sweep->found, kind) + 1; nth <= sweep->most && misses < MISSES; nth++)
        misses = try_one(sweep, kind, nth) ? 0 : misses + 1;
    if (misses < MISSES)
        complain("%u runs for %s are enough; --most N makes more.", sweep->most, sweep_words[kind]);
}

/* Runs the program without a fault: it must end, and well. False: it does not, and a message was printed. */
static bool run_once(struct sweep *sweep)
{
    struct attempt attempt = {.program = sweep->program, .seconds = sweep->seconds ? sweep->seconds : 600};
    if (!attempt_run(&attempt))
        return complain_and(false, "The program can't be run: %s.", strerror(errno));
    if (attempt.outcome != SWEEP_ENDS_WELL)
        complain("Without a fault the program %s; a sweep says nothing then.", sweep_outcomes[attempt.outcome]);
    if (!sweep->seconds)
        sweep->seconds = (unsigned)attempt.took * SECONDS_FACTOR + SECONDS_LEAST;
    return attempt.outcome == SWEEP_ENDS_WELL;
}

static int sweep_all(struct sweep *sweep, const char *junit)
{
    if (!run_once(sweep))
        return EXIT_NEGATIVE;
    for (enum sweep_kind kind = 0; kind < SWEEP_KINDS; kind++)
        if (sweep->of[kind])
            sweep_kind(sweep, kind);
    bool written = !junit || found_write_junit(sweep->found, junit);
    if (!written)
        complain("%s can't be written: %s.", junit, strerror(errno));
    return found_conclude(sweep->found) && written ? EXIT_OK : EXIT_NEGATIVE;
}

/* --- the command */

static bool is_error(const char *name)
{
    struct script_fault fault;
    char text[96];
    struct script *script = calloc(1, sizeof *script);
    snprintf(text, sizeof text, "ibv_reg_mr:error=%s", name);
    bool known = script && strlen(name) < 32 && script_parse(text, script, &fault);
    free(script);
    return known;
}

static unsigned read_number(const char *text)
{
    uint64_t number;
    return text_number(text, 0, 1000000, &number) ? (unsigned)number : 0;
}

static int sweep(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("calls", 'c'), OPTION("completions", 'o'), OPTION("events", 'e'),
                                            VALUED("error", 'r'), VALUED("timeout", 't'),     VALUED("most", 'm'),
                                            VALUED("junit", 'j'), VALUED("resume", 's'),      OPTIONS_END};
    struct sweep wanted = {.error = "ENOMEM", .most = RUNS_MOST};
    const char *junit = NULL, *state = NULL;
    bool numbers = true;
    for (int option; (option = command_option(command, argc, argv, options)) != -1;) {
        wanted.of[SWEEP_CALLS] |= option == 'c';
        wanted.of[SWEEP_COMPLETIONS] |= option == 'o';
        wanted.of[SWEEP_EVENTS] |= option == 'e';
        wanted.error = option == 'r' ? optarg : wanted.error;
        junit = option == 'j' ? optarg : junit;
        state = option == 's' ? optarg : state;
        wanted.seconds = option == 't' ? read_number(optarg) : wanted.seconds;
        wanted.most = option == 'm' ? read_number(optarg) : wanted.most;
        numbers = numbers && ((option != 't' && option != 'm') || read_number(optarg));
    }
    if (!numbers)
        return command_misused(command, "--timeout and --most need a whole number above 0.");
    if (!is_error(wanted.error))
        return command_misused(command, "\"%s\" is no errno that scripts know, such as ENOMEM.", wanted.error);
    if (optind == argc)
        return command_misused(command, "It needs a program.");
    if (!wanted.of[SWEEP_CALLS] && !wanted.of[SWEEP_COMPLETIONS] && !wanted.of[SWEEP_EVENTS])
        wanted.of[SWEEP_CALLS] = true;
    wanted.program = argv + optind;
    wanted.found = found_open(state, wanted.program);
    if (!wanted.found)
        return complain_and(EXIT_NEGATIVE, "%s can't be used: %s.", state ? state : "Memory",
                            errno == EEXIST ? "it is of another program" : strerror(errno));
    int status = sweep_all(&wanted, junit);
    found_close(wanted.found);
    return status;
}

const struct command sweep_command = {
    .name = "sweep",
    .arguments = "[OPTIONS] [--] PROGRAM [ARGUMENTS]",
    .summary = "Let each call of a program fail once, run after run",
    .help = "  --calls           fail the first call in the first run, the second call in the\n"
            "                    next, and so on, until a run has no such call; calls that\n"
            "                    poll are left out. This is the default\n"
            "  --completions     the same with work, which ends in IBV_WC_RETRY_EXC_ERR\n"
            "  --events          the same with events of completion queues, which come once\n"
            "                    more without a completion; the program must end with 0 then\n"
            "  --error NAME      fail calls with this errno instead of ENOMEM\n"
            "  --timeout SECONDS take a run for hung after this time, by default ten times\n"
            "                    the time of a run without a fault, and five seconds\n"
            "  --most N          make at most N runs of each kind, 1000 by default\n"
            "  --junit FILE      write a report as JUnit XML\n"
            "  --resume FILE     keep each run in the file, and continue after those in it\n"
            "\n"
            "It lists the faults that make the program crash or hang, or end with 0 as if\n"
            "nothing had been lost; of programs built with AddressSanitizer also those that\n"
            "make it leak. A call that only gives something back, such as ibv_dealloc_pd, may\n"
            "fail unnoticed. The exit status is 0 when the list is empty.\n",
    .runs_rest = true,
    .run = sweep,
};
