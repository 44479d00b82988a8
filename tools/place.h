/* The places of the libraries that belong to this executable. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PLACE_PATH_MAX = 4096 };

/* Writes the path of this command to `to` (PLACE_PATH_MAX bytes), as it was when this was first called: in another
 * mount namespace or chroot the kernel shows another path, or no path. 0, or errno and "". Not thread-safe. */
int place_self(char *to);

/* Writes the directory of libsoftverbs-paths.so and libibverbs.so.1 to `to` (PLACE_PATH_MAX bytes): `lib` beside the
 * executable (the build tree) or ../lib/softverbs from it (installed). 0, or errno and a sentence: neither holds them,
 * or there is no /proc to say where the executable is, or (EPERM) another user than root, the user and the owner of
 * the executable could have put them there, as beside a copy of it in a directory that everybody can write. */
int place_libraries(char *to, char *why, size_t why_size);

/* Writes the directory of the profiles (profile/profile.h) that come with softverbs to `to` (PLACE_PATH_MAX bytes):
 * `profiles` beside the executable, or ../share/softverbs/profiles from it. False: no such directory. */
bool place_profiles(char *to);

/* Executes this command anew with other arguments, argv[0] first; returns errno when it can't. Uses the path of
 * place_self, which qemu-user needs when the directory has changed since, and /proc/self/exe if that path leads to
 * nothing: the file was replaced, or is in another mount namespace. */
int place_execute(char *const *arguments);

/* Writes the path of the first libibverbs.so.1 in the linker's cache, which programs load without us; "": no path. */
void place_installed(char *to, size_t size);
