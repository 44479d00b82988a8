/* Finds the tree of this host. */
#ifndef SHIM_FIND_TREE_H
#define SHIM_FIND_TREE_H

#include <stddef.h>

/* `root`, of `room` bytes, is the value of SOFTVERBS_PATHS. If there is no such tree here, as a launcher (Hydra of
 * MPICH) has brought the variable along from another host, writes the newest tree of this user beside it, whose name
 * differs in what stands behind the last '-' alone; `root` stays as it is where there is none. Returns its length.
 * errno stays as it is. For the constructor: it allocates. */
size_t find_tree(char *root, size_t room);

#endif
