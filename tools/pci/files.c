#include "pci/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"

#define BUS "0000:00"

enum {
    PROCESSORS_MOST = 8192,
    CONFIG_SIZE = 256,
    CLASS_BRIDGE = 0x060400,
    CLASS_ETHERNET = 0x020000,
    CLASS_INFINIBAND = 0x020700,
    CLASS_GPU = 0x030200,
    GPU_VENDOR = 0x10de, /* NVIDIA's H100 SXM5, unless the list says otherwise */
    GPU_DEVICE = 0x2330,
};

/* The contents of a function's files. */
struct identity {
    unsigned class, vendor, device, subvendor, subdevice, speed, width; /* speed, width: 0 without a link */
    int64_t numa;
    const char *cpus;    /* NULL: the node's */
    uint8_t below, last; /* of a bridge: the bus below it, and the highest one further down */
};

/* --- processors */

static bool read_list(const char *path, char *list, size_t size)
{
    if (!text_read_at(AT_FDCWD, path, list, size) || *list == '\n')
        return false;
    list[strcspn(list, "\n")] = 0;
    return true;
}

/* Lists the processors of the node if the machine has it, and all processors if not. */
static void find_processors(int64_t numa, char *list, size_t size)
{
    char path[80];
    long count = sysconf(_SC_NPROCESSORS_CONF);
    snprintf(path, sizeof path, "/sys/devices/system/node/node%lld/cpulist", (long long)numa);
    if (numa < 0 || !read_list(path, list, size))
        snprintf(list, size, count > 1 ? "0-%ld" : "0", count - 1);
}

static void set_bits(uint32_t *words, const char *list)
{
    for (uint64_t first, last; text_range(list, &first, &last, &list); list += *list == ',')
        for (; first <= last && first < PROCESSORS_MOST; first++)
            words[first / 32] |= 1u << first % 32;
}

/* The kernel's form of a set of processors: 32-bit words in hexadecimal, the highest first. There are enough words for
 * all processors of the machine, and for all of the list. */
static void write_mask(const char *list, char *text, size_t size)
{
    uint32_t words[PROCESSORS_MOST / 32] = {0};
    long count = sysconf(_SC_NPROCESSORS_CONF), last = (count < 1 ? 0 : count - 1) / 32;
    size_t used = 0;
    set_bits(words, list);
    for (long i = PROCESSORS_MOST / 32 - 1; i > last; i--)
        last = words[i] ? i : last;
    for (; last >= 0 && used < size; last--)
        used += (size_t)snprintf(text + used, size - used, "%08x%s", words[last], last ? "," : "");
}

void pci_describe_processors(const struct place *place, int64_t numa, const char *list)
{
    char found[256], mask[PROCESSORS_MOST / 32 * 9 + 1];
    find_processors(numa, found, sizeof found);
    write_mask(list ? list : found, mask, sizeof mask);
    if (strlen(mask) < 1000)
        entry_file(place, "local_cpus", "%s\n", mask);
    entry_file(place, "local_cpulist", "%s\n", list ? list : found);
}

/* --- one function */

static uint8_t bus_of(const char *address)
{
    return (uint8_t)strtoul(address + strlen("0000:"), NULL, 16);
}

static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

/* The configuration space's head, and the PCI Express capability with the link's state where there is a link. */
static void describe_config(const struct place *place, const struct identity *identity, uint8_t bus)
{
    enum { STATUS = 0x06, HEAD = 0x0e, BUSES = 0x18, SUBSYSTEM = 0x2c, FIRST = 0x34, EXPRESS = 0x40, HAS_LIST = 0x10 };
    static const unsigned speeds[] = {0, 25, 50, 80, 160, 320, 640};
    uint8_t bytes[CONFIG_SIZE] = {0};
    unsigned speed = 0;
    put16(bytes, identity->vendor);
    put16(bytes + 2, identity->device);
    put16(bytes + 9, identity->class);
    bytes[11] = (uint8_t)(identity->class >> 16);
    bytes[HEAD] = identity->below ? 1 : 0;
    if (identity->below)
        memcpy(bytes + BUSES, (uint8_t[]){bus, identity->below, identity->last}, 3);
    else
        put16(bytes + SUBSYSTEM, identity->subvendor), put16(bytes + SUBSYSTEM + 2, identity->subdevice);
    while (speed < sizeof speeds / sizeof *speeds && speeds[speed] != identity->speed)
        speed++;
    if (identity->speed && identity->width) {
        bytes[STATUS] = HAS_LIST;
        bytes[FIRST] = EXPRESS;
        bytes[EXPRESS] = 0x10; /* the capability's number */
        put16(bytes + EXPRESS + 2, 2);
        put16(bytes + EXPRESS + 12, speed | identity->width << 4); /* what the link can do */
        put16(bytes + EXPRESS + 18, speed | identity->width << 4); /* and what it does */
    }
    entry_bytes(place, "config", bytes, sizeof bytes);
}

