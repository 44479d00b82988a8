#include "around/story/port.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "diag/clean.h"

enum { PATH = IBV_SYSFS_PATH_MAX + 64 };

static void add_counter(struct port_counters *counters, int folder, const char *name)
{
    char text[32];
    struct port_counter *counter = &counters->list[counters->count];
    if (counters->count == PORT_COUNTERS || strlen(name) >= PORT_NAME ||
        !text_read_at(folder, name, text, sizeof text) || !text_number(text_trim(text), 0, UINT64_MAX, &counter->value))
        return;
    strcpy(counter->name, name);
    counters->count++;
}

static void read_folder(struct port_counters *counters, const char *path)
{
    DIR *stream = opendir(path);
    struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        if (*entry->d_name != '.' && strcmp(entry->d_name, "lifespan") != 0)
            add_counter(counters, dirfd(stream), entry->d_name);
    if (stream)
        closedir(stream);
}

void port_read(const char *device, uint8_t port, struct port_counters *counters)
{
    char path[PATH];
    counters->count = 0;
    snprintf(path, sizeof path, "%s/ports/%u/hw_counters", device, port);
    read_folder(counters, path);
    snprintf(path, sizeof path, "%s/ports/%u/counters", device, port);
    read_folder(counters, path);
}

bool port_is_down(const char *device, uint8_t port)
{
    char path[PATH], text[32];
    snprintf(path, sizeof path, "%s/ports/%u/state", device, port);
    return text_read_at(AT_FDCWD, path, text, sizeof text) && !strncmp(text, "1:", 2); /* IBV_PORT_DOWN */
}

bool port_gid(const char *device, uint8_t port, unsigned index, char *gid, size_t size)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/ports/%u/gids/%u", device, port, index);
    bool found = text_read_at(AT_FDCWD, path, gid, size);
    gid[strcspn(gid, "\n")] = 0;
    return found;
}

static const struct port_counter *find_counter(const struct port_counters *counters, const char *name)
{
    for (const struct port_counter *counter = counters->list; counter < counters->list + counters->count; counter++)
        if (!strcmp(counter->name, name))
            return counter;
    return NULL;
}

void port_write_moved(FILE *out, const struct port_counters *before, const struct port_counters *after)
{
    const char *separator = "";
    fputs("{", out);
    for (const struct port_counter *now = after->list; now < after->list + after->count; now++) {
        const struct port_counter *then = find_counter(before, now->name);
        if (!then || then->value >= now->value) /* it was set to 0 meanwhile */
            continue;
        fputs(separator, out);
        clean_json(out, now->name);
        fprintf(out, ":%" PRIu64, now->value - then->value);
        separator = ",";
    }
    fputs("}", out);
}

/* The driver of the function on the bus is another one than that of RDMA. */
static const char *rdma_driver(const char *driver)
{
    static const char *const names[][2] = {{"mlx5_core", "mlx5"}, {"mlx4_core", "mlx4"}, {"bnxt_en", "bnxt_re"},
                                           {"hns3", "hns"},       {"ice", "irdma"},      {"i40e", "irdma"},
                                           {"idpf", "irdma"}};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (!strcmp(names[at][0], driver))
            return names[at][1];
    return driver;
}

const char *port_driver(const struct ibv_device *device, char name[PORT_DRIVER])
{
    char path[PATH], link[256];
    snprintf(path, sizeof path, "%s/device/driver", device->ibdev_path);
    ssize_t length = readlink(path, link, sizeof link - 1);
    size_t letters = 0;
    if (length > 0) {
        link[length] = 0;
        const char *slash = strrchr(link, '/');
        snprintf(name, PORT_DRIVER, "%.31s", rdma_driver(slash ? slash + 1 : link));
        return name;
    }
    while (isalpha((unsigned char)device->name[letters]) && letters < PORT_DRIVER - 1)
        letters++;
    snprintf(name, PORT_DRIVER, "%.*s", (int)letters, device->name);
    return name;
}
