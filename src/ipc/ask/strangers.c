#include "ipc/ask/strangers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "base/user.h"
#include "diag/clean.h"
#include "ipc/node.h"

enum { LINES_MOST = 2000, LINE = 256, WORDS = 256 };

/* "DIRECTORY/NUMBER.sock" without what follows the directory. False: it is no such name. */
static bool cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return false;
    size_t digits = strspn(slash + 1, "0123456789");
    bool fits = digits && !strcmp(slash + 1 + digits, ".sock");
    *slash = 0;
    return fits;
}

/* The number of the user in a name that softverbs chooses, softverbs-UID-...; -1: there is none. */
static long long user_of(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits && digits < 11 && name[digits] == '-' ? strtoll(name, NULL, 10) : -1;
}

/* By the name alone: looking at a path that another user chose can take as long as that user likes. */
static bool name_place(const char *own, char *path, char *to, size_t size)
{
    static const char mark[] = "/softverbs-";
    if (!cut_name(path) || !strcmp(path, own) || !strstr(path, mark))
        return false;
    long long user = user_of(strstr(path, mark) + strlen(mark));
    clean_text(path);
    if (user >= 0 && !user_has_own_number((uid_t)user))
        snprintf(to, size,
                 "user %lld runs softverbs on this host, too, and processes of two users do not reach each other",
                 user);
    else
        snprintf(to, size, "processes meet in %s, too, and those of two directories do not reach each other", path);
    return true;
}

static bool search(FILE *list, const char *own, char *to, size_t size)
{
    char line[LINE];
    bool found = false;
    for (unsigned i = 0; !found && i < LINES_MOST && fgets(line, sizeof line, list); i++) {
        line[strcspn(line, "\n")] = 0;
        char *path = strstr(line, " /");
        found = path && name_place(own, path + 1, to, size);
    }
    return found;
}

static bool read_list(const char *directory, char *to, size_t size)
{
    int saved = errno, before = uncancelled_begin();
    FILE *list = fopen("/proc/net/unix", "re");
    bool found = list && search(list, directory, to, size);
    if (list)
        fclose(list);
    uncancelled_end(before);
    errno = saved;
    return found;
}

/* -- what was found stands for a second: many queue pairs may fail at once, each under the locks of its process */

static struct {
    bool known, found;
    time_t second;
    char directory[NODE_DIRECTORY_MAX + 1], words[WORDS];
} last;

LOCK_STATIC(asking, LOCK_INNERMOST); /* last */

static time_t this_second(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

static bool recall(const char *directory, time_t second, bool *found, char words[WORDS])
{
    lock_take(&asking);
    bool known = last.known && last.second == second && !strcmp(last.directory, directory);
    *found = last.found;
    memcpy(words, last.words, WORDS);
    lock_release(&asking);
    return known;
}

static void remember(const char *directory, time_t second, bool found, const char words[WORDS])
{
    lock_take(&asking);
    last.known = strlen(directory) <= NODE_DIRECTORY_MAX;
    last.found = found;
    last.second = second;
    snprintf(last.directory, sizeof last.directory, "%s", directory);
    memcpy(last.words, words, WORDS);
    lock_release(&asking);
}

bool strangers_find(const char *directory, char *to, size_t size)
{
    char words[WORDS] = "";
    bool found;
    time_t second = this_second();
    if (!recall(directory, second, &found, words)) {
        found = read_list(directory, words, sizeof words);
        remember(directory, second, found, words);
    }
    snprintf(to, size, "%s", words);
    return found;
}