static void describe_link(const struct place *place, const char *which, const struct identity *identity)
{
    char name[32];
    snprintf(name, sizeof name, "%s_link_speed", which);
    entry_file(place, name, "%u.%u GT/s PCIe\n", identity->speed / 10, identity->speed % 10);
    snprintf(name, sizeof name, "%s_link_width", which);
    entry_file(place, name, "%u\n", identity->width);
}

/* The way from a directory at this path below /sys to /sys. */
static void climb(const char *path, char up[64])
{
    size_t depth = 1;
    for (; *path; path++)
        depth += *path == '/';
    *up = 0;
    while (depth--)
        strcat(up, "../");
}

static void describe_identity(struct place *place, const char *path, const struct identity *identity)
{
    char up[64], target[96], resources[640] = "";
    const char *address = pci_address(path);
    entry_directory(place, "devices/%s", path);
    climb(place->path, up);
    snprintf(target, sizeof target, "%sbus/pci", up);
    entry_link(place, "subsystem", target);
    entry_file(place, "class", "0x%06x\n", identity->class);
    entry_file(place, "vendor", "0x%04x\n", identity->vendor);
    entry_file(place, "device", "0x%04x\n", identity->device);
    entry_file(place, "subsystem_vendor", "0x%04x\n", identity->subvendor);
    entry_file(place, "subsystem_device", "0x%04x\n", identity->subdevice);
    entry_file(place, "revision", "0x00\n");
    entry_file(place, "irq", "0\n");
    entry_file(place, "enable", "1\n");
    entry_file(place, "uevent", "PCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\n",
               identity->class, identity->vendor, identity->device, identity->subvendor, identity->subdevice, address);
    for (unsigned i = 0; i < 7; i++)
        strcat(resources, "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
    entry_file(place, "resource", "%s", resources);
    entry_file(place, "numa_node", "%lld\n", (long long)identity->numa);
    pci_describe_processors(place, identity->numa, identity->cpus);
    if (identity->speed && identity->width)
        describe_link(place, "current", identity), describe_link(place, "max", identity);
    describe_config(place, identity, bus_of(address));
}

/* --- paths */

static int64_t value_of(const struct pci_function *function, enum pci_key key, int64_t standard)
{
    return function->set[key] ? function->values[key] : standard;
}

static struct identity identity_of(const struct pci_function *function, bool infiniband)
{
    int64_t vendor = value_of(function, PCI_vendor, function->gpu ? GPU_VENDOR : 0);
    int64_t device = value_of(function, PCI_device, function->gpu ? GPU_DEVICE : 0);
    int64_t class = function->gpu ? CLASS_GPU : infiniband ? CLASS_INFINIBAND : CLASS_ETHERNET;
    bool linked = function->set[PCI_speed] || function->set[PCI_width];
    return (struct identity){
        .class = (unsigned)value_of(function, PCI_class, class),
        .vendor = (unsigned)vendor,
        .device = (unsigned)device,
        .subvendor = (unsigned)value_of(function, PCI_subvendor, vendor),
        .subdevice = (unsigned)value_of(function, PCI_subdevice, 0),
        .speed = (unsigned)value_of(function, PCI_speed, linked ? 160 : 0),
        .width = (unsigned)value_of(function, PCI_width, linked ? 16 : 0),
        .numa = value_of(function, PCI_numa, -1),
        .cpus = function->set[PCI_cpus] ? function->cpus : NULL,
    };
}

/* Returns whether the path of an earlier function has this beginning, so that it is described already. */
static bool is_shared(const struct pci_layout *layout, unsigned index, const char *path, size_t length)
{
    for (unsigned i = 0; i < index; i++)
        if (!strncmp(layout->functions[i].path, path, length) && layout->functions[i].path[length] == '/')
            return true;
    return false;
}

static uint8_t find_last_bus(const struct pci_layout *layout, const char *bridge)
{
    size_t length = strlen(bridge);
    uint8_t last = 0;
    for (unsigned i = 0; i < layout->count; i++) {
        const char *part = layout->functions[i].path + length;
        if (strncmp(layout->functions[i].path, bridge, length))
            continue;
        for (; *part == '/'; part += 1 + PCI_ADDRESS)
            last = bus_of(part + 1) > last ? bus_of(part + 1) : last;
    }
    return last;
}

/* Describes a bridge, or the root with this bus: node, processors and link are those of the first function below. */
static void describe_bridge(struct place *place, const struct pci_layout *layout, const char *path, const char *bus,
                            const struct identity *below)
{
    struct identity bridge = {.class = CLASS_BRIDGE,
                              .numa = below->numa,
                              .cpus = below->cpus,
                              .speed = below->speed,
                              .width = below->width,
                              .below = bus_of(bus),
                              .last = find_last_bus(layout, path)};
    if (strchr(path, '/'))
        describe_identity(place, path, &bridge);
    else
        entry_directory(place, "devices/%s", path);
    entry_directory(place, "devices/%s/pci_bus", path);
    entry_directory(place, "devices/%s/pci_bus/%.*s", path, (int)strlen(BUS), bus);
}

static void link_driver(const struct place *place, const char *driver)
{
    char up[64], target[128];
    climb(place->path, up);
    snprintf(target, sizeof target, "%sbus/pci/drivers/%s", up, driver);
    entry_link(place, "driver", target);
}

static void describe_path(struct place *place, const struct pci_layout *layout, unsigned index, bool infiniband,
                          const char *driver)
{
    const char *path = layout->functions[index].path;
    struct identity identity = identity_of(&layout->functions[index], infiniband);
    char bridge[PCI_PATH_MAX];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (is_shared(layout, index, path, (size_t)(slash - path)))
            continue;
        snprintf(bridge, sizeof bridge, "%.*s", (int)(slash - path), path);
        describe_bridge(place, layout, bridge, slash + 1, &identity);
    }
    describe_identity(place, path, &identity);
    if (driver && !layout->functions[index].gpu)
        link_driver(place, driver);
}

