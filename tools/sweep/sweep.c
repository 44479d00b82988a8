/* softverbs sweep: runs a program again and again, and lets something else go wrong in each run. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/text/text.h"
#include "command.h"
#include "script/parse.h"
#include "sweep/attempt.h"
#include "sweep/counting.h"
#include "sweep/found.h"
#include "sweep/plan.h"

enum { RULE_MOST = 1 << 14, RUNS_MOST = 1000, SECONDS_LEAST = 5, SECONDS_FACTOR = 10, WITHOUT_MOST = 600 };

struct sweep {
    char **program;
    bool around;
    const char *error; /* name of the errno with which calls fail */
    bool of[SWEEP_KINDS];
    unsigned seconds; /* after which a run hangs; 0: by the run without faults */
    unsigned most;    /* runs of each kind */
    unsigned limit;   /* of all runs, in seconds; 0: no limit */
    double began;
    struct counting counting;
    struct plan plan;
    struct attempt without; /* a run without a fault */
    unsigned long long posted;
    size_t left;   /* faults that were not tried, as the time was up */
    size_t unmade; /* calls that no run made again */
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

/* Writes the rule that counts the calls of the kinds that are swept. Work and receives are counted anyway. */
static void write_counting(const struct sweep *sweep, char *rule)
{
    size_t used = (size_t)snprintf(rule, RULE_MOST, "work,receive%s", sweep->of[SWEEP_EVENTS] ? ",event" : "");
    for (enum script_call call = 0; sweep->of[SWEEP_CALLS] && call < SCRIPT_CALLS; call++)
        if (is_swept(call) && used < RULE_MOST - 128)
            used += (size_t)snprintf(rule + used, RULE_MOST - used, ",%s", script_title(call));
    snprintf(rule + used, RULE_MOST - used, ":places=%s", sweep->counting.path);
}

static void write_fault(const struct sweep *sweep, const struct fault *fault, char *rule)
{
    char place[32] = "", action[64] = "duplicate";
    if (fault->place)
        snprintf(place, sizeof place, ", place 0x%x", fault->place);
    if (fault->kind == SWEEP_CALLS)
        snprintf(action, sizeof action, "error %s", sweep->error);
    else if (fault->kind == SWEEP_COMPLETIONS)
        snprintf(action, sizeof action, "complete RETRY_EXC_ERR");
    snprintf(rule, RULE_MOST, "when %s%s, nth %u: %s; work,receive:places=%s", fault->call, place, fault->nth, action,
             sweep->counting.path);
}

/* --- progress, and the end of the time */

static struct {
    bool shown; /* on a terminal */
    size_t tried, all;
    double began, last; /* when the sweep began, and when the line was written */
} progress;

static void show_progress(void)
{
    if (!progress.shown || read_clock_seconds() - progress.last < 1)
        return;
    progress.last = read_clock_seconds();
    fprintf(stderr, "\r%zu of %zu faults, %.0f s ", progress.tried, progress.all, progress.last - progress.began);
    fflush(stderr);
}

static void clear_progress(void)
{
    if (progress.shown && progress.last > 0)
        fprintf(stderr, "\r\033[K");
}

static bool time_is_up(const struct sweep *sweep)
{
    return attempts_signal() || (sweep->limit && read_clock_seconds() - sweep->began >= sweep->limit);
}

/* --- the runs */

static bool run(struct sweep *sweep, struct attempt *attempt)
{
    attempt->program = sweep->program;
    attempt->around = sweep->around;
    attempt->wait = show_progress;
    counting_clear(&sweep->counting);
    return attempt_run(attempt);
}

/* The seconds that a run may take: those that are left, at most `most`. */
static unsigned seconds_left(const struct sweep *sweep, unsigned most)
{
    double left = sweep->began + sweep->limit - read_clock_seconds();
    if (!sweep->limit || left >= most)
        return most;
    return left < 0 ? 1 : (unsigned)left + 1;
}

/* Does a run. False: it could not begin, or the time is up, and the outcome means nothing. */
static bool run_in_time(struct sweep *sweep, struct attempt *attempt)
{
    unsigned wanted = attempt->seconds;
    attempt->seconds = seconds_left(sweep, wanted);
    bool cut = attempt->seconds < wanted;
    return run(sweep, attempt) && !attempts_signal() && !(cut && attempt->outcome == SWEEP_HANGS);
}

/* Returns whether a program that ends with 0 has done its work, though a call failed: it writes what it writes
 * without the fault, numbers aside, or has posted as much work. A post that failed counts as lost unless it was made
 * again. */
