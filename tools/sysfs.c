#include "sysfs.h"

#include <stdio.h>

#include "config/config.h"
#include "config/device_identity.h"
#include "config/device_state.h"
#include "config/link_layer.h"
#include "config/settings.h"
#include "counters/port.h"
#include "pci/files.h"
#include "pci/pci.h"
#include "profile/profile.h"

static void number_file(const struct place *place, unsigned number, const char *text)
{
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    entry_file(place, name, "%s", text);
}

/* Sixteen-bit groups in hexadecimal, separated by colons and ended by a newline, as sysfs shows GUIDs and GIDs. */
static const char *groups(char *to, const uint8_t *bytes, unsigned count)
{
    char *end = to;
    for (unsigned i = 0; i < count; i += 2)
        end += sprintf(end, "%02x%02x%c", bytes[i], bytes[i + 1], i + 2 < count ? ':' : '\n');
    return to;
}

/* The interface whose addresses the port has. */
static const char *interface_of(const struct device *device)
{
    return device->interface[0] ? device->interface : "lo";
}

/* Writes the directory of the device's hardware: of its PCI function if it has one. */
static void find_hardware(const struct device *device, char path[PCI_PATH_MAX + 16])
{
    const struct pci_function *function = pci_of_device(pci_layout(), device->index);
    if (function)
        snprintf(path, PCI_PATH_MAX + 16, "devices/%s", function->path);
    else
        snprintf(path, PCI_PATH_MAX + 16, "devices/softverbs/soft%u", device->index);
}

/* Describes the hardware; what replaces a PCI function has no ids, as there is no PCI device. */
static void describe_parent(struct place *place, const struct device *device, const char *hardware)
{
    if (!pci_of_device(pci_layout(), device->index)) {
        entry_directory(place, "%s", hardware);
        entry_file(place, "vendor", "0x0000\n");
        entry_file(place, "device", "0x0000\n");
        entry_file(place, "subsystem_vendor", "0x0000\n");
        entry_file(place, "subsystem_device", "0x0000\n");
        entry_file(place, "numa_node", "-1\n");
        pci_describe_processors(place, -1, NULL);
    }
    if (!config_has_interfaces())
        return;
    entry_directory(place, "%s/net", hardware);
    entry_directory(place, "%s/net/%s", hardware, interface_of(device));
}

struct counter_place {
    struct place *place;
    bool hardware; /* the files now made are hw_counters */
};

static void describe_counter(void *context, bool hardware, const char *name, uint64_t value)
{
    const struct counter_place *counters = context;
    if (hardware == counters->hardware)
        entry_file(counters->place, name, "%llu\n", (unsigned long long)value);
}

/* `lifespan` is how old numbers may be, in milliseconds. */
static void describe_counters(struct place *place, const char *port)
{
    struct counter_place counters = {.place = place};
    entry_directory(place, "%s/counters", port);
    port_describe(NULL, describe_counter, &counters);
    counters.hardware = true;
    entry_directory(place, "%s/hw_counters", port);
    port_describe(NULL, describe_counter, &counters);
    entry_file(place, "lifespan", "1000\n");
}

/* Makes the file for a place without a GID. A kernel's can be opened but not read (EINVAL), like the loopback
 * interface's `duplex`, to which this one is a link. In a sandbox without that file the link is dead. */
static void file_without_gid(const struct place *place, unsigned index)
{
    char name[16];
    snprintf(name, sizeof name, "%u", index);
    entry_link(place, name, "/sys/class/net/lo/duplex");
}

/* The places of the table; a profile's table may be shorter than softverbs'. */
static unsigned gid_places(void)
{
    const struct profile *profile = setting_profile();
    uint64_t places = profile ? profile_value(profile, PROFILE_gid_tbl_len, GIDS) : GIDS;
    return places < GIDS ? (unsigned)places : GIDS;
}

