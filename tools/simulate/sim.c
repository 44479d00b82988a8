/* softverbs sim: programs run one thread at a time, in virtual time, in an order that a seed decides. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "command.h"
#include "lab/follow_child.h"
#include "place.h"
#include "prepare.h"
#include "sim/choose.h"
#include "simulate/choice.h"
#include "simulate/space.h"
#include "simulate/watch.h"
#include "start/become.h"

#ifdef __x86_64__
enum { IS_SIMULATED = true };
#else
enum { IS_SIMULATED = false };
#endif

static const char memory_path[] = "/dev/shm/softverbs-sim";

/* --- the environment of the programs */

/* Payloads move at events alone: a copy by another process would be seen at a moment that the seed does not choose. */
static int set_standards(const struct sim_choice *choice)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, choice->seed);
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv(setting_lines[SETTING_DIR].variable);
    return setenv(setting_lines[SETTING_SEED].variable, seed, 0) ||
           setenv(setting_lines[SETTING_DIRECT].variable, "0", 0) ||
           setenv(setting_lines[SETTING_NO_PULL].variable, "1", 0) || setenv(SIM_VARIABLE, memory_path, 1);
}

static int prepare(const struct command *command, const struct sim_choice *choice)
{
    char directory[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 32], why[512];
    if (set_standards(choice))
        return complain_and(EXIT_SELF, "There is not enough memory to prepare the programs' environment.");
    int status = prepare_environment(command, !choice->without_paths);
    if (status)
        return status;
    if (place_libraries(directory, why, sizeof why))
        return complain_and(EXIT_SELF, "%s", why);
    snprintf(path, sizeof path, "%s/libsoftverbs-sim.so", directory);
    if (access(path, R_OK))
        return complain_and(EXIT_SELF, "sim: \"%s\" can't be read: %s. Build or install softverbs again.", path,
                            strerror(errno));
    return prepare_preload(path);
}

/* --- the run */

static struct sim_run *make_run(const struct sim_choice *choice)
{
    int file = open(memory_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct sim_run *run = MAP_FAILED;
    if (file >= 0 && !ftruncate(file, sizeof *run))
        run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (run == MAP_FAILED) {
        complain("sim: The memory of the run can't be made: %s.", strerror(errno));
        return NULL;
    }
    sim_begin(run, choice->seed, choice->strategy, choice->every);
    return run;
}

/* Becomes the program when its parent has written its number down. */
static void become_program(const struct sim_thread *thread, char **words, const struct streams *streams)
{
    while (!__atomic_load_n(&thread->pid, __ATOMIC_ACQUIRE))
        sched_yield();
    streams_take(streams);
    _exit(become(words));
}

static void start(struct sim_run *run, const struct sim_program *program, const struct streams *streams)
{
    struct sim_thread *thread = &run->threads[sim_add(run, 0, program->from)];
    pid_t pid = fork();
    if (!pid)
        become_program(thread, program->words, streams);
    __atomic_store_n(&thread->pid, pid, __ATOMIC_RELEASE);
}

/* All threads of a run share one processor: then giving the token on needs no other to wake up. */
static void use_one_processor(void)
{
    cpu_set_t set, one;
    if (sched_getaffinity(0, sizeof set, &set))
        return;
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET(i, &set)) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

static int simulate(const struct command *command, const struct sim_choice *choice)
{
    struct streams streams;
    if (!space_furnish())
        return EXIT_SELF;
    int status = prepare(command, choice);
    struct sim_run *run = status ? NULL : make_run(choice);
    if (!run)
        return status ? status : EXIT_SELF;
    if (!streams_make(&streams))
        return complain_and(EXIT_SELF, "sim: The files for the programs' output can't be made: %s.", strerror(errno));
    use_one_processor();
    personality(ADDR_NO_RANDOMIZE);
    for (unsigned i = 0; i < choice->count; i++)
        start(run, &choice->programs[i], &streams);
    struct sim_end end = watch_run(run, choice, &streams);
    complain("sim: Seed %" PRIu64 ": %.6f virtual seconds, %" PRIu64 " decisions, %" PRIu64
             " loops stopped, hash %016" PRIx64 ".",
             choice->seed, (double)end.now * 1e-9, end.decisions, run->counts.stops, end.hash);
    return end.status;
}

/* --- the command line */

enum { OPTION_SEED = PREPARE_OPTIONS_END, OPTION_EVERY, OPTION_STRATEGY, OPTION_LIMIT, OPTION_PATIENCE };

static const struct option own_options[] = {VALUED("seed", OPTION_SEED),         VALUED("every", OPTION_EVERY),
                                            VALUED("strategy", OPTION_STRATEGY), VALUED("limit", OPTION_LIMIT),
                                            VALUED("patience", OPTION_PATIENCE), {}};

static const char *const strategy_words[SIM_STRATEGIES] = {"uniform", "priorities", "starvation"};

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
        if (!strcmp(optarg, strategy_words[i])) {
            choice->strategy = (enum sim_strategy)i;
            return 0;
        }
    return command_misused(command, "There is no strategy \"%s\". There are uniform, priorities and starvation.",
                           optarg);
}