static bool went_on(const struct sweep *sweep, const struct fault *fault, const struct attempt *attempt)
{
    bool posts = !strncmp(fault->call, "ibv_post_", 9) || !strncmp(fault->call, "ibv_wr_", 7);
    bool worked = sweep->posted && counting_posted(&sweep->counting) >= sweep->posted;
    return fault->kind == SWEEP_CALLS && (worked || (!posts && written_has(&attempt->output, &sweep->without.output)));
}

enum { TRIES = 2 };

/* Tries a fault, and once more if the run did not meet it: that may be chance, as one of several processes was late.
 * False: the time is up, or the program can't be run. */
static bool try_one(struct sweep *sweep, const struct fault *fault)
{
    char rule[RULE_MOST];
    struct attempt attempt = {.rule = rule};
    write_fault(sweep, fault, rule);
    for (int tries = 0; tries < TRIES && !*attempt.fault; tries++) {
        attempt.seconds = sweep->seconds;
        if (!run_in_time(sweep, &attempt))
            return false;
    }
    if (attempt.outcome == SWEEP_ENDS_WELL && went_on(sweep, fault, &attempt))
        attempt.outcome = SWEEP_GOES_ON;
    clear_progress();
    if (*attempt.fault)
        found_add(sweep->found, fault, &attempt);
    sweep->unmade += !*attempt.fault;
    return true;
}

/* Keeps the faults that are tried, in the plan's order: of each kind at most the number that the user wants. */
static void choose_faults(struct sweep *sweep)
{
    unsigned taken[SWEEP_KINDS] = {0};
    size_t kept = 0;
    for (size_t i = 0; i < sweep->plan.count; i++) {
        const struct fault *fault = &sweep->plan.faults[i];
        if (sweep->of[fault->kind] && taken[fault->kind]++ < sweep->most)
            sweep->plan.faults[kept++] = *fault;
    }
    for (enum sweep_kind kind = 0; kind < SWEEP_KINDS; kind++)
        if (taken[kind] > sweep->most)
            complain("%u runs for %s are enough; --most N makes more.", sweep->most, sweep_words[kind]);
    sweep->plan.count = kept;
}

static void try_all(struct sweep *sweep)
{
    progress.shown = isatty(STDERR_FILENO);
    progress.all = sweep->plan.count;
    progress.began = sweep->began;
    for (size_t i = 0; i < sweep->plan.count; i++) {
        const struct fault *fault = &sweep->plan.faults[i];
        progress.tried = i;
        if (found_has(sweep->found, fault))
            continue;
        if (time_is_up(sweep) || !try_one(sweep, fault)) {
            sweep->left = sweep->plan.count - i;
            break;
        }
    }
    clear_progress();
}

static void report_without(const struct sweep *sweep, unsigned wanted)
{
    const struct attempt *attempt = &sweep->without;
    if (attempt->outcome == SWEEP_HANGS && attempt->seconds < wanted)
        complain("Without a fault the program did not end within %u s (--seconds); a sweep says nothing then.",
                 sweep->limit);
    else if (attempt->outcome != SWEEP_ENDS_WELL)
        complain("Without a fault the program %s; a sweep says nothing then.", sweep_outcomes[attempt->outcome]);
}

/* Runs the program without a fault, and counts its calls: it must end, and well. False: it does not, and a message was
 * printed. */
static bool run_once(struct sweep *sweep)
{
    char rule[RULE_MOST];
    unsigned wanted = sweep->seconds ? sweep->seconds : WITHOUT_MOST;
    struct attempt *attempt = &sweep->without;
    *attempt = (struct attempt){.rule = rule, .seconds = seconds_left(sweep, wanted)};
    write_counting(sweep, rule);
    bool ran = run(sweep, attempt);
    attempt->rule = NULL;
    if (attempts_signal())
        return false;
    if (!ran)
        return complain_and(false, "The program can't be run: %s.", strerror(errno));
    report_without(sweep, wanted);
    if (!sweep->seconds)
        sweep->seconds = (unsigned)attempt->took * SECONDS_FACTOR + SECONDS_LEAST;
    sweep->posted = counting_posted(&sweep->counting);
    return attempt->outcome == SWEEP_ENDS_WELL;
}

static void report_untried(const struct sweep *sweep)
{
    if (sweep->unmade)
        printf("%zu calls were not made again in the runs in which they were to fail.\n", sweep->unmade);
    if (sweep->left)
        printf("%zu of %zu faults were not tried%s.\n", sweep->left, sweep->plan.count,
               attempts_signal()   ? ", as a signal ended the sweep"
               : time_is_up(sweep) ? ", as the time was up"
                                   : "");
}

