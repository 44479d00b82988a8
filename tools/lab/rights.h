/* What a user who is not root may do in a user namespace of their own. */
#ifndef TOOLS_LAB_RIGHTS_H
#define TOOLS_LAB_RIGHTS_H

#include <stdbool.h>

/* In a new user namespace in which we stay who we are, and may do with networks and mounts what root may. */
bool rights_take(void);

/* The rights go on to programs, which are not root's. */
bool rights_keep(void);

#endif