/* --- lists of all */

/* Links the machine's own entries by their whole paths, as this tree does not have them. */
static void link_of_machine(const struct place *place, const char *directory)
{
    char path[PATH_MAX], target[PATH_MAX];
    struct dirent **entries;
    int count = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        if (*entries[i]->d_name != '.' && pci_is_of_machine(path) && realpath(path, target))
            entry_link(place, entries[i]->d_name, target);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* Links the functions and bridges of all paths, or the buses that the paths cross. */
static void link_parts(const struct place *place, const struct pci_layout *layout, bool buses)
{
    char name[PCI_ADDRESS + 1], target[PCI_PATH_MAX + 64];
    for (unsigned i = 0; i < layout->count; i++) {
        const char *path = layout->functions[i].path, *part = strchr(path, '/');
        for (; part; part = strchr(part + 1, '/')) {
            int length = (int)(part - path) + (buses ? 0 : 1 + PCI_ADDRESS);
            snprintf(name, buses ? sizeof BUS : sizeof name, "%s", part + 1);
            if (buses)
                snprintf(target, sizeof target, "../../devices/%.*s/pci_bus/%s", length, path, name);
            else
                snprintf(target, sizeof target, "../../../devices/%.*s", length, path);
            if (!is_shared(layout, i, path, (size_t)length))
                entry_link(place, name, target);
        }
    }
}

static void describe_driver(struct place *place, const struct pci_layout *layout, const char *driver)
{
    char target[PCI_PATH_MAX + 64];
    entry_directory(place, "bus/pci/drivers");
    link_of_machine(place, "/sys/bus/pci/drivers");
    entry_directory(place, "bus/pci/drivers/%s", driver);
    for (unsigned i = 0; i < layout->count; i++) {
        const struct pci_function *function = &layout->functions[i];
        snprintf(target, sizeof target, "../../../../devices/%s", function->path);
        if (*function->path && !function->gpu)
            entry_link(place, pci_address(function->path), target);
    }
}

void pci_describe(struct place *place, const struct pci_layout *layout, bool infiniband, const char *driver)
{
    if (!layout->count)
        return;
    for (unsigned i = 0; i < layout->count; i++)
        if (*layout->functions[i].path)
            describe_path(place, layout, i, infiniband, driver);
    entry_directory(place, "bus");
    entry_directory(place, "bus/pci");
    entry_directory(place, "bus/pci/devices");
    link_parts(place, layout, false);
    link_of_machine(place, "/sys/bus/pci/devices");
    if (driver)
        describe_driver(place, layout, driver);
    entry_directory(place, "class");
    entry_directory(place, "class/pci_bus");
    link_parts(place, layout, true);
    link_of_machine(place, "/sys/class/pci_bus");
}
