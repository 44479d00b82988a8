/* Finds the tree of this host. */
#pragma once

#include <stddef.h>

/* `root`, of `room` bytes, is the value of SOFTVERBS_PATHS. If there is no such tree here, as a launcher (Hydra of
 * MPICH) has brought the variable along from another host, writes the newest tree of this user beside it whose name
 * differs only after the last '-'; if there is no such tree, `root` stays as it is. Returns the length of `root`.
 * errno stays as it is. For the constructor: it allocates. */
size_t find_tree(char *root, size_t room);
