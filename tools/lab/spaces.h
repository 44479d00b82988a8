/* Namespaces of one's own, for virtual hosts and simulated runs. */
#pragma once

#include <stdbool.h>

/* Enters new namespaces of processes, mounts, networks, System V's objects and names; a child of this process is the
 * first in them. A user that is not root gets root's rights in them, which programs that this process becomes have if
 * `keeps_rights`. False after a sentence, which begins with the command's name. */
bool spaces_enter(const char *command, bool keeps_rights);
