#include "redirect.h"

#include <string.h>

static const struct {
    const char *from, *to;
    enum redirect_kind kind; /* the kind of the paths below; LIST: of the directory itself, with AMONG below */
} prefixes[] = {
    {"/sys/class/infiniband", "/class/infiniband", REDIRECT_WHOLE},
    {"/sys/class/infiniband_verbs", "/class/infiniband_verbs", REDIRECT_WHOLE},
    {"/sys/class/misc/rdma_cm", "/class/misc/rdma_cm", REDIRECT_WHOLE},
    {"/sys/devices/softverbs", "/devices/softverbs", REDIRECT_WHOLE}, /* where the links in the two above lead */
    {"/sys/devices", "/devices", REDIRECT_AMONG},                     /* or lead, to a PCI function */
    {"/sys/bus/pci/devices", "/bus/pci/devices", REDIRECT_LIST},
    {"/sys/bus/pci/drivers", "/bus/pci/drivers", REDIRECT_LIST},
    {"/sys/class/pci_bus", "/class/pci_bus", REDIRECT_LIST},
    {"/dev/infiniband", "/dev/infiniband", REDIRECT_DEVICE},
};

/* `rest` follows the prefix. */
static enum redirect_kind kind_of(enum redirect_kind kind, const char *rest)
{
    bool itself = !rest[strspn(rest, "/")];
    if (kind == REDIRECT_DEVICE)
        return itself ? REDIRECT_WHOLE : REDIRECT_DEVICE;
    return kind == REDIRECT_LIST && !itself ? REDIRECT_AMONG : kind;
}

/* Below /sys/devices only the paths of PCI are wanted. */
static bool is_wanted(enum redirect_kind kind, const char *to, const char *rest)
{
    rest += strspn(rest, "/");
    return kind != REDIRECT_AMONG || strcmp(to, "/devices") || !strncmp(rest, "pci", 3);
}

/* The rest of the path after the prefix: "", or something that begins with a slash; NULL: the path is elsewhere. */
static const char *after_prefix(const char *path, const char *prefix)
{
    for (; *prefix; path++, prefix++) {
        if (*path != *prefix)
            return NULL;
        while (path[0] == '/' && path[1] == '/')
            path++;
    }
    return *path == '/' || !*path ? path : NULL;
}

/* Returns whether the path may lead out of our tree, to another path than out of the kernel's, even of other users.
 * Replaced paths, and the targets of links below, have two directories of the tree above them, so two steps up stay
 * inside. */
static bool climbs_out(const char *rest)
{
    enum { STEPS_MAX = 2 };
    int steps = 0;
    while (*rest) {
        rest += strspn(rest, "/");
        size_t length = strcspn(rest, "/");
        steps += length == 2 && rest[0] == '.' && rest[1] == '.';
        rest += length;
    }
    return steps > STEPS_MAX;
}

bool redirect_path(const char *path, const char *root, size_t root_length, char *place, enum redirect_kind *kind)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *rest = after_prefix(path, prefixes[i].from);
        if (!rest || !is_wanted(prefixes[i].kind, prefixes[i].to, rest))
            continue;
        if (climbs_out(rest))
            return false;
        size_t middle = strlen(prefixes[i].to), tail = strlen(rest);
        if (root_length + middle + tail >= PLACE_MAX)
            return false;
        memcpy(place, root, root_length);
        memcpy(place + root_length, prefixes[i].to, middle);
        memcpy(place + root_length + middle, rest, tail + 1);
        *kind = kind_of(prefixes[i].kind, rest);
        return true;
    }
    return false;
}
