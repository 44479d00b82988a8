#include "ipc/ask/other_directories.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "base/user.h"
#include "diag/clean.h"
#include "ipc/node.h"

enum { LINES_MOST = 2000, LINE = 256, WORDS = 256 };

/* Cuts "DIRECTORY/NUMBER.sock" after the directory. False: the name has another form. */
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

/* The number of the user in a name that softverbs chooses, softverbs-UID-...; -1: the name has another form. */
static long long user_of(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits && digits < 11 && name[digits] == '-' ? strtoll(name, NULL, 10) : -1;
}

/* The kinds of paths in the list, the likeliest place of the peer last. Two programs without options miss each other
 * because their users differ, or because one has a named directory; a third party's own directory (a test's, say)
 * explains nothing. */
enum kind { NO_PLACE, NAMED, OWN_STANDARD, OTHER_USER };

struct place {
    enum kind kind;
    bool several; /* other directories are of this kind, too */
    long long user;
    char path[LINE];
};

/* Judges the name alone: looking at a path that another user chose can take as long as that user likes. */
static enum kind kind_of(const char *path, long long *user)
{
    static const char mark[] = "/softverbs-";
    const char *name = strstr(path, mark);
    *user = name ? user_of(name + strlen(mark)) : -1;
    if (!name)
        return NO_PLACE;
    return *user < 0 ? NAMED : user_has_own_number((uid_t)*user) ? OWN_STANDARD : OTHER_USER;
}

static void consider(const char *path, struct place *best)
{
    long long user;
    enum kind kind = kind_of(path, &user);
    if (kind == best->kind && kind != NO_PLACE)
        best->several |= strcmp(path, best->path) != 0;
    if (kind <= best->kind)
        return;
    *best = (struct place){.kind = kind, .user = user};
    snprintf(best->path, sizeof best->path, "%s", path);
}

static bool say_whose(struct place *place, char *to, size_t size)
{
    clean_text(place->path);
    if (place->kind == OTHER_USER)
        snprintf(to, size,
                 "user %lld runs softverbs on this host, too, and processes of two users do not reach each other",
                 place->user);
    else if (place->kind != NO_PLACE && place->several)
        snprintf(to, size,
                 "processes meet in other directories, such as %.107s, too, and those of two directories do not reach "
                 "each other",
                 place->path);
    else if (place->kind != NO_PLACE)
        snprintf(to, size, "processes meet in %.107s, too, and those of two directories do not reach each other",
                 place->path);
    return place->kind != NO_PLACE;
}

static bool search(FILE *list, const char *own, char *to, size_t size)
{
    char line[LINE];
    struct place best = {.kind = NO_PLACE};
    for (unsigned i = 0; i < LINES_MOST && fgets(line, sizeof line, list); i++) {
        line[strcspn(line, "\n")] = 0;
        char *path = strstr(line, " /");
        if (path && cut_name(path + 1) && strcmp(path + 1, own))
            consider(path + 1, &best);
    }
    return say_whose(&best, to, size);
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

/* -- the result is kept for a second: many queue pairs may fail at once, each under the locks of its process */

static struct {
    bool known, found;
    nanos second;
    char directory[NODE_DIRECTORY_MAX + 1], words[WORDS];
} last;

LOCK_STATIC(asking, LOCK_INNERMOST); /* last */

static bool recall(const char *directory, nanos second, bool *found, char words[WORDS])
{
    lock_take(&asking);
    bool known = last.known && last.second == second && !strcmp(last.directory, directory);
    *found = last.found;
    memcpy(words, last.words, WORDS);
    lock_release(&asking);
    return known;
}

static void remember(const char *directory, nanos second, bool found, const char words[WORDS])
{
    lock_take(&asking);
    last.known = strlen(directory) <= NODE_DIRECTORY_MAX;
    last.found = found;
    last.second = second;
    snprintf(last.directory, sizeof last.directory, "%s", directory);
    memcpy(last.words, words, WORDS);
    lock_release(&asking);
}

bool other_directories_find(const char *directory, char *to, size_t size)
{
    char words[WORDS] = "";
    bool found;
    nanos second = read_clock(CLOCK_MONOTONIC_COARSE) / NANOS_SECOND;
    if (!recall(directory, second, &found, words)) {
        found = read_list(directory, words, sizeof words);
        remember(directory, second, found, words);
    }
    snprintf(to, size, "%s", words);
    return found;
}
