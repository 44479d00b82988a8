#include "ipc/ask/strangers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/uncancelled.h"
#include "diag/clean.h"
#include "ipc/node.h"

enum { LINES_MOST = 10000 };

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

/* A name that softverbs chooses, or a table that this user sees. */
static bool is_meeting_place(const char *directory)
{
    char table[NODE_DIRECTORY_MAX + sizeof "/table"];
    const char *last = strrchr(directory, '/');
    if (strlen(directory) > NODE_DIRECTORY_MAX)
        return false;
    snprintf(table, sizeof table, "%s/table", directory);
    return (last && !strncmp(last, "/softverbs-", strlen("/softverbs-"))) || !access(table, F_OK);
}

static bool name_place(const char *own, char *path, char *to, size_t size)
{
    struct stat status;
    if (!cut_name(path) || !strcmp(path, own) || !is_meeting_place(path) || lstat(path, &status))
        return false;
    clean_text(path);
    if (status.st_uid == geteuid())
        snprintf(to, size, "processes of this user meet in %s, and those of two directories do not reach each other",
                 path);
    else
        snprintf(to, size,
                 "user %u runs softverbs on this host, too, and processes of two users do not reach each other",
                 (unsigned)status.st_uid);
    return true;
}

static bool search(FILE *list, const char *own, char *to, size_t size)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    for (unsigned i = 0; !found && i < LINES_MOST && getline(&line, &room, list) > 0; i++) {
        line[strcspn(line, "\n")] = 0;
        char *path = strstr(line, " /");
        found = path && name_place(own, path + 1, to, size);
    }
    free(line);
    return found;
}

bool strangers_find(const char *directory, char *to, size_t size)
{
    int before = uncancelled_begin();
    FILE *list = fopen("/proc/net/unix", "re");
    bool found = list && search(list, directory, to, size);
    if (list)
        fclose(list);
    uncancelled_end(before);
    return found;
}
