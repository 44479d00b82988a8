/* Paths that are relative to a directory of the tree. */
#pragma once

#include <stdbool.h>

/* Notes whether this process begins in a directory that may be the tree's. For the constructor. */
void relative_start(void);

/* A path in the tree has been used: relative paths may start at its directories from now on. Async-signal-safe. */
void relative_expect(void);

/* If the relative `path` leads, from the directory `at`, to a counter's file below `root`, writes the path of that file
 * without links to `place` (PLACE_MAX bytes); false: it leads elsewhere. Costs a load in a process that uses no path of
 * the tree. errno stays as it is. Async-signal-safe. */
bool relative_find_counter(int at, const char *path, const char *root, char *place);
