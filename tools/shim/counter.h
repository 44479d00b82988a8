/* Files of counters, which a kernel makes when they are opened. */
#pragma once

#include "redirect.h"

#include <stdbool.h>

enum { DESCRIPTOR_PATH_MAX = 32 };

/* Finds the program that knows the numbers, softverbs-counter beside this library. For the constructor: dladdr is not
 * async-signal-safe. */
void counter_find_program(void);

/* Returns whether the path would be a counter's in a tree. Async-signal-safe, like counter_descriptor_path. */
bool counter_is_named(const char *place);

/* Writes "/proc/self/fd/" and the number of the descriptor to `path` (DESCRIPTOR_PATH_MAX bytes). */
void counter_descriptor_path(char *path, int fd);

/* If `place`, a path in the tree, is a file of ports/1/counters or hw_counters, asks the processes of the host for its
 * number, puts the number into a file in memory and writes the path of the file to `place` (PLACE_MAX bytes). Without
 * an answer it writes a path that opens and cannot be read (EINVAL), as a kernel does whose device gives no answer.
 * Returns a descriptor for counter_close, or -1. errno stays as it is. Async-signal-safe. */
int counter_make(char *place);

/* Closes the descriptor of counter_make, after the file has been opened by its path. errno stays as it is. */
void counter_close(int held);
