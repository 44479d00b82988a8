#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "checks.h"
#include "config/config.h"
#include "ipc/node.h"
#include "place.h"
#include "settings.h"
#include "tree.h"

void *dlvsym(void *, const char *, const char *) __attribute__((weak)); /* musl has no versions of symbols */

static bool has_version(void *library, const char *symbol, const char *version)
{
    return dlvsym ? dlvsym(library, symbol, version) : dlsym(library, symbol);
}

enum verdict check_library(char *say, size_t size)
{
    char directory[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 32];
    if (place_libraries(directory, say, size))
        return VERDICT_PROBLEM;
    snprintf(path, sizeof path, "%s/libibverbs.so.1", directory);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return SAY_AND(VERDICT_PROBLEM, say, size, "Our library does not load: %s.", dlerror());
    bool whole = has_version(library, "ibv_get_device_list", "IBVERBS_1.1");
    dlclose(library);
    return SAY_AND(whole ? VERDICT_OK : VERDICT_PROBLEM, say, size,
                   whole ? "%s loads." : "%s is not ours: it lacks version IBVERBS_1.1.", path);
}

enum verdict check_other_library(char *say, size_t size)
{
    char path[256];
    place_installed(path, sizeof path);
    if (*path)
        snprintf(say, size, "Without \"softverbs run\" programs load %s.", path);
    else
        snprintf(say, size, "Without \"softverbs run\" programs find no libibverbs.so.1.");
    return VERDICT_OK;
}

enum verdict check_settings(char *say, size_t size)
{
    if (!settings_are_right(say, size))
        return VERDICT_PROBLEM;
    const char *unknown = settings_unknown();
    if (unknown)
        return SAY_AND(VERDICT_WARNING, say, size,
                       "%.*s means nothing to softverbs (softverbs.conf(5) has its variables).",
                       (int)strcspn(unknown, "="), unknown);
    return SAY_AND(VERDICT_OK, say, size, "All that the environment says can be used.");
}

/* The variable that `softverbs run` sets for NCCL, and why; a value that the user has set stays. */
enum verdict check_nccl(char *say, size_t size)
{
    const char *type = getenv("NCCL_GIN_TYPE");
    if (!type || !strcmp(type, "2"))
        return SAY_AND(VERDICT_OK, say, size,
                       "\"softverbs run\" sets NCCL_GIN_TYPE=2: NCCL 2.28 (PyTorch 2.9 to 2.11) crashes without it on "
                       "devices other than mlx5.");
    return SAY_AND(
        VERDICT_WARNING, say, size,
        "NCCL_GIN_TYPE=%s is left as it is: NCCL 2.28 (PyTorch 2.9 to 2.11) crashes on devices other than mlx5 "
        "unless it is 2.",
        type);
}

enum verdict check_directory(char *say, size_t size)
{
    struct node *node;
    char why[512];
    if (node_open(&node, NULL, why, sizeof why))
        return SAY_AND(VERDICT_PROBLEM, say, size, "%s", why);
    snprintf(say, size, "Processes meet in %s.", node_path(node));
    node_close(node);
    return VERDICT_OK;
}

static void count_entry(const struct node_entry *entry, void *context)
{
    unsigned *count = context;
    *count += entry->alive;
}

/* Runs before check_directory: joining sweeps as well. */
enum verdict check_left_behind(char *say, size_t size)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    unsigned alive = 0;
    int swept = node_directory(directory) ? node_sweep(directory) : -ENAMETOOLONG;
    if (swept < 0 || node_list(directory, count_entry, &alive, why, sizeof why))
        snprintf(say, size, "Not looked for, since the directory can't be read.");
    else
        snprintf(say, size, "Processes with a device open: %u. Entries that dead ones had left, swept now: %d.", alive,
                 swept);
    return VERDICT_OK;
}

enum verdict check_paths(char *say, size_t size)
{
    char path[256];
    unsigned count;
    const struct device *devices = config_devices(&count);
    if (tree_make(devices, count, path, say, size))
        return VERDICT_WARNING;
    return SAY_AND(VERDICT_OK, say, size, "Programs find /dev/infiniband and /sys/class/infiniband in %s.",
                   path);
}
