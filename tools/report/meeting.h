/* The directory whose processes a command looks at. */
#ifndef TOOLS_MEETING_H
#define TOOLS_MEETING_H

#include "command.h"

/* Writes its name (NODE_DIRECTORY_MAX + 1 bytes). 0, or the exit status after a sentence: the name is too long, or it
 * was named (--dir, which has become $SOFTVERBS_DIR) and is not there, or can't be such a directory. The one that is
 * used when none is named may be missing: nobody has been there. */
int meeting_find(const struct command *, char *directory);

#endif
