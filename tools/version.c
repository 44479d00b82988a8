#include <stdbool.h>
#include <stdio.h>

#include "command.h"
#include "ipc/node.h"
#include "print/emit.h"
#include "print/screen.h"
#include "version.h"

static int version(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("json", 'j'), OPTIONS_END};
    bool as_json = false;
    while (command_option(command, argc, argv, options) != -1)
        as_json = true;
    if (optind < argc)
        return command_misused(command, "It takes no argument.");
    if (as_json) {
        emit(json_pack("{s:s, s:s, s:s, s:s, s:i}", "version", VERSION, "source", VERSION_SOURCE, "symbols",
                       VERSION_NODES, "headers", VERSION_RDMA_CORE, "layout", (int)node_layout()));
        return EXIT_OK;
    }
    printf("softverbs %s\nbuilt from %s\n", VERSION, VERSION_SOURCE);
    screen_wrap(stdout, screen_width(stdout), 0, 4, "symbols of rdma-core 25 to 65: " VERSION_NODES);
    printf("built with the headers of rdma-core %s\nlayout %u of the directory where processes meet\n",
           VERSION_RDMA_CORE, node_layout());
    return EXIT_OK;
}

const struct command version_command = {
    .name = "version",
    .arguments = "[--json]",
    .summary = "Say which softverbs this is and whose interface it offers",
    .help = "  --json            print a JSON object (docs/reference/json.md)\n",
    .run = version,
};
