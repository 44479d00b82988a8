#include <stdio.h>

#include "checks.h"
#include "command.h"

static const struct {
    const char *name;
    check *look;
    bool gpu; /* only where there is a driver of one */
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
    {"doorbells", check_doorbells},
    {"processors", check_processors},
    {"descriptors", check_descriptors},
    {"real devices", check_devices},
    {"namespaces", check_namespaces},
    {"nccl", check_nccl},
    {"gpu", check_gpu},
    {"gpu memory", check_gpu_memory, true},
    {"gpu and nccl", check_gpu_nccl, true},
    {"gpu and ucx", check_gpu_ucx, true},
    {"packages", check_packages},
};

static void look_at_machine(void)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        char say[1024] = "";
        if (checks[i].gpu && !checks_have_gpu())
            continue;
        enum verdict verdict = checks[i].look(say, sizeof say);
        check_say(verdict, checks[i].name, "%s", say);
    }
}

static int doctor(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("json", 'j'), OPTION("around", 'a'), VALUED("net", 'n'),
                                            OPTIONS_END};
    const char *interface = NULL;
    bool as_json = false, around = false;
    int option;
    while ((option = command_option(command, argc, argv, options)) != -1)
        if (option == 'n') {
            interface = optarg;
        } else {
            around |= option == 'a';
            as_json |= option == 'j';
        }
    if (argc - optind > 1)
        return command_misused(command, "It looks at one program at a time.");
    if (around && optind == argc)
        return command_misused(command, "--around is about a program.");
    if (optind < argc)
        check_program(argv[optind], around);
    if (interface)
        check_network(interface);
    if (!interface && optind == argc)
        look_at_machine();
    return findings_print(as_json) == VERDICT_PROBLEM ? EXIT_NEGATIVE : EXIT_OK;
}

const struct command doctor_command = {
    .name = "doctor",
    .arguments = "[--json] [--net INTERFACE] [[--around] PROGRAM]",
    .summary = "Say what this machine, a program or a network lacks, and the cure",
    .help = "  --net INTERFACE   check this network interface instead of the machine: its\n"
            "                    MTU, owner of UDP port 4791, firewall, path filter, buffers\n"
            "  --around          say what \"softverbs around\" meets: which libibverbs the\n"
            "                    program loads, drivers, devices, and what goes past it\n"
            "  --json            print a JSON list (docs/reference/json.md)\n"
            "\n"
            "With the name of a program it says whether \"softverbs run\" reaches it (static,\n"
            "set-uid, RPATH), which libibverbs and librdmacm it will load, and which\n"
            "functions it will lack. The program is not started.\n"
            "\n"
            "Each line is ok, a warning (it works, but slower or for fewer programs) or a\n"
            "problem (it can't work).\n"
            "\n"
            "Exit status: 0, or 1 when there is a problem.\n",
    .run = doctor,
};
