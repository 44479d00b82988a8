/* Checks of the settings in the environment, or in the file that it names, before a program runs with them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns true if every setting can be used as it is, and no variable is a setting with a slip in its name. If not, a
 * sentence says which. A capture is begun. */
bool settings_are_right(char *why, size_t size);

/* Returns true if this entry of the environment, NAME=VALUE, is a setting. */
bool settings_is_one(const char *entry);

/* A variable of the environment, NAME=VALUE, whose name begins like ours and is not one of ours; NULL. Not refused: it
 * may be the user's own. */
const char *settings_unknown(void);
