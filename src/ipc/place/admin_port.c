#include "ipc/place/admin_port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ipc/node.h"
#include "ipc/place/directory.h"

enum { PATH_MOST = NODE_DIRECTORY_MAX + 100 };

static void path_of(char path[PATH_MOST], const char *directory, const char *device)
{
    snprintf(path, PATH_MOST, "%s/port-down-%s", directory, device);
}

bool admin_port_is_down(const char *directory, const char *device)
{
    char path[PATH_MOST];
    path_of(path, directory, device);
    return !access(path, F_OK);
}

int admin_port_set(const char *directory, const char *device, bool down, char *why, size_t why_size)
{
    char path[PATH_MOST];
    int error = directory_check(directory, true, why, why_size);
    if (error)
        return error;
    path_of(path, directory, device);
    int fd = down ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (down ? fd < 0 : unlink(path) && errno != ENOENT) {
        error = errno;
        snprintf(why, why_size, "%s: %s", path, strerror(error));
    }
    if (fd >= 0)
        close(fd);
    return error;
}
