/* softverbs sim: programs run one thread at a time, in virtual time, in an order that a seed decides. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "prepare.h"
#include "simulate/fitness.h"
#include "simulate/once.h"
#include "simulate/options.h"
#include "simulate/seeds.h"
#include "simulate/shrink.h"
#include "simulate/space/hosts.h"
#include "simulate/turns.h"
#include "simulate/verify.h"

#ifndef HAS_SIM /* lib/meson.build */
#define HAS_SIM 0
#endif

/* One run, whose turns are kept where the user wants that. */
static int run_one(const struct command *command, const struct sim_options *options, struct once *once)
{
    int status = once_run(command, &options->choice, once, false);
    if (!once->has_run)
        return status;
    once_sum_up(&options->choice, once);
    if (!options->save)
        return status;
    if (once->turns_lost)
        return complain_and(EXIT_SELF, "sim: The run has more than %d turns, which is too many to save.", SIM_TURNS);
    const struct turns_file file = {options->choice.seed, once->turn_count, once->turns};
    return turns_write(options->save, &file) ? status : EXIT_SELF;
}

static int do_task(const struct command *command, const struct sim_options *options)
{
    if (options->task == SIM_SEEDS)
        return seeds_run(command, options);
    if (options->task == SIM_SHRINK)
        return shrink_run(command, options);
    if (options->task == SIM_VERIFY)
        return verify_run(command, options);
    struct once *once = once_make();
    return once ? run_one(command, options, once) : EXIT_SELF;
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct sim_options options;
    struct turns_file file = {0};
    int status = options_read(command, argc, argv, &options);
    if (status)
        return status;
    if (options.task == SIM_CARRY)
        return hosts_carry(options.choice.network);
    if (!HAS_SIM)
        return complain_and(EXIT_SELF, "sim: This build can't simulate, as that takes x86-64 and glibc.");
    for (unsigned i = 0; i < options.choice.count; i++)
        if (!fitness_check(*options.choice.programs[i].words))
            return EXIT_NOT_EXECUTABLE;
    if (options.replay && !turns_read(options.replay, &file))
        return EXIT_USAGE;
    if (options.replay) {
        options.choice.seed = file.seed;
        options.choice.turns = file.turns;
        options.choice.turn_count = file.count;
    }
    status = do_task(command, &options);
    free(file.turns);
    return status;
}

const struct command sim_command = {
    .name = "sim",
    .arguments = "[OPTIONS] [--] PROGRAM... [--- [+TIME] PROGRAM...]...",
    .summary = "Run programs in virtual time, one thread at a time, as a seed says",
    .print_options = prepare_print_help,
    .help = "  --seed N          the same seed gives the same order and the same output (1)\n"
            "  --seeds A..B      run each of these seeds, one on each processor, and print a\n"
            "                    table: how they end, how many, and the first seed of each\n"
            "  --until-failure   begin no further seed when one has not ended with 0\n"
            "  --verify          run the seed twice; status 1 if the runs differ\n"
            "  --save FILE       write the turns of the run: the choices that the seed made\n"
            "  --replay FILE     take the turns from the file, and its seed\n"
            "  --shrink FILE     find the fewest turns that end the run as it ended, and\n"
            "                    write them; name rules of faults that it does not need\n"
            "  --strategy WORD   how the seed chooses: uniform, priorities or starvation;\n"
            "                    otherwise by the seed, in turn\n"
            "  --every N         uniform: at one in N points another thread may go on;\n"
            "                    otherwise the seed draws N from 4 to 1024\n"
            "  --hosts N         make N hosts, h1, h2, ..., like \"softverbs lab\"; a program\n"
            "                    after @h2 runs on the second, others on the first\n"
            "  --link WORDS      set the quality of links, like \"softverbs lab\", in virtual\n"
            "                    time and by the seed; sockets=2ms delays what is not RoCE\n"
            "  --topology FILE   like \"softverbs lab\"\n"
            "  --carry           carry the frames between hosts; a run starts this by itself\n"
            "  --gdb PROCESS     let gdb, at this terminal, have a process: its number in\n"
            "                    reports (the first program is 2), or a program's name.\n"
            "                    Time stands still where gdb stops it\n"
            "  --limit SECONDS   of real time, after which the run is stopped (120)\n"
            "  --patience MS     of processor time for which a thread may run without a call,\n"
            "                    before it counts as a loop over memory (20)\n"
            "\n"
            "Programs run on one virtual host, or on several, in namespaces of their own. A\n"
            "program after --- begins with the others, or later in virtual time: --- +500ms\n"
            "PROGRAM, or --- @h2 +500ms PROGRAM.\n"
            "Time passes only when no thread can run, and little with each decision, so a\n"
            "program that sleeps for 10 s ends in some milliseconds. The last line has what\n"
            "two runs of a seed share: virtual time, decisions and a hash of all decisions.\n"
            "A run in which loops over memory were stopped need not repeat.\n"
            "\n"
            "Exit status: the largest of the programs'; 3 when no thread can run (deadlock),\n"
            "4 when all look again and again and find nothing (livelock), 124 after the\n"
            "limit, 127 when a program does not exist, 126 when it can't be executed or\n"
            "simulated, 125 when softverbs could not do its part, 2 for a bad option. Each\n"
            "has a sentence on stderr; 3 and 4 have the stack of each thread that waits.\n",
    .runs_rest = true,
    .letters = "q",
    .run = run,
};
