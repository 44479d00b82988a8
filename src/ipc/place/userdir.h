/* Directories of this user in places that all users may write. Others can guess their names and take them first; then
 * another name is used, and all processes of the user find it, because the directory is the user's. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { USERDIR_BASES = 3 };

/* Writes the places, best first: /dev/shm, $XDG_RUNTIME_DIR if it is this user's, /tmp; not those that can't be
 * written. Returns how many. */
unsigned userdir_bases(const char *bases[USERDIR_BASES]);

/* The number of a namespace of this process, "net" or "user"; 0 without /proc. The same user id is another user in
 * another user namespace, so names have the namespace beside the user id. */
unsigned long long userdir_namespace(const char *kind);

/* True: `to` is an existing directory of this user below the base, called `name`, or `name` and a suffix if another
 * user has the name. False: there is no such directory, and `to` is where to make it, "" if that does not fit. */
bool userdir_find(const char *base, const char *name, char *to, size_t size);
