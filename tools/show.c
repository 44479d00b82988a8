/* softverbs show: each live process on this host is asked for its report, which src/report/report.c writes. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "ipc/node.h"
#include "objects.h"
#include "reports.h"

static int show_directory(const char *directory, const char *what, bool as_json)
{
    char why[512];
    json_t *reports = reports_collect(directory, why, sizeof why);
    if (!reports)
        complain("%s", why);
    else if (as_json)
        json_dumpf(reports, stdout, JSON_INDENT(2)), puts("");
    else if (!json_array_size(reports))
        puts("No process has a softverbs device open.");
    else
        objects_print(reports, what);
    json_decref(reports);
    return reports ? EXIT_OK : EXIT_NEGATIVE;
}

static int show(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"dir", required_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'}, {0}};
    char directory[NODE_DIRECTORY_MAX + 1];
    bool as_json = false;
    int option;
    while ((option = command_option(command, argc, argv, options)) != -1)
        if (option == 'j')
            as_json = true;
        else if (setenv("SOFTVERBS_DIR", optarg, 1))
            return EXIT_NEGATIVE;
    const char *what = optind < argc ? argv[optind++] : NULL;
    if (what && (optind < argc || !objects_exist(what)))
        return command_misused(command, "It shows %s.", objects_known());
    if (!node_directory(directory))
        return command_misused(command, "The directory's name is too long: $SOFTVERBS_DIR may have %d bytes.",
                               NODE_DIRECTORY_MAX);
    return show_directory(directory, what, as_json);
}

const struct command show_command = {
    .name = "show",
    .arguments = "[--json] [--dir DIR] [processes|qps|cqs|srqs|tags|mrs|pds|connections]",
    .summary =
        "Show the objects of the live processes on this host: queue pairs and their peers, queues, memory, connections",
    .help = "  --json            everything, as one JSON array with an object for each process\n"
            "  --dir DIR         of the processes that meet in this directory  (SOFTVERBS_DIR=DIR)\n"
            "\n"
            "Connections are what programs of librdmacm listen at, connect to and are connected with.\n"
            "Without an argument it shows processes and queue pairs. A process answers from its own memory while it\n"
            "works; one that is stopped does not answer. Only processes of the same user can be seen.\n",
    .run = show,
};
