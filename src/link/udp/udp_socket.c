/* The sockets that datagrams are received with, and their addresses. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "link/udp/udp_state.h"

#include <netinet/udp.h>

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

static const int on = 1;

/* The fields of a datagram's header that the ICRC and the GRH need. */
static bool ask_for_headers(int fd, bool ipv6)
{
    if (!ipv6)
        return udp_set(fd, IPPROTO_IP, IP_PKTINFO, on) && udp_set(fd, IPPROTO_IP, IP_RECVTOS, on) &&
               udp_set(fd, IPPROTO_IP, IP_RECVTTL, on);
    return udp_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, on) && udp_set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, on) &&
           udp_set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, on) && udp_set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, on) &&
           udp_set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, on); /* the kernel's rxe sends no checksum, A17.9.1 allows that */
}

/* A window of packets from each of many peers must fit; the kernel gives what its limits allow. */
static void ask_for_room(int fd)
{
    enum { WANTED = 8 << 20 };
    if (!udp_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, WANTED))
        udp_set(fd, SOL_SOCKET, SO_RCVBUF, WANTED);
}

void udp_put_address(const struct udp_port *port, union udp_address *to, const uint8_t gid[16], uint16_t number)
{
    *to = udp_any_address(!grh_is_ipv4(gid), number);
    if (to->any.sa_family == AF_INET6) {
        to->ipv6.sin6_scope_id = port->index;
        memcpy(&to->ipv6.sin6_addr, gid, 16);
    } else {
        memcpy(&to->ipv4.sin_addr, gid + 12, 4);
    }
}

bool udp_watch(const struct udp_port *port, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return !epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Lets datagrams for a group arrive only at its socket (udp_groups.c). */
static void ignore_groups_of_others(int fd, bool ipv6)
{
    if (ipv6)
        udp_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
    else
        udp_set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
}

/* Binds a socket that other processes of the user share on this interface: each gets a part of the datagrams. */
static bool bind_shared(int fd, const struct udp_port *port, const union udp_address *here)
{
    return udp_set(fd, SOL_SOCKET, SO_REUSEPORT, on) &&
           !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, port->interface, strlen(port->interface) + 1) &&
           !bind(fd, &here->any, udp_address_length(here));
}

/* Binds to the port if no socket has it. A process that starts later may bind there, too. Its sockets then get
 * everything: they do not share with this one, which was bound without SO_REUSEPORT, and are bound to an interface. */
static bool bind_last(int fd, const union udp_address *here)
{
    return !bind(fd, &here->any, udp_address_length(here)) && udp_set(fd, SOL_SOCKET, SO_REUSEPORT, on);
}

int udp_make_receiving(const struct udp_port *port, const union udp_address *here)
{
    bool ipv6 = here->any.sa_family == AF_INET6;
    int fd = descriptor_raise(socket(here->any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return -1;
    ask_for_room(fd);
    ignore_groups_of_others(fd, ipv6);
    udp_set(fd, IPPROTO_UDP, UDP_GRO, on); /* an older kernel hands out datagrams one by one */
    if (ask_for_headers(fd, ipv6) && (port->interface[0] ? bind_shared(fd, port, here) : bind_last(fd, here)))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}
