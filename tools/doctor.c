#include <stdio.h>

#include "checks.h"
#include "command.h"

static const struct {
    const char *name;
    check *look;
} checks[] = {
    {"library", check_library},
    {"other library", check_other_library},
    {"symbols", check_symbols},
    {"left behind", check_left_behind},
    {"settings", check_settings},
    {"directory", check_directory},
    {"kernel paths", check_paths},
    {"shared memory", check_shared_memory},
    {"sealed memory", check_sealed_memory},
    {"single copy", check_reading},
    {"processors", check_processors},
    {"descriptors", check_descriptors},
    {"real devices", check_devices},
    {"namespaces", check_namespaces},
};

static int doctor(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    static const char *const words[] = {"ok", "warning", "problem"};
    enum verdict worst = VERDICT_OK;
    command_option(command, argc, argv, options);
    if (optind < argc)
        return command_misused(command, "It takes no argument.");
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        char say[1024] = "";
        enum verdict verdict = checks[i].look(say, sizeof say);
        printf("%-8s %-14s %s\n", words[verdict], checks[i].name, say);
        worst = verdict > worst ? verdict : worst;
    }
    return worst == VERDICT_PROBLEM ? EXIT_NEGATIVE : EXIT_OK;
}

const struct command doctor_command = {
    .name = "doctor",
    .arguments = "",
    .summary = "Say what this machine lacks, what that costs and what cures it",
    .help = "Each line is ok, a warning (it works, but slower or for fewer programs) or a problem (it can't work).\n"
            "What no check can see: set-uid programs, programs with file capabilities and static programs ignore the\n"
            "environment that \"softverbs run\" prepares; see \"softverbs help run\".\n"
            "\n"
            "Exit status: 0 when softverbs works here, 1 when there is a problem.\n",
    .run = doctor,
};
