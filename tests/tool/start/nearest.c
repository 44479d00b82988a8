/* Asks /sys which adapter is near a GPU, by the calls with which programs do. The rules and calls are from nccl
 *   NVIDIA/nccl 5067397c: src/transport/net_ib/init.cc:60 (the adapter's path), src/graph/xml.cc:1078 (its subsystem),
 *               src/graph/xml.cc:589 (the way up, two levels at a time, from files of each function) and
 *               src/os/linux.cc:631 (the path of an address), src/graph/paths.cc:87 (the kinds of paths)
 *   torchcomms  meta-pytorch/torchcomms 59426ba4: comms/prims/transport/rdma/NicDiscovery.cc:81 (the parent), :198 (the
 *               adapter's address), :416 (the kinds of paths)
 *   monarch     meta-pytorch/monarch 3fc0a66e: monarch_rdma/src/backend/ibverbs/device_selection.rs:255 (the adapter's
 *               address), monarch_rdma/src/device_selection.rs:300 (the kinds of paths), :364 (the ancestors)
 * and no line of theirs is here.
 *
 *   nearest PROGRAM GPU...      prints a line for each GPU and each device: "GPU DEVICE KIND GT/s-times-lanes" */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 16, NAME = 64 };

/* From the function up: addresses; the last may be a root or a processor. */
struct chain {
    unsigned count;
    char names[DEPTH][NAME];
    int numa;
    double speed; /* the least on the way: GT/s times lanes */
};

static void add(struct chain *chain, const char *name)
{
    if (chain->count < DEPTH)
        snprintf(chain->names[chain->count++], NAME, "%.*s", NAME - 1, name);
}

static bool is_address(const char *text)
{
    unsigned domain, bus, device, function;
    int length = 0;
    return sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &length) == 4 && !text[length];
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool read_text(const char *directory, const char *name, char *text, size_t size)
{
    char path[PATH_MAX + NAME];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    text[strcspn(text, "\n")] = 0;
    return length;
}

static int read_numa(const char *directory)
{
    char text[32];
    return read_text(directory, "numa_node", text, sizeof text) ? atoi(text) : -1;
}

static double read_speed(const char *directory, const char *prefix)
{
    char name[64], speed[32], width[32];
    snprintf(name, sizeof name, "%smax_link_speed", prefix);
    bool known = read_text(directory, name, speed, sizeof speed);
    snprintf(name, sizeof name, "%smax_link_width", prefix);
    return read_text(directory, name, width, sizeof width) && known ? atof(speed) * atof(width) : 1e9;
}

static void slower(struct chain *chain, double speed)
{
    if (speed < chain->speed)
        chain->speed = speed;
}

/* Where both chains have the same name first; false: nowhere. */
static bool meet(const struct chain *one, const struct chain *other, unsigned *i, unsigned *j)
{
    for (*i = 0; *i < one->count; ++*i)
        for (*j = 0; *j < other->count; ++*j)
            if (!strcmp(one->names[*i], other->names[*j]))
                return true;
    return false;
}

/* --- nccl */

static char *nccl_path(const char *address)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/pci_bus/%.7s/../../%s", address, address);
    return realpath(path, NULL);
}

/* Each level is asked for anew by its address; the level above is two components higher, or a processor. */
static void nccl_climb(struct chain *chain, const char *address)
{
    char name[NAME], text[64], *path = nccl_path(address);
    snprintf(name, sizeof name, "%s", address);
    while (path && is_address(name)) {
        add(chain, name);
        if (!read_text(path, "class", text, sizeof text) || !read_text(path, "vendor", text, sizeof text))
            add(chain, "no class, or no vendor");
        slower(chain, read_speed(path, ""));
        slower(chain, read_speed(path, "../"));
        chain->numa = read_numa(path);
        for (int level = 0; level < 2 && is_address(name); level++) {
            *strrchr(path, '/') = 0;
            snprintf(name, sizeof name, "%.*s", NAME - 1, last_part(path));
        }
        free(path);
        path = is_address(name) ? nccl_path(name) : NULL;
    }
}

static void nccl_gpu(struct chain *chain, const char *address)
{
    nccl_climb(chain, address);
}