static int sweep_all(struct sweep *sweep, const char *junit)
{
    sweep->began = read_clock_seconds();
    if (!counting_begin(&sweep->counting))
        return complain_and(EXIT_SELF, "There is no memory for a sweep: %s.", strerror(errno));
    if (!run_once(sweep) || !plan_make(&sweep->counting, &sweep->plan))
        return EXIT_NEGATIVE;
    choose_faults(sweep);
    try_all(sweep);
    bool written = !junit || found_write_junit(sweep->found, junit);
    if (!written)
        complain("%s can't be written: %s.", junit, strerror(errno));
    report_untried(sweep);
    free(sweep->plan.faults);
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
    static const struct option options[] = {OPTION("calls", 'c'),
                                            OPTION("completions", 'o'),
                                            OPTION("events", 'e'),
                                            VALUED("error", 'r'),
                                            VALUED("timeout", 't'),
                                            VALUED("most", 'm'),
                                            VALUED("junit", 'j'),
                                            VALUED("resume", 's'),
                                            VALUED("seconds", 'l'),
                                            OPTION("around", 'a'),
                                            OPTIONS_END};
    struct sweep wanted = {.error = "ENOMEM", .most = RUNS_MOST};
    const char *junit = NULL, *state = NULL;
    bool numbers = true;
    for (int option; (option = command_option(command, argc, argv, options)) != -1;) {
        wanted.of[SWEEP_CALLS] |= option == 'c';
        wanted.of[SWEEP_COMPLETIONS] |= option == 'o';
        wanted.of[SWEEP_EVENTS] |= option == 'e';
        wanted.around |= option == 'a';
        wanted.error = option == 'r' ? optarg : wanted.error;
        junit = option == 'j' ? optarg : junit;
        state = option == 's' ? optarg : state;
        wanted.seconds = option == 't' ? read_number(optarg) : wanted.seconds;
        wanted.most = option == 'm' ? read_number(optarg) : wanted.most;
        wanted.limit = option == 'l' ? read_number(optarg) : wanted.limit;
        numbers = numbers && ((option != 't' && option != 'm' && option != 'l') || read_number(optarg));
    }
    if (!numbers)
        return command_misused(command, "--timeout, --most and --seconds need a whole number above 0.");
    if (!is_error(wanted.error))
        return command_misused(command, "\"%s\" is no errno that scripts know, such as ENOMEM.", wanted.error);
    if (optind == argc)
        return command_misused(command, "It needs a program.");
    if (wanted.around && wanted.of[SWEEP_EVENTS])
        return command_misused(command, "--events is for the devices of \"softverbs run\".");
    if (!wanted.of[SWEEP_CALLS] && !wanted.of[SWEEP_COMPLETIONS] && !wanted.of[SWEEP_EVENTS])
        wanted.of[SWEEP_CALLS] = true;
    wanted.program = argv + optind;
    wanted.found = found_open(state, wanted.program, wanted.around);
    if (!wanted.found)
        return complain_and(EXIT_NEGATIVE, "%s can't be used: %s.", state ? state : "Memory",
                            errno == EEXIST ? "it is of another program" : strerror(errno));
    attempts_begin();
    int status = sweep_all(&wanted, junit);
    found_close(wanted.found);
    attempts_end();
    return status;
}

const struct command sweep_command = {
    .name = "sweep",
    .arguments = "[OPTIONS] [--] PROGRAM [ARGUMENTS]",
    .summary = "Let calls of a program fail, another one in each run",
    .help = "  --calls           fail the calls of the program, one in each run: of each call\n"
            "                    at each place of the program the first, the last and one in\n"
            "                    the middle; calls that poll are left out. The default\n"
            "  --completions     the same with work, which ends in IBV_WC_RETRY_EXC_ERR\n"
            "  --events          the same with events of completion queues, which come once\n"
            "                    more without a completion; the program must end with 0 then\n"
            "  --around          run the program by \"softverbs around\", on this machine's\n"
            "                    RDMA devices: calls and completions alone\n"
            "  --error NAME      fail calls with this errno instead of ENOMEM\n"
            "  --timeout SECONDS take a run for hung after this time, by default ten times\n"
            "                    the time of a run without a fault, and five seconds\n"
            "  --seconds N       end after this time with the sum until then, as at Ctrl-C\n"
            "  --most N          make at most N runs of each kind, 1000 by default\n"
            "  --junit FILE      write a report as JUnit XML\n"
            "  --resume FILE     keep each run in the file, and leave out those in it\n"
            "\n"
            "It lists the faults that make the program crash or hang, or end with 0 as if\n"
            "nothing had been lost; of programs built with AddressSanitizer also those that\n"
            "make it leak. A call that only gives something back, such as ibv_dealloc_pd, may\n"
            "fail unnoticed. A program that ends with 0 has gone on another way if it writes\n"
            "to its standard output what it writes without a fault, numbers aside, or posts\n"
            "as much work. The exit status is 0 when the list is empty.\n",
    .runs_rest = true,
    .run = sweep,
};
