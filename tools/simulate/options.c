#include "simulate/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_options.h"
#include "prepare.h"
#include "simulate/debug.h"

enum {
    OPTION_SEED = PREPARE_OPTIONS_END,
    OPTION_SEEDS,
    OPTION_UNTIL_FAILURE,
    OPTION_VERIFY,
    OPTION_REPLAY,
    OPTION_SAVE,
    OPTION_SHRINK,
    OPTION_EVERY,
    OPTION_STRATEGY,
    OPTION_LIMIT,
    OPTION_PATIENCE,
    OPTION_HOSTS,
    OPTION_LINK,
    OPTION_TOPOLOGY,
    OPTION_CARRY,
    OPTION_GDB
};

/* clang-format off */
static const struct option own_options[] = {
    VALUED("seed", OPTION_SEED), VALUED("seeds", OPTION_SEEDS), OPTION("until-failure", OPTION_UNTIL_FAILURE),
    OPTION("verify", OPTION_VERIFY), VALUED("replay", OPTION_REPLAY), VALUED("save", OPTION_SAVE),
    VALUED("shrink", OPTION_SHRINK), VALUED("every", OPTION_EVERY), VALUED("strategy", OPTION_STRATEGY),
    VALUED("limit", OPTION_LIMIT), VALUED("patience", OPTION_PATIENCE),
    VALUED("hosts", OPTION_HOSTS), VALUED("link", OPTION_LINK), VALUED("topology", OPTION_TOPOLOGY),
    OPTION("carry", OPTION_CARRY), VALUED("gdb", OPTION_GDB), {}};
/* clang-format on */

const char *const sim_strategy_words[SIM_STRATEGIES] = {"uniform", "priorities", "starvation"};

/* False: `text` is no number from `least` to `most`. */
static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *to)
{
    char *end;
    errno = 0;
    *to = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *to >= least && *to <= most;
}

static int take_number(const struct command *command, const char *option, uint64_t least, uint64_t most, uint64_t *to)
{
    if (read_number(optarg, least, most, to))
        return 0;
    return command_misused(command, "--%s \"%s\": It is a number from %" PRIu64 " to %" PRIu64 ".", option, optarg,
                           least, most);
}

static int take_strategy(const struct command *command, struct sim_choice *choice)
{
    for (unsigned i = 0; i < SIM_STRATEGIES; i++)
        if (!strcmp(optarg, sim_strategy_words[i])) {
            choice->strategy = (enum sim_strategy)i;
            return 0;
        }
    return command_misused(command, "There is no strategy \"%s\". There are uniform, priorities and starvation.",
                           optarg);
}

/* FIRST..LAST */
static int take_seeds(const struct command *command, struct sim_options *options)
{
    char first[32];
    const char *dots = strstr(optarg, "..");
    options->task = SIM_SEEDS;
    if (dots && (size_t)(dots - optarg) < sizeof first) {
        memcpy(first, optarg, (size_t)(dots - optarg));
        first[dots - optarg] = '\0';
        if (read_number(first, 0, UINT64_MAX, &options->first) &&
            read_number(dots + 2, options->first, UINT64_MAX, &options->last))
            return 0;
    }
    return command_misused(command, "--seeds \"%s\": It is a range, as in 1..1000.", optarg);
}

/* Options of one run that are numbers. */
static int take_count(const struct command *command, int option, struct sim_choice *choice)
{
    static const struct {
        const char *name;
        uint64_t most;
    } counts[] = {{"every", UINT32_MAX}, {"limit", 86400}, {"patience", 60000}};
    const int which = option == OPTION_EVERY ? 0 : option == OPTION_LIMIT ? 1 : 2;
    uint64_t number;
    int status = take_number(command, counts[which].name, 1, counts[which].most, &number);
    if (status)
        return status;
    *(which == 0 ? &choice->every : which == 1 ? &choice->limit : &choice->patience) = (uint32_t)number;
    return 0;
}

/* Options about hosts and links, and the options of `run`. */
static int take_more(const struct command *command, int option, struct sim_options *options)
{
    if (option == OPTION_HOSTS)
        return lab_set_hosts(command, &options->plan, optarg);
    if (option == OPTION_LINK)
        return lab_add_link(command, &options->plan, optarg);
    if (option == OPTION_TOPOLOGY)
        options->plan.topology = optarg;
    else if (option == OPTION_CARRY)
        options->task = SIM_CARRY;
    else
        return prepare_option(command, option, optarg);
    return 0;
}

