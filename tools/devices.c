#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>

#include "command.h"
#include "config/config.h"
#include "config/device_identity.h"
#include "config/link_layer.h"
#include "ipc/node.h"
#include "ipc/place/admin_port.h"
#include "print/emit.h"
#include "print/table.h"

enum { GUID_ROOM = 20, ROCE_COLUMNS = 6 };

static json_t *describe_gids(const struct device *device)
{
    char text[INET6_ADDRSTRLEN];
    const struct device_state *now = device_now(device);
    json_t *gids = json_array();
    for (unsigned i = 0; i < now->gid_count; i++)
        json_array_append_new(gids, emit_text(inet_ntop(AF_INET6, now->gids[i].raw, text, sizeof text)));
    return gids;
}

static void write_guid(const uint8_t guid[8], char to[GUID_ROOM])
{
    snprintf(to, GUID_ROOM, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1], guid[2], guid[3], guid[4], guid[5],
             guid[6], guid[7]);
}

static bool is_down(const struct device *device)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    return !device_now(device)->up || (node_directory(directory) && admin_port_is_down(directory, device->name));
}

/* Adds a row for each GID; the first row has what belongs to the device. */
static void add_device(struct table *table, const struct device *device)
{
    char guid[GUID_ROOM], gid[INET6_ADDRSTRLEN];
    const struct device_state *now = device_now(device);
    write_guid(device->guid, guid);
    for (unsigned i = 0; i < now->gid_count; i++) {
        table_add(table, "%s", i ? "" : device->name);
        table_add(table, "%s", i ? "" : guid);
        table_add(table, "%s", i ? "" : is_down(device) ? "DOWN" : "ACTIVE");
        if (i)
            table_add(table, "%s", "");
        else
            table_add(table, "%s%u", IDENTITY_DEVICE_NODE, device->index);
        table_add(table, "%u", i);
        table_add(table, "%s", inet_ntop(AF_INET6, now->gids[i].raw, gid, sizeof gid));
        if (table->columns > ROCE_COLUMNS)
            table_add(table, "%u", device->lid);
    }
}

static json_t *describe_device(const struct device *device)
{
    char guid[GUID_ROOM], node[32];
    write_guid(device->guid, guid);
    snprintf(node, sizeof node, "%s%u", IDENTITY_DEVICE_NODE, device->index);
    return json_pack("{s:o, s:s, s:s, s:s, s:o, s:i, s:o, s:s, s:i}", "name", emit_text(device->name), "guid", guid,
                     "port", is_down(device) ? "DOWN" : "ACTIVE", "node", node, "interface",
                     emit_text(*device->interface ? device->interface : NULL), "mtu", (int)device_now(device)->mtu,
                     "gids", describe_gids(device), "link_layer", link_layer_name(device), "lid", (int)device->lid);
}

static int devices_as_json(const struct device *list, unsigned count)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(all, describe_device(&list[i]));
    emit(all);
    return EXIT_OK;
}

static int devices(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("json", 'j'), OPTIONS_END};
    static const char *const headings[2][ROCE_COLUMNS + 1] = {
        {"DEVICE", "GUID", "PORT 1", "NODE", "GID", "ADDRESS (RoCE v2)"},
        {"DEVICE", "GUID", "PORT 1", "NODE", "GID", "ADDRESS", "LID"}};
    bool infiniband = config_is_infiniband();
    struct table table = {.columns = ROCE_COLUMNS + infiniband};
    unsigned count;
    bool as_json = false;
    while (command_option(command, argc, argv, options) != -1)
        as_json = true;
    if (optind < argc)
        return command_misused(command, "It takes no argument.");
    const struct device *list = config_devices(&count);
    if (as_json)
        return devices_as_json(list, count);
    for (size_t i = 0; i < table.columns; i++)
        table_add(&table, "%s", headings[infiniband][i]);
    for (unsigned i = 0; i < count; i++)
        add_device(&table, &list[i]);
    table_print(&table, stdout);
    return EXIT_OK;
}

const struct command devices_command = {
    .name = "devices",
    .arguments = "[--json]",
    .summary = "List the devices that programs see under softverbs run",
    .help = "  --json            print a JSON list (docs/reference/json.md)\n"
            "\n"
            "SOFTVERBS_DEVICES and SOFTVERBS_CONFIG set the devices; \"softverbs run --\n"
            "ibv_devinfo -v\" shows all of their attributes. Devices of the kernel are not\n"
            "among them and stay hidden from programs.\n",
    .run = devices,
};
