#include "fabric/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* @softverbs-4791 INDEX DEVICE:INODE PID DIRECTORY; the numbers tell directories apart, whatever they are called. */
static const char mark[] = "softverbs-4791 ";

/* What stands before the process. */
static void write_key(char to[64], const char *directory, unsigned index)
{
    struct stat place = {0};
    if (stat(directory, &place)) /* one that is still to be made */
        memset(&place, 0, sizeof place);
    snprintf(to, 64, "%u %ju:%ju ", index, (uintmax_t)place.st_dev, (uintmax_t)place.st_ino);
}

/* Does this line of the list name another directory on this interface? Then `other` points at its process. */
static bool is_other(char *line, const char *key, const char **other)
{
    char *name = strstr(line, mark);
    size_t interface = strcspn(key, " ") + 1;
    if (!name || name == line || name[-1] != '@')
        return false;
    name += sizeof mark - 1;
    if (strncmp(name, key, interface) != 0 || !strncmp(name, key, strlen(key)))
        return false;
    name[strcspn(name, "\n")] = 0;
    *other = strchr(name + interface, ' ');
    return *other;
}

bool claim_is_others(const char *directory, unsigned index, char *why, size_t why_size)
{
    char key[64], *line = NULL;
    const char *other;
    size_t room = 0;
    bool found = false;
    FILE *list = fopen("/proc/net/unix", "re");
    write_key(key, directory, index);
    while (list && !found && getline(&line, &room, list) > 0) {
        found = is_other(line, key, &other);
        if (found)
            snprintf(
                why, why_size,
                "Processes of another directory use UDP port 4791 of this interface (process and directory:%s); they "
                "share it only with those that have the same SOFTVERBS_DIR.",
                other);
    }
    free(line);
    if (list)
        fclose(list);
    return found;
}

/* Devices on one interface need one claim, so a name that is taken is ours. */
static int announce(const char *directory, unsigned index)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char key[64];
    write_key(key, directory, index);
    int length =
        snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s%s%d %s", mark, key, (int)getpid(), directory);
    size_t most = sizeof name.sun_path - 2, used = (size_t)length < most ? (size_t)length : most;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int claim_take(const char *directory, unsigned index, int *claim, char *why, size_t why_size)
{
    *claim = announce(directory, index);
    if (!claim_is_others(directory, index, why, why_size))
        return 0;
    if (*claim >= 0)
        close(*claim);
    *claim = -1;
    return EBUSY;
}
