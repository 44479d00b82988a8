#include "ipc/ask/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/user.h"
#include "diag/clean.h"

/* @softverbs-4791 INDEX DEVICE:INODE PID DIRECTORY; device and inode distinguish directories of the same path. */
static const char mark[] = "softverbs-4791 ";

/* Writes the fields before the process: they are the key of a claim. */
static void write_key(char to[64], const char *directory, unsigned index)
{
    struct stat place = {0};
    if (stat(directory, &place)) /* it does not exist yet */
        memset(&place, 0, sizeof place);
    snprintf(to, 64, "%u %ju:%ju ", index, (uintmax_t)place.st_dev, (uintmax_t)place.st_ino);
}

/* Returns true if this line of the list names another directory on this interface. Then `name` points at the socket's
 * name, without its first byte. */
static bool is_other(char *line, const char *key, const char **name)
{
    char *start = strstr(line, mark);
    size_t interface = strcspn(key, " ") + 1;
    if (!start || start == line || start[-1] != '@')
        return false;
    start[strcspn(start, "\n")] = 0;
    *name = start;
    start += sizeof mark - 1;
    return !strncmp(start, key, interface) && strncmp(start, key, strlen(key)) && strchr(start + interface, ' ');
}

static socklen_t put_name(struct sockaddr_un *address, const char *name)
{
    size_t most = sizeof address->sun_path - 1, length = strlen(name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    length = length < most ? length : most;
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* Any process may give a socket any name. The kernel reports the user of the process that listens there, though; and a
 * socket of another user never shares a port with ours (SO_REUSEPORT). */
static bool is_of_this_user(const char *name)
{
    struct sockaddr_un address;
    struct ucred owner;
    socklen_t length = put_name(&address, name), size = sizeof owner;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool known = fd >= 0 && !connect(fd, (struct sockaddr *)&address, length) &&
                 !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size);
    descriptor_close(&fd);
    return known && user_owns_process(owner.uid, owner.pid);
}

bool claim_is_others(const char *directory, unsigned index, char *why, size_t why_size)
{
    char key[64], *line = NULL;
    const char *name;
    size_t room = 0;
    bool found = false;
    FILE *list = fopen("/proc/net/unix", "re");
    write_key(key, directory, index);
    while (list && !found && getline(&line, &room, list) > 0) {
        found = is_other(line, key, &name) && is_of_this_user(name);
        if (found)
            snprintf(why, why_size,
                     "Processes of another directory use UDP port 4791 of this interface (process and directory:%s); "
                     "they share it only with those that have the same SOFTVERBS_DIR.",
                     strchr(name + sizeof mark - 1 + strcspn(key, " ") + 1, ' '));
    }
    free(line);
    if (list)
        fclose(list);
    return found;
}

/* A process needs one claim for all its devices on an interface, so a name that is taken is its own. The directory is
 * in the name for people to read. */
static int announce(const char *directory, unsigned index)
{
    struct sockaddr_un address;
    char key[64], name[sizeof address.sun_path];
    write_key(key, directory, index);
    snprintf(name, sizeof name, "%s%s%d %s", mark, key, (int)getpid(), directory);
    clean_text(name);
    socklen_t length = put_name(&address, name);
    int fd = descriptor_raise(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, length) || listen(fd, SOMAXCONN))) {
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
    descriptor_close(claim);
    return EBUSY;
}
