/* Where the libraries lie that belong to this executable. */
#ifndef TOOLS_PLACE_H
#define TOOLS_PLACE_H

#include <stdbool.h>
#include <stddef.h>

enum { PLACE_PATH_MAX = 4096 };

/* Writes the path of this command to `to` (PLACE_PATH_MAX bytes), as it was when this was first called: in another
 * mount namespace or chroot the kernel shows another, or none. 0, or errno and "". Not thread-safe. */
int place_self(char *to);

/* Writes the directory of libsoftverbs-paths.so and libibverbs.so.1 to `to` (PLACE_PATH_MAX bytes): `lib` beside the
 * executable (the build tree) or ../lib/softverbs from it (installed). 0, or errno and a sentence: neither holds them,
 * or there is no /proc to say where the executable is, or (EPERM) those that are there could be another user's than
 * root, the user and the owner of the executable: a copy of it in a directory that everybody can write. */
int place_libraries(char *to, char *why, size_t why_size);

/* Writes the directory of the profiles (profile/profile.h) that come with softverbs to `to` (PLACE_PATH_MAX bytes):
 * `profiles` beside the executable, or ../share/softverbs/profiles from it. False: there is none. */
bool place_profiles(char *to);

/* Executes this command anew with other arguments, argv[0] first; comes back with errno when it can't. By its path as
 * the functions above have found it, which qemu-user needs when the directory has changed since, and by /proc/self/exe
 * where that path leads to nothing: the file was replaced, or is in another mount namespace. */
int place_execute(char *const *arguments);

/* The path of the first libibverbs.so.1 that the linker's cache knows, which programs load without us; "" when none. */
void place_installed(char *to, size_t size);

#endif