/* Makes a file for each place of the table. `word` NULL: no GID has the attribute. */
static void files_of_gids(const struct place *place, const struct device_state *now, const char *word)
{
    char text[32];
    snprintf(text, sizeof text, "%s\n", word ? word : "");
    for (unsigned i = 0; i < gid_places(); i++)
        if (word && device_state_has(now, i))
            number_file(place, i, text);
        else
            file_without_gid(place, i);
}

static const char *gid_type_name(const struct device *device)
{
    const struct profile *profile = setting_profile();
    if (!profile || !profile->set[PROFILE_gid_type])
        return link_layer_gid_type_name(device);
    return profile->values[PROFILE_gid_type] == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1";
}

static void describe_gids(struct place *place, const struct device *device, const char *port)
{
    const struct device_state *now = device_now(device);
    char text[64];
    entry_directory(place, "%s/gids", port);
    for (unsigned i = 0; i < gid_places(); i++)
        number_file(place, i, groups(text, now->gids[i].raw, 16));
    entry_directory(place, "%s/gid_attrs", port);
    entry_directory(place, "%s/gid_attrs/types", port);
    files_of_gids(place, now, gid_type_name(device));
    entry_directory(place, "%s/gid_attrs/ndevs", port);
    files_of_gids(place, now, config_has_interfaces() ? interface_of(device) : NULL);
}

