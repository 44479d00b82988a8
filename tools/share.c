#include "share.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 4791 };

/* A socket of both versions of IP is refused by each socket that would refuse a socket of either, whatever its address.
 * But the kernel keeps it apart from the sockets of one version that share the port, and prefers those: datagrams of
 * IPv4 reach sockets of IPv4 first, and datagrams of IPv6 the sockets that were there before. */
static int bind_both(int fd)
{
    static const int off;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
    return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) || bind(fd, (struct sockaddr *)&any, sizeof any);
}

/* For a kernel without IPv6: a group without members gets nothing. A socket with a single address is not found so. */
static int bind_group(int fd)
{
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    inet_pton(AF_INET, "239.255.47.91", &group.sin_addr);
    return bind(fd, (struct sockaddr *)&group, sizeof group);
}

int share_try(const char *interface)
{
    static const int on = 1;
    int family = AF_INET6, fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(family = AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    bool shared = !setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) &&
                  !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface) + 1) &&
                  !(family == AF_INET6 ? bind_both : bind_group)(fd);
    int error = shared ? 0 : errno;
    close(fd);
    return error;
}
