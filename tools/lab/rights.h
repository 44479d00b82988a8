/* The rights of a user that is not root, in a new user namespace. */
#pragma once

#include <stdbool.h>

/* Enters a new user namespace, in which the user stays the same and has root's rights over networks and mounts. */
bool rights_take(void);

/* Keeps the rights for the programs that this process becomes: they would lose them, as they are not root's. */
bool rights_keep(void);
