/* The checks of `softverbs doctor --around PROGRAM`: the libibverbs that the program meets by itself, its drivers and
 * devices, and what goes past it. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "checks.h"

enum { LIST = 512 };

/* "libibverbs.so.1.14.44.0": the second number from the end is the release of rdma-core. Returns 0 for another name. */
static unsigned release_of(const char *path)
{
    unsigned release = 0, last;
    char real[PATH_MAX];
    const char *name = realpath(path, real) ? strstr(real, "libibverbs.so.1.") : NULL;
    return name && sscanf(name, "libibverbs.so.1.%*u.%u.%u", &release, &last) == 2 ? release : 0;
}

/* Writes the names in the folder, with commas between, without their suffix. Returns how many there are. */
static unsigned list_folder(const char *path, const char *suffix, char text[LIST])
{
    unsigned count = 0;
    size_t used = 0;
    struct dirent *entry;
    DIR *stream = opendir(path);
    text[0] = 0;
    while (stream && (entry = readdir(stream))) {
        const char *end = strstr(entry->d_name, suffix);
        int length = end && *suffix ? (int)(end - entry->d_name) : (int)strlen(entry->d_name);
        if (*entry->d_name == '.' || !end)
            continue;
        count++;
        if (used < LIST)
            used += (size_t)snprintf(text + used, LIST - used, "%s%.*s", used ? ", " : "", length, entry->d_name);
    }
    if (stream)
        closedir(stream);
    return count;
}

static void check_release(const char *verbs)
{
    enum { FIRST = 25 };
    unsigned release = release_of(verbs);
    if (release >= FIRST)
        check_say(VERDICT_OK, "libibverbs", "It will load %s, of rdma-core %u.", verbs, release);
    else if (release)
        check_say(VERDICT_WARNING, "libibverbs", "It will load %s, of rdma-core %u: calls are seen from %d on.", verbs,
                  release, FIRST);
    else
        check_say(VERDICT_WARNING, "libibverbs", "It will load %s, whose name does not say the release of rdma-core.",
                  verbs);
}

static void check_drivers(void)
{
    char list[LIST];
    if (list_folder("/etc/libibverbs.d", ".driver", list))
        check_say(VERDICT_OK, "drivers", "libibverbs is told of these drivers (/etc/libibverbs.d): %s.", list);
    else
        check_say(VERDICT_WARNING, "drivers",
                  "No driver of libibverbs is in /etc/libibverbs.d (Debian: ibverbs-providers).");
    if (list_folder("/sys/class/infiniband", "", list))
        check_say(VERDICT_OK, "devices", "The kernel has these RDMA devices: %s.", list);
    else
        check_say(VERDICT_PROBLEM, "devices",
                  "The kernel has no RDMA device (/sys/class/infiniband). \"softverbs run\" needs none.");
}

void check_around(const char *verbs, const char *named, const char *direct)
{
    if (*verbs)
        check_release(verbs);
    else
        check_say(VERDICT_WARNING, "libibverbs",
                  "It is not linked with libibverbs.so.1, nor is a library of it. If it loads it later (dlopen), the "
                  "first copy that is loaded is seen.");
    if (*named)
        check_say(VERDICT_WARNING, "second copy",
                  "It names %s with its directory: where that is another file than the first, its calls are not seen.",
                  named);
    if (*direct)
        check_say(VERDICT_WARNING, "past libibverbs",
                  "It is linked with %s: work that it posts by calls of that library (mlx5dv, efadv) is not seen. For "
                  "UCX, UCX_TLS=rc_v,ud_v leaves them out.",
                  direct);
    check_drivers();
}