/* 0, or the exit status after a sentence. */
static int take_option(const struct command *command, int option, struct sim_options *options)
{
    switch (option) {
    case OPTION_SEED:
        return take_number(command, "seed", 0, UINT64_MAX, &options->choice.seed);
    case OPTION_SEEDS:
        return take_seeds(command, options);
    case OPTION_UNTIL_FAILURE:
        options->until_failure = true;
        return 0;
    case OPTION_VERIFY:
        options->task = SIM_VERIFY;
        return 0;
    case OPTION_REPLAY:
        options->replay = optarg;
        return 0;
    case OPTION_SHRINK:
        options->task = SIM_SHRINK;
        __attribute__((fallthrough));
    case OPTION_SAVE:
        options->save = optarg;
        return 0;
    case OPTION_STRATEGY:
        return take_strategy(command, &options->choice);
    case OPTION_EVERY:
    case OPTION_LIMIT:
    case OPTION_PATIENCE:
        return take_count(command, option, &options->choice);
    case OPTION_GDB:
        options->choice.gdb = optarg;
        return debug_check(command, optarg);
    case PREPARE_NO_PATHS:
        options->choice.without_paths = true;
        return 0;
    default:
        return take_more(command, option, options);
    }
}

/* +500ms, +2s, +10us: when the program begins. Returns the first word of the program. */
static char **take_moment(char **words, struct sim_program *program)
{
    static const struct {
        const char *unit;
        uint64_t nanos;
    } units[] = {{"ms", 1000000}, {"us", 1000}, {"s", 1000000000}};
    char *unit;
    if (!*words || **words != '+')
        return words;
    uint64_t number = strtoull(*words + 1, &unit, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (unit > *words + 1 && !strcmp(unit, units[i].unit)) {
            program->from = number * units[i].nanos;
            return words + 1;
        }
    return words;
}

/* @h2: the host of the program. NULL after a sentence. */
static char **take_host(const struct command *command, char **words, const struct lab_plan *plan,
                        struct sim_program *program)
{
    if (!plan->count || !*words || **words != '@')
        return words;
    program->host = lab_plan_find(plan, *words + 1);
    if (program->host < plan->count)
        return words + 1;
    command_misused(command, "\"%s\": The run has no host \"%s\".", *words, *words + 1);
    return NULL;
}

/* Programs have --- between them. */
static int take_programs(const struct command *command, char **words, const struct lab_plan *plan,
                         struct sim_choice *choice)
{
    while (*words) {
        if (choice->count == SIM_PROGRAMS)
            return command_misused(command, "There are more than %d programs.", SIM_PROGRAMS);
        struct sim_program *program = &choice->programs[choice->count++];
        words = take_host(command, words, plan, program);
        if (!words)
            return EXIT_USAGE;
        program->words = take_moment(words, program);
        while (*words && strcmp(*words, "---"))
            words++;
        if (*words)
            *words++ = NULL;
        if (!*program->words)
            return command_misused(command, "There is no program before or after ---.");
    }
    return choice->count ? 0 : command_misused(command, "It needs a program to run.");
}

/* Frames between hosts take a moment, unless the links say otherwise. */
static int plan_hosts(const struct command *command, struct sim_options *options)
{
    static struct network network;
    char why[256];
    if (!options->plan.count && (options->plan.link_count || options->plan.topology || options->task == SIM_CARRY))
        return command_misused(command, "Links are between hosts: --hosts says how many there are.");
    if (!options->plan.count)
        return 0;
    options->choice.network = &network;
    if (!network_make(&network, &options->plan) || !network_change(&network, "all", "delay=1us", why, sizeof why))
        return command_misused(command, "There is not enough memory for so many hosts.");
    return lab_plan_links(command, &options->plan, &network);
}

int options_read(const struct command *command, int argc, char **argv, struct sim_options *options)
{
    const struct option *all = prepare_options(own_options);
    int option, status = 0;
    *options = (struct sim_options){.choice = {.seed = 1, .strategy = SIM_STRATEGIES, .limit = 120, .patience = 20}};
    while (!status && (option = command_option(command, argc, argv, all)) != -1)
        status = take_option(command, option, options);
    if (!status)
        status = plan_hosts(command, options);
    if (status || options->task == SIM_CARRY)
        return status;
    if (options->choice.gdb && options->task != SIM_ONCE)
        return command_misused(command, "--gdb is for one run, without --seeds, --verify and --shrink.");
    return take_programs(command, argv + optind, &options->plan, &options->choice);
}
