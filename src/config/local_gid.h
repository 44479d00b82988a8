/* Which addresses belong to this host; config.c answers. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Returns true if this GID belongs to some softverbs device of this host, whatever its process's configuration is. Of
 * devices on network interfaces only this process's are known. */
bool config_local_gid(const union ibv_gid *);
