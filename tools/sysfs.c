#include "sysfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/device_identity.h"
#include "config/device_state.h"
#include "config/link_layer.h"
#include "config/settings.h"
#include "counters/port.h"
#include "profile/profile.h"

/* A path in the tree, and the function to call for it. */
struct place {
    sysfs_visit *visit;
    void *context;
    char path[160];
};

static void directory(struct place *place, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void file(const struct place *place, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Enters a directory, given from the root. */
static void directory(struct place *place, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    vsnprintf(place->path, sizeof place->path, format, rest);
    va_end(rest);
    place->visit(place->context, SYSFS_DIRECTORY, place->path, NULL);
}

static void entry(const struct place *place, enum sysfs_kind kind, const char *name, const char *text)
{
    char path[sizeof place->path + 64];
    snprintf(path, sizeof path, "%s/%s", place->path, name);
    place->visit(place->context, kind, path, text);
}

static void file(const struct place *place, const char *name, const char *format, ...)
{
    char text[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    entry(place, SYSFS_FILE, name, text);
}

static void number_file(const struct place *place, unsigned number, const char *text)
{
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    file(place, name, "%s", text);
}

/* Sixteen-bit groups in hexadecimal, separated by colons and ended by a newline, as sysfs shows GUIDs and GIDs. */
static const char *groups(char *to, const uint8_t *bytes, unsigned count)
{
    char *end = to;
    for (unsigned i = 0; i < count; i += 2)
        end += sprintf(end, "%02x%02x%c", bytes[i], bytes[i + 1], i + 2 < count ? ':' : '\n');
    return to;
}

/* The kernel's form of a set of processors: 32-bit words in hexadecimal, the highest first. */
static void describe_processors(const struct place *place)
{
    char text[512] = "", *end = text;
    long count = sysconf(_SC_NPROCESSORS_CONF), words = (count + 31) / 32;
    if (count < 1 || words > 50)
        return;
    for (long word = words - 1; word >= 0; word--) {
        long bits = count - word * 32;
        end += sprintf(end, "%08x%c", bits >= 32 ? 0xffffffffu : (1u << bits) - 1, word ? ',' : '\n');
    }
    file(place, "local_cpus", "%s", text);
    file(place, "local_cpulist", count > 1 ? "0-%ld\n" : "%ld\n", count - 1);
}

/* Whose addresses are the port's. */
static const char *interface_of(const struct device *device)
{
    return device->interface[0] ? device->interface : "lo";
}

/* Stands for a PCI function; it has no ids, as there is no PCI device. */
static void describe_parent(struct place *place, const struct device *device)
{
    directory(place, "devices/softverbs/soft%u", device->index);
    file(place, "vendor", "0x0000\n");
    file(place, "device", "0x0000\n");
    file(place, "subsystem_vendor", "0x0000\n");
    file(place, "subsystem_device", "0x0000\n");
    file(place, "numa_node", "-1\n");
    describe_processors(place);
    if (link_layer_is_infiniband(device)) /* its interface would be one of IPoIB */
        return;
    directory(place, "devices/softverbs/soft%u/net", device->index);
    directory(place, "devices/softverbs/soft%u/net/%s", device->index, interface_of(device));
}

struct counter_place {
    struct place *place;
    bool hardware; /* of which directory files are made now */
};

static void describe_counter(void *context, bool hardware, const char *name, uint64_t value)
{
    const struct counter_place *counters = context;
    if (hardware == counters->hardware)
        file(counters->place, name, "%llu\n", (unsigned long long)value);
}

/* `lifespan` is how old numbers may be, in milliseconds. */
static void describe_counters(struct place *place, const char *port)
{
    struct counter_place counters = {.place = place};
    directory(place, "%s/counters", port);
    port_describe(NULL, describe_counter, &counters);
    counters.hardware = true;
    directory(place, "%s/hw_counters", port);
    port_describe(NULL, describe_counter, &counters);
    file(place, "lifespan", "1000\n");
}

static void file_of_gid(const struct place *place, unsigned index, const char *word)
{
    char text[32];
    snprintf(text, sizeof text, "%s\n", word);
    number_file(place, index, text);
}

/* Of a place without a GID, as a kernel has it: opens, and cannot be read (EINVAL), like what the loopback interface
 * says of its cable. In a sandbox without that file there is none. */
static void file_without_gid(const struct place *place, unsigned index)
{
    char name[16];
    snprintf(name, sizeof name, "%u", index);
    entry(place, SYSFS_LINK, name, "/sys/class/net/lo/duplex");
}

/* One file for each place of the table. */
static void files_of_gids(const struct place *place, const struct device_state *now, const char *word)
{
    for (unsigned i = 0; i < GIDS; i++)
        if (device_state_has(now, i))
            file_of_gid(place, i, word);
        else
            file_without_gid(place, i);
}

static const char *gid_type_name(const struct device *device)
{
    const struct profile *profile = setting_profile();
    bool named = profile && profile->set[PROFILE_gid_type];
    if (!named)
        return link_layer_gid_type_name(device);
    return profile->values[PROFILE_gid_type] == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1";
}

static void describe_gids(struct place *place, const struct device *device, const char *port)
{
    const struct device_state *now = device_now(device);
    char text[64];
    directory(place, "%s/gids", port);
    for (unsigned i = 0; i < GIDS; i++)
        number_file(place, i, groups(text, now->gids[i].raw, 16));
    directory(place, "%s/gid_attrs", port);
    directory(place, "%s/gid_attrs/types", port);
    files_of_gids(place, now, gid_type_name(device));
    directory(place, "%s/gid_attrs/ndevs", port);
    if (link_layer_is_infiniband(device))
        return;
    files_of_gids(place, now, interface_of(device));
}

static void describe_port(struct place *place, const struct device *device, const char *port)
{
    struct ibv_port_attr attr = {0};
    link_layer_describe(device, &attr);
    if (setting_profile())
        profile_describe_port(setting_profile(), &attr);
    directory(place, "%s", port);
    bool up = device_now(device)->up;
    file(place, "state", up ? "4: ACTIVE\n" : "1: DOWN\n");
    file(place, "phys_state", up ? "%u: LinkUp\n" : "%u: Disabled\n",
         up ? IDENTITY_PHYSICAL_STATE : IDENTITY_PHYSICAL_STATE_DOWN);
    file(place, "rate", "100 Gb/sec (4X EDR)\n");
    file(place, "link_layer", "%s\n", link_layer_name(device));
    file(place, "cap_mask", "0x%08x\n", attr.port_cap_flags);
    file(place, "lid", "0x%x\n", attr.lid);
    file(place, "lid_mask_count", "%u\n", attr.lmc);
    file(place, "sm_lid", "0x%x\n", attr.sm_lid);
    file(place, "sm_sl", "%u\n", attr.sm_sl);
    directory(place, "%s/pkeys", port);
    number_file(place, 0, "0xffff\n");
    describe_gids(place, device, port);
    describe_counters(place, port);
}

static const char *node_type(void)
{
    static const char *const names[] = {"",        "1: CA",    "2: switch",    "3: router",
                                        "4: RNIC", "5: usNIC", "6: usNIC UDP", "7: unspecified"};
    const struct profile *profile = setting_profile();
    return names[profile ? profile_value(profile, PROFILE_node_type, 1) : 1];
}

/* Drivers of devices that have no board make no such files. */
static void describe_board(struct place *place)
{
    const struct profile *profile = setting_profile();
    bool firmware = profile && profile->set[PROFILE_fw_ver], board = profile && profile->set[PROFILE_board_id];
    file(place, "fw_ver", "%s\n", firmware ? profile->fw_ver : IDENTITY_FIRMWARE);
    file(place, "hw_rev", "%d\n", profile ? (int)profile->values[PROFILE_hw_ver] : IDENTITY_HARDWARE);
    if (board && !*profile->board_id)
        return;
    file(place, "hca_type", "%s\n", board ? profile->board_id : IDENTITY_BOARD);
    file(place, "board_id", "%s\n", board ? profile->board_id : IDENTITY_BOARD);
}

static void describe_infiniband(struct place *place, const struct device *device)
{
    char text[64], node[128], port[160];
    snprintf(node, sizeof node, "devices/softverbs/soft%u/infiniband/%s", device->index, device->name);
    snprintf(port, sizeof port, "%s/ports/1", node);
    directory(place, "devices/softverbs/soft%u/infiniband", device->index);
    directory(place, "%s", node);
    file(place, "node_type", "%s\n", node_type());
    file(place, "node_guid", "%s", groups(text, device->guid, 8));
    file(place, "sys_image_guid", "%s", groups(text, device->guid, 8));
    file(place, "node_desc", "%s\n", device->name);
    describe_board(place);
    entry(place, SYSFS_LINK, "device", "../..");
    directory(place, "%s/ports", node);
    describe_port(place, device, port);
}

/* `dev` says what /dev/infiniband/uverbsN is when looked at: /dev/null. */
static void describe_uverbs(struct place *place, const struct device *device)
{
    directory(place, "devices/softverbs/soft%u/infiniband_verbs", device->index);
    directory(place, "devices/softverbs/soft%u/infiniband_verbs/%s%u", device->index, IDENTITY_DEVICE_NODE,
              device->index);
    file(place, "ibdev", "%s\n", device->name);
    file(place, "dev", "1:3\n");
    file(place, "abi_version", "1\n");
    entry(place, SYSFS_LINK, "device", "../..");
}

/* The device of the connection manager: what opens it is attached to (abi/ucma/attach.h), or finds /dev/null. */
static void describe_connection_manager(struct place *place)
{
    directory(place, "class/misc");
    directory(place, "class/misc/rdma_cm");
    file(place, "abi_version", "4\n");
    file(place, "dev", "1:3\n");
    directory(place, "dev/infiniband");
    entry(place, SYSFS_LINK, "rdma_cm", "/dev/null");
}

void sysfs_describe(const struct device *devices, unsigned count, sysfs_visit *visit, void *context)
{
    struct place place = {.visit = visit, .context = context};
    char name[64], target[256];
    directory(&place, "devices");
    directory(&place, "devices/softverbs");
    for (unsigned i = 0; i < count; i++) {
        describe_parent(&place, &devices[i]);
        describe_infiniband(&place, &devices[i]);
        describe_uverbs(&place, &devices[i]);
    }
    directory(&place, "class");
    directory(&place, "class/infiniband");
    for (unsigned i = 0; i < count; i++) {
        snprintf(target, sizeof target, "../../devices/softverbs/soft%u/infiniband/%s", devices[i].index,
                 devices[i].name);
        entry(&place, SYSFS_LINK, devices[i].name, target);
    }
    directory(&place, "class/infiniband_verbs");
    file(&place, "abi_version", "6\n");
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%u", IDENTITY_DEVICE_NODE, devices[i].index);
        snprintf(target, sizeof target, "../../devices/softverbs/soft%u/infiniband_verbs/%s", devices[i].index, name);
        entry(&place, SYSFS_LINK, name, target);
    }
    directory(&place, "dev");
    directory(&place, "dev/infiniband");
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%u", IDENTITY_DEVICE_NODE, devices[i].index);
        entry(&place, SYSFS_LINK, name, "/dev/null");
    }
    if (count)
        describe_connection_manager(&place);
}
