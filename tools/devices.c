#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "config/config.h"
#include "config/identity.h"
#include "ipc/node.h"
#include "ipc/port.h"
#include "table.h"

static void add_gid(struct table *table, const union ibv_gid *gid)
{
    char text[INET6_ADDRSTRLEN];
    table_add(table, "%s", inet_ntop(AF_INET6, gid->raw, text, sizeof text));
}

static bool is_down(const struct device *device)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    return node_directory(directory) && port_is_down(directory, device->name);
}

/* One row a GID; what belongs to the device stands in the first. */
static void add_device(struct table *table, const struct device *device)
{
    const uint8_t *guid = device->guid;
    for (unsigned i = 0; i < device->gid_count; i++) {
        table_add(table, "%s", i ? "" : device->name);
        if (i)
            table_add(table, "%s", "");
        else
            table_add(table, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1], guid[2], guid[3], guid[4],
                      guid[5], guid[6], guid[7]);
        table_add(table, "%s", i ? "" : is_down(device) ? "DOWN" : "ACTIVE");
        if (i)
            table_add(table, "%s", "");
        else
            table_add(table, "%s%u", IDENTITY_DEVICE_NODE, device->index);
        table_add(table, "%u", i);
        add_gid(table, &device->gids[i]);
    }
}

static int devices(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    static const char *const heading[] = {"DEVICE", "GUID", "PORT 1", "NODE", "GID", "ADDRESS (RoCE v2)"};
    struct table table = {.columns = sizeof heading / sizeof *heading};
    unsigned count;
    command_option(command, argc, argv, options);
    if (optind < argc)
        return command_misused(command, "It takes no argument.");
    const struct device *list = config_devices(&count);
    for (size_t i = 0; i < table.columns; i++)
        table_add(&table, "%s", heading[i]);
    for (unsigned i = 0; i < count; i++)
        add_device(&table, &list[i]);
    table_print(&table, stdout);
    return EXIT_OK;
}

const struct command devices_command = {
    .name = "devices",
    .arguments = "",
    .summary = "List the devices that programs see under softverbs run",
    .help =
        "SOFTVERBS_DEVICES and SOFTVERBS_CONFIG say which they are; \"softverbs run -- ibv_devinfo -v\" tells all of\n"
        "them. Devices that the kernel has are not among them and stay hidden from programs.\n",
    .run = devices,
};
