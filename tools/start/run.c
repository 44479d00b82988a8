/* softverbs run: prepares the environment and becomes the program. No other process stays, so the program's exit
 * status, signals, terminal and streams are its own. With --trace this process stays, and writes the trace. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "command.h"
#include "config/config.h"
#include "ipc/node.h"
#include "ipc/place/admin_port.h"
#include "prepare.h"
#include "start/become.h"
#include "trace/trace.h"
#include "unopened/begin.h"

static int become_run(char **argv)
{
    unopened_begin(argv);
    return become(argv);
}

/* A port that was put down stays so for later programs; a line says so at a terminal, unless --quiet was given. */
static void tell_of_ports(void)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    const char *log = setting_environment(SETTING_LOG);
    if (!isatty(STDERR_FILENO) || (log && !strcmp(log, "none")) || !node_directory(directory))
        return;
    CONFIG_EACH (device)
        if (admin_port_is_down(directory, device->name))
            complain("The port of %s is down since \"softverbs event port-down %s\"; port-up brings it back.",
                     device->name, device->name);
}

enum { OPTION_TRACE = PREPARE_OPTIONS_END, OPTION_TRACE_FILE };

static const struct option own_options[] = {
    {"trace", optional_argument, NULL, OPTION_TRACE}, VALUED("trace-file", OPTION_TRACE_FILE), {}};

/* The command's own options. */
struct choice {
    bool without_paths, traced;
    const char *calls, *trace_file; /* NULL: all, to standard error */
};

/* 0, or the exit status after a sentence. */
static int take_option(const struct command *command, int option, struct choice *choice)
{
    choice->traced |= option == OPTION_TRACE || option == OPTION_TRACE_FILE;
    choice->without_paths |= option == PREPARE_NO_PATHS;
    if (option == OPTION_TRACE)
        choice->calls = optarg;
    else if (option == OPTION_TRACE_FILE && !*optarg)
        return command_misused(command, "The value of --trace-file is empty. Leave the option out for stderr.");
    else if (option == OPTION_TRACE_FILE)
        choice->trace_file = optarg;
    else if (option != PREPARE_NO_PATHS)
        return prepare_option(command, option, optarg);
    return 0;
}

static int run(const struct command *command, int argc, char **argv)
{
    const struct option *options = prepare_options(own_options);
    struct choice choice = {0};
    int option, status = 0;
    while (!status && (option = command_option(command, argc, argv, options)) != -1)
        status = take_option(command, option, &choice);
    if (!status && optind == argc)
        status = command_misused(command, "It needs a program to run.");
    if (!status)
        status = prepare_environment(command, !choice.without_paths);
    if (!status)
        tell_of_ports();
    if (!status && choice.traced)
        return trace_run(choice.calls, choice.trace_file, become_run, argv + optind);
    return status ? status : become_run(argv + optind);
}

const struct command run_command = {
    .name = "run",
    .arguments = "[OPTIONS] [--] PROGRAM [ARGUMENTS]...",
    .summary = "Run an unmodified program on software RDMA devices",
    .print_options = prepare_print_help,
    .help = "  -q, --quiet       log nothing (SOFTVERBS_LOG=none)\n"
            "  --no-paths        preload nothing: provide no /dev/infiniband, no\n"
            "                    /sys/class/infiniband and no rdma(8), and obey a DT_RPATH\n"
            "  --trace[=CALLS]   write each call of verbs and librdmacm, or these calls, with\n"
            "                    commas between them, to stderr (softverbs help trace)\n"
            "  --trace-file FILE write the trace to this file instead of stderr\n"
            "\n"
            "The program replaces this command (with --trace it is a child of it): exit\n"
            "status, signals, terminal and standard streams are its own. It and all that it\n"
            "starts find the libraries through LD_LIBRARY_PATH, and through LD_PRELOAD where\n"
            "a DT_RPATH leads to others; only programs that load libibverbs.so.1 by a path do\n"
            "not. Through another preloaded library they see /dev/infiniband and\n"
            "/sys/class/infiniband* as a kernel with such devices would show them. The\n"
            "kernel's own RDMA devices are hidden. Only opening such a path by its name is\n"
            "redirected: the listings of /dev and of /sys/class do not show them, and neither\n"
            "do programs without libc (written in Go, static; \"softverbs sysfs DIR\" is for\n"
            "those). The first \"rdma\" in $PATH shows these devices (link, dev,\n"
            "resource and statistic show) and leaves everything else to iproute2's.\n"
            "\n"
            "At a terminal a line says at the end that no process opened a device, if the\n"
            "program has started others and none did, nor one of another run meanwhile.\n"
            "\n"
            "NCCL_GIN_TYPE is set to 2 where it is unset, as NCCL 2.28 (PyTorch 2.9 to 2.11)\n"
            "crashes without it on devices other than mlx5.\n"
            "\n"
            "Set-uid programs, programs with file capabilities and static programs ignore\n"
            "both variables and run without softverbs (\"softverbs doctor PROGRAM\" says so),\n"
            "as do programs that sudo starts: write \"sudo softverbs run -- PROGRAM\". For\n"
            "programs of another architecture or another libc use --no-paths; they would\n"
            "complain about the preloaded libraries.\n"
            "\n"
            "Exit status: the program's; 127 when it does not exist, 126 when it can't be\n"
            "executed, 125 when softverbs could not do its part, 2 for a bad option; in these\n"
            "cases a sentence on stderr says why.\n",
    .runs_rest = true,
    .letters = "q",
    .run = run,
};
