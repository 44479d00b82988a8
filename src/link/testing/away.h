/* A network namespace of the process, for tests of ports, whose loopback interface is up. */
#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static inline bool away_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return written;
}

/* False: the kernel refuses one. Port 4791 is free there, and no other process receives. */
static inline bool away_move(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNET) && (unshare(CLONE_NEWUSER | CLONE_NEWNET) || !away_write("/proc/self/setgroups", "deny")))
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &loopback);
    close(fd);
    return up;
}
