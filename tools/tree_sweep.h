/* Trees of files (tree.h) that no process needs any more. */
#pragma once

/* Removes this user's trees in the directory whose names have the prefix, which have not been used for a day and which
 * no visible process has in its environment, if there are more than TREE_SWEEP_KEPT. Removes nothing else, and fails
 * silently. */
enum { TREE_SWEEP_KEPT = 16 };
void tree_sweep(const char *parent, const char *prefix);

/* Removes a directory with all that is in it, and no target of a link; fails silently. */
void tree_remove(const char *path);