static void nccl_device(struct chain *chain, const char *device)
{
    char path[PATH_MAX], *found, *subsystem;
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", device);
    found = realpath(path, NULL);
    if (!found)
        return;
    snprintf(path, sizeof path, "%.*s/subsystem", PATH_MAX - 16, found);
    subsystem = realpath(path, NULL);
    if (subsystem && !strcmp(last_part(subsystem), "pci"))
        nccl_climb(chain, last_part(found));
    free(subsystem);
    free(found);
}

static const char *nccl_kind(const struct chain *gpu, const struct chain *device)
{
    unsigned i, j;
    if (!gpu->count || !device->count)
        return "none";
    if (meet(gpu, device, &i, &j))
        return i == 1 && j == 1 ? "PIX" : "PXB";
    return gpu->numa == device->numa ? "PHB" : "SYS";
}

/* --- torchcomms */

static void torchcomms_gpu(struct chain *chain, const char *address)
{
    char path[PATH_MAX], resolved[PATH_MAX], current[NAME];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", address);
    chain->numa = read_numa(path);
    slower(chain, read_speed(path, ""));
    snprintf(current, sizeof current, "%s", address);
    while (is_address(current) && chain->count < DEPTH) {
        add(chain, current);
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/..", current);
        if (!realpath(path, resolved))
            return;
        snprintf(current, sizeof current, "%.*s", NAME - 1, last_part(resolved));
    }
}

static void torchcomms_device(struct chain *chain, const char *device)
{
    char path[PATH_MAX], target[PATH_MAX];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", device);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return;
    target[length] = 0;
    torchcomms_gpu(chain, last_part(target));
    chain->numa = read_numa(path);
}

static const char *torchcomms_kind(const struct chain *gpu, const struct chain *device)
{
    unsigned i, j;
    if (gpu->numa >= 0 && device->numa >= 0 && gpu->numa != device->numa)
        return "SYS";
    if (meet(gpu, device, &i, &j))
        return i + j <= 2 ? "PIX" : i + j <= 4 ? "PXB" : "PHB";
    return gpu->numa >= 0 && gpu->numa == device->numa ? "NODE" : "SYS";
}

/* --- monarch */

static void monarch_gpu(struct chain *chain, const char *address)
{
    char path[PATH_MAX], resolved[PATH_MAX];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", address);
    chain->numa = read_numa(path);
    if (!realpath(path, resolved))
        return;
    while (is_address(last_part(resolved))) {
        add(chain, last_part(resolved));
        slower(chain, read_speed(resolved, ""));
        *strrchr(resolved, '/') = 0;
    }
}

static void monarch_device(struct chain *chain, const char *device)
{
    char path[PATH_MAX], resolved[PATH_MAX];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", device);
    if (realpath(path, resolved) && is_address(last_part(resolved)))
        monarch_gpu(chain, last_part(resolved));
}

static const char *monarch_kind(const struct chain *gpu, const struct chain *device)
{
    unsigned i, j;
    if (!device->count)
        return "none";
    if (meet(gpu, device, &i, &j))
        return i <= 2 && j <= 2 ? "PIX" : "PXB";
    return gpu->numa >= 0 && gpu->numa == device->numa ? "PHB" : "SYS";
}

/* --- all */

static const struct program {
    const char *name;
    void (*gpu)(struct chain *, const char *), (*device)(struct chain *, const char *);
    const char *(*kind)(const struct chain *, const struct chain *);
} programs[] = {
    {"nccl", nccl_gpu, nccl_device, nccl_kind},
    {"torchcomms", torchcomms_gpu, torchcomms_device, torchcomms_kind},
    {"monarch", monarch_gpu, monarch_device, monarch_kind},
};

static void compare(const struct program *program, const char *address)
{
    const struct chain none = {.numa = -1, .speed = 1e9};
    struct chain gpu = none;
    DIR *directory = opendir("/sys/class/infiniband/");
    program->gpu(&gpu, address);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct chain device = none;
        if (*entry->d_name == '.')
            continue;
        program->device(&device, entry->d_name);
        printf("%s %s %s %g\n", address, entry->d_name, program->kind(&gpu, &device), device.speed);
    }
    if (directory)
        closedir(directory);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        for (int j = 2; !strcmp(argv[1], programs[i].name) && j < argc; j++)
            compare(&programs[i], argv[j]);
    return 0;
}