static void describe_port(struct place *place, const struct device *device, const char *port)
{
    struct ibv_port_attr attr = {0};
    link_layer_describe(device, &attr);
    if (setting_profile())
        profile_describe_port(setting_profile(), &attr);
    entry_directory(place, "%s", port);
    bool up = device_now(device)->up;
    entry_file(place, "state", up ? "4: ACTIVE\n" : "1: DOWN\n");
    entry_file(place, "phys_state", up ? "%u: LinkUp\n" : "%u: Disabled\n",
               up ? IDENTITY_PHYSICAL_STATE : IDENTITY_PHYSICAL_STATE_DOWN);
    entry_file(place, "rate", "100 Gb/sec (4X EDR)\n");
    entry_file(place, "link_layer", "%s\n", link_layer_name(device));
    entry_file(place, "cap_mask", "0x%08x\n", attr.port_cap_flags);
    entry_file(place, "lid", "0x%x\n", attr.lid);
    entry_file(place, "lid_mask_count", "%u\n", attr.lmc);
    entry_file(place, "sm_lid", "0x%x\n", attr.sm_lid);
    entry_file(place, "sm_sl", "%u\n", attr.sm_sl);
    entry_directory(place, "%s/pkeys", port);
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

/* Describes firmware and board; drivers of devices without a board make no files about it. */
static void describe_board(struct place *place)
{
    const struct profile *profile = setting_profile();
    bool firmware = profile && profile->set[PROFILE_fw_ver], board = profile && profile->set[PROFILE_board_id];
    entry_file(place, "fw_ver", "%s\n", firmware ? profile->fw_ver : IDENTITY_FIRMWARE);
    entry_file(place, "hw_rev", "%d\n", profile ? (int)profile->values[PROFILE_hw_ver] : IDENTITY_HARDWARE);
    if (board && !*profile->board_id)
        return;
    entry_file(place, "hca_type", "%s\n", board ? profile->board_id : IDENTITY_BOARD);
    entry_file(place, "board_id", "%s\n", board ? profile->board_id : IDENTITY_BOARD);
}

/* Links a directory of a class in the hardware's directory to the hardware. */
static void link_hardware(const struct place *place, const char *hardware)
{
    char target[PCI_PATH_MAX];
    snprintf(target, sizeof target, "../../../%s", pci_address(hardware));
    entry_link(place, "device", target);
}

static void describe_infiniband(struct place *place, const struct device *device, const char *hardware)
{
    char text[64], node[PCI_PATH_MAX + 128], port[sizeof node + 16];
    snprintf(node, sizeof node, "%s/infiniband/%s", hardware, device->name);
    snprintf(port, sizeof port, "%s/ports/1", node);
    entry_directory(place, "%s/infiniband", hardware);
    entry_directory(place, "%s", node);
    entry_file(place, "node_type", "%s\n", node_type());
    entry_file(place, "node_guid", "%s", groups(text, device->guid, 8));
    entry_file(place, "sys_image_guid", "%s", groups(text, device->guid, 8));
    entry_file(place, "node_desc", "%s\n", device->name);
    describe_board(place);
    link_hardware(place, hardware);
    entry_directory(place, "%s/ports", node);
    describe_port(place, device, port);
}

/* `dev` says what /dev/infiniband/uverbsN is when looked at: /dev/null. */
static void describe_uverbs(struct place *place, const struct device *device, const char *hardware)
{
    entry_directory(place, "%s/infiniband_verbs", hardware);
    entry_directory(place, "%s/infiniband_verbs/%s%u", hardware, IDENTITY_DEVICE_NODE, device->index);
    entry_file(place, "ibdev", "%s\n", device->name);
    entry_file(place, "dev", "1:3\n");
    entry_file(place, "abi_version", "1\n");
    link_hardware(place, hardware);
}

/* Describes the connection manager's device: librdmacm's calls for it are served (abi/ucma/attach.h), others get
 * /dev/null. */
static void describe_connection_manager(struct place *place)
{
    entry_directory(place, "class/misc");
    entry_directory(place, "class/misc/rdma_cm");
    entry_file(place, "abi_version", "4\n");
    entry_file(place, "dev", "1:3\n");
    entry_directory(place, "dev/infiniband");
    entry_link(place, "rdma_cm", "/dev/null");
}

static void describe_device(struct place *place, const struct device *device)
{
    char hardware[PCI_PATH_MAX + 16];
    find_hardware(device, hardware);
    describe_parent(place, device, hardware);
    describe_infiniband(place, device, hardware);
    describe_uverbs(place, device, hardware);
}

static void link_class(const struct place *place, const char *class, const struct device *device, const char *name)
{
    char hardware[PCI_PATH_MAX + 16], target[PCI_PATH_MAX + 160];
    find_hardware(device, hardware);
    snprintf(target, sizeof target, "../../%s/%s/%s", hardware, class, name);
    entry_link(place, name, target);
}

static const char *name_node(const struct device *device, char name[64])
{
    snprintf(name, 64, "%s%u", IDENTITY_DEVICE_NODE, device->index);
    return name;
}

static void describe_classes(struct place *place, const struct device *devices, unsigned count)
{
    char name[64];
    entry_directory(place, "class");
    entry_directory(place, "class/infiniband");
    for (unsigned i = 0; i < count; i++)
        link_class(place, "infiniband", &devices[i], devices[i].name);
    entry_directory(place, "class/infiniband_verbs");
    entry_file(place, "abi_version", "6\n");
    for (unsigned i = 0; i < count; i++)
        link_class(place, "infiniband_verbs", &devices[i], name_node(&devices[i], name));
}

void sysfs_describe(const struct device *devices, unsigned count, sysfs_visit *visit, void *context)
{
    struct place place = {.visit = visit, .context = context};
    char name[64];
    entry_directory(&place, "devices");
    pci_describe(&place, pci_layout(), count && link_layer_is_infiniband(devices),
                 profile_is_efa(setting_profile()) ? "efa" : NULL);
    entry_directory(&place, "devices/softverbs");
    for (unsigned i = 0; i < count; i++)
        describe_device(&place, &devices[i]);
    describe_classes(&place, devices, count);
    entry_directory(&place, "dev");
    entry_directory(&place, "dev/infiniband");
    for (unsigned i = 0; i < count; i++)
        entry_link(&place, name_node(&devices[i], name), "/dev/null");
    if (count)
        describe_connection_manager(&place);
}
