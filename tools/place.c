#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All of them, or a program would silently get the distribution's. As a path without links and "..", since the program
 * may change its directory or see other links. */
static int find_in(const char *directory, const char *below, char *to)
{
    static const char *const names[] = {"libibverbs.so.1", "libsoftverbs-paths.so"};
    char path[PLACE_PATH_MAX + 64], resolved[PLACE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, below);
    if (!realpath(path, resolved))
        return errno;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", resolved, names[i]);
        if (access(path, R_OK))
            return errno;
    }
    strcpy(to, resolved);
    return 0;
}

int place_libraries(char *to, char *why, size_t why_size)
{
    char self[PLACE_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        int error = errno;
        snprintf(why, why_size,
                 "/proc can't be read here (%s), so this command does not find its own libraries: mount it (in a "
                 "chroot: mount -t proc proc /proc).",
                 strerror(error));
        return error;
    }
    self[length] = 0;
    *strrchr(self, '/') = 0;
    if (!find_in(self, "lib", to) || !find_in(self, "../" LIBRARY_DIRECTORY, to))
        return 0;
    snprintf(why, why_size,
             "The libraries that belong to this command are not where they should be: in \"lib\" beside it or in "
             "\"../" LIBRARY_DIRECTORY "\" from it. Build or install softverbs again.");
    return ENOENT;
}

void place_installed(char *to, size_t size)
{
    char line[512];
    *to = 0;
    FILE *cache = popen("PATH=/usr/sbin:/sbin:/usr/bin:/bin ldconfig -p 2>/dev/null", "re");
    while (cache && fgets(line, sizeof line, cache)) {
        const char *arrow = strstr(line, " => ");
        if (*to || !arrow || !strstr(line, "\tlibibverbs.so.1 "))
            continue;
        snprintf(to, size, "%s", arrow + 4);
        to[strcspn(to, "\n")] = 0;
    }
    if (cache)
        pclose(cache);
}
