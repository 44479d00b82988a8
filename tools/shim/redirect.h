/* Which paths are the kernel's RDMA paths, and where their replacement lies. Pure: no call leaves this file. */
#ifndef SHIM_REDIRECT_H
#define SHIM_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    ROOT_MAX = 256,  /* bytes of the tree's own path */
    PLACE_MAX = 768, /* bytes of a replaced path; all paths of the tree are far shorter */
};

/* Returns false if the path (or NULL) is certainly not one of ours, by a comparison or two. */
static inline bool redirect_plausible(const char *path)
{
    return path && path[0] == '/' && (path[1] == 's' || path[1] == 'd' || path[1] == '/');
}

/* Writes the replacement of `path` below `root` to `place` (PLACE_MAX bytes); false: not one of ours, or too long.
 * *device: it names something in the directory of device nodes. Repeated slashes count as one. */
bool redirect_path(const char *path, const char *root, size_t root_length, char *place, bool *device);

#endif
