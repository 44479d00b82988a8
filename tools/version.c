#include <stdio.h>

#include "command.h"
#include "ipc/node.h"
#include "version.h"

static int version(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    command_option(command, argc, argv, options);
    if (optind < argc)
        return command_misused(command, "It takes no argument.");
    printf("softverbs %s\n"
           "built from %s\n"
           "symbols of rdma-core 25 to 65: %s\n"
           "built with the headers of rdma-core %s\n"
           "layout %u of the directory where processes meet\n",
           VERSION, VERSION_SOURCE, VERSION_NODES, VERSION_RDMA_CORE, node_layout());
    return EXIT_OK;
}

const struct command version_command = {
    .name = "version",
    .arguments = "",
    .summary = "Say which softverbs this is and whose binary interface it offers",
    .help = "",
    .run = version,
};
