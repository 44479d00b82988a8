/* Which paths are the kernel's RDMA paths, and where their replacement is. Pure: no call leaves this file. */
#pragma once

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

/* What a path of ours shares with the machine's own paths. */
enum redirect_kind {
    REDIRECT_WHOLE,  /* nothing: the replacement is all that there is */
    REDIRECT_DEVICE, /* nothing either; the path is below the directory of device nodes */
    REDIRECT_LIST,   /* a directory whose replacement, where the tree has it, lists the machine's entries, too */
    REDIRECT_AMONG,  /* a place where the machine's own paths precede the tree's */
};

/* Writes the replacement of `path` below `root` to `place` (PLACE_MAX bytes); false: not one of ours, or too long.
 * Repeated slashes count as one. */
bool redirect_path(const char *path, const char *root, size_t root_length, char *place, enum redirect_kind *);