/* 0, or the exit status after a sentence. */
static int take_option(const struct command *command, int option, struct sim_choice *choice)
{
    uint64_t number = 0;
    int status = 0;
    if (option == OPTION_SEED)
        return take_number(command, "seed", 0, UINT64_MAX, &choice->seed);
    if (option == OPTION_STRATEGY)
        return take_strategy(command, choice);
    if (option == OPTION_EVERY && !(status = take_number(command, "every", 1, UINT32_MAX, &number)))
        choice->every = (uint32_t)number;
    else if (option == OPTION_LIMIT && !(status = take_number(command, "limit", 1, 86400, &number)))
        choice->limit = (unsigned)number;
    else if (option == OPTION_PATIENCE && !(status = take_number(command, "patience", 1, 60000, &number)))
        choice->patience = (unsigned)number;
    else if (option == PREPARE_NO_PATHS)
        choice->without_paths = true;
    else if (!status && option < OPTION_SEED)
        return prepare_option(command, option, optarg);
    return status;
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

/* Programs have --- between them. */
static int take_programs(const struct command *command, char **words, struct sim_choice *choice)
{
    while (*words) {
        if (choice->count == SIM_PROGRAMS)
            return command_misused(command, "There are more than %d programs.", SIM_PROGRAMS);
        struct sim_program *program = &choice->programs[choice->count++];
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

static int run(const struct command *command, int argc, char **argv)
{
    const struct option *options = prepare_options(own_options);
    static struct sim_choice choice = {.seed = 1, .strategy = SIM_STRATEGIES, .limit = 120, .patience = 20};
    char self[PLACE_PATH_MAX];
    int option, status = 0;
    while (!status && (option = command_option(command, argc, argv, options)) != -1)
        status = take_option(command, option, &choice);
    if (!status)
        status = take_programs(command, argv + optind, &choice);
    if (status)
        return status;
    if (!IS_SIMULATED)
        return complain_and(EXIT_SELF, "sim: On this processor softverbs can't simulate; it can on x86-64.");
    (void)place_self(self); /* while the path is the one outside */
    if (!space_enter())
        return EXIT_SELF;
    pid_t child = fork();
    if (!child)
        _exit(simulate(command, &choice));
    return child < 0 ? complain_and(EXIT_SELF, "sim: fork(2): %s.", strerror(errno)) : follow_child(child);
}

const struct command sim_command = {
    .name = "sim",
    .arguments = "[OPTIONS] [--] PROGRAM [ARGUMENTS]... [--- [+TIME] PROGRAM...]",
    .summary = "Run programs one thread at a time, in virtual time, in the order of a seed",
    .print_options = prepare_print_help,
    .help = "  --seed N          the same seed gives the same order and the same output (1)\n"
            "  --strategy WORD   how the seed chooses: uniform, priorities or starvation;\n"
            "                    otherwise by the seed, in turn\n"
            "  --every N         uniform: at one in N points another thread may go on;\n"
            "                    otherwise the seed draws N from 4 to 1024\n"
            "  --limit SECONDS   of real time, after which the run is stopped (120)\n"
            "  --patience MS     of processor time for which a thread may run without a call,\n"
            "                    before it counts as a loop over memory (20)\n"
            "\n"
            "All programs run on one virtual host, in namespaces of their own. A program\n"
            "after --- begins with the others, or later in virtual time: --- +500ms PROGRAM.\n"
            "Time passes only when no thread can run, and little with each decision, so a\n"
            "program that sleeps for 10 s ends in some milliseconds. The last line has what\n"
            "two runs of a seed share: virtual time, decisions and a hash of all decisions.\n"
            "A run in which loops over memory were stopped need not repeat.\n"
            "\n"
            "Exit status: the largest of the programs'; 3 when no thread can run (deadlock),\n"
            "4 when all look again and again and find nothing (livelock), 124 after the\n"
            "limit, 125 when softverbs could not do its part, 2 for a bad option. Each has a\n"
            "sentence on stderr, and the stack of each thread that waits.\n",
    .runs_rest = true,
    .letters = "q",
    .run = run,
};
