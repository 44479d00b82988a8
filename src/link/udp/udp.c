/* A port and its links. Sockets, sending, receiving and multicast groups have separate files. */
#include "link/udp/udp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/read_clock.h"
#include "base/uncancelled.h"
#include "link/udp/udp_state.h"

/* Opens the receiving socket of an IP version, for datagrams to any address. 0 or errno. */
static int open_receiving(struct udp_port *port, bool ipv6)
{
    union udp_address any = udp_any_address(ipv6, DATAGRAM_PORT);
    port->receiving[ipv6] = udp_make_receiving(port, &any);
    return port->receiving[ipv6] >= 0 && udp_watch(port, port->receiving[ipv6]) ? 0 : errno;
}

static int open_sockets(struct udp_port *port)
{
    int error = open_receiving(port, false);
    if (error)
        return error;
    error = open_receiving(port, true);
    return error == EAFNOSUPPORT ? 0 : error; /* a kernel without IPv6 */
}

static void explain(int error, const char *interface, char *why, size_t why_size)
{
    const char *reason = error == EADDRINUSE ? "another user or program has UDP port 4791"
                         : error == ENODEV   ? "there is no such interface"
                         : error == EPERM    ? "this kernel lets only root bind to an interface"
                                             : strerror(error);
    snprintf(why, why_size, "The network interface \"%s\" can't be used for RoCE: %s.", interface, reason);
}

static struct udp_port *udp_make(unsigned index)
{
    struct udp_port *port = calloc(1, sizeof *port);
    if (!port)
        return NULL;
    port->index = index;
    lock_set_rank(&port->lock, LOCK_PORT);
    udp_icmp_initialize(&port->icmp);
    port->epoll = descriptor_raise(epoll_create1(EPOLL_CLOEXEC));
    port->hot = port->kept = -1;
    port->buffers = udp_buffers_create();
    for (int family = 0; family < UDP_FAMILIES; family++) {
        port->receiving[family] = -1;
        for (int i = 0; i < UDP_SENDING; i++) {
            port->flows[family][i].fd = -1;
            lock_set_rank(&port->flows[family][i].lock, LOCK_FLOW);
        }
    }
    for (int i = 0; i < UDP_PREFERRED; i++)
        port->preferred[i].fd = -1;
    if (port->epoll >= 0 && port->buffers)
        return port;
    udp_close(port);
    return NULL;
}

static int open_on(struct udp_port *port, const char *interface)
{
    if (!port->index)
        return ENODEV;
    snprintf(port->interface, sizeof port->interface, "%s", interface);
    return open_sockets(port);
}

int udp_open(struct udp_port **to, const char *interface, char *why, size_t why_size)
{
    bool fits = strlen(interface) < IF_NAMESIZE;
    struct udp_port *port = fits ? udp_make(if_nametoindex(interface)) : NULL;
    int error = !fits ? ENODEV : !port ? ENOMEM : open_on(port, interface);
    if (!error) {
        *to = port;
        return 0;
    }
    explain(error, interface, why, why_size);
    if (port)
        udp_close(port);
    return error;
}

int udp_open_last(struct udp_port **to, unsigned interface)
{
    *to = udp_make(interface);
    return *to ? 0 : ENOMEM;
}

void udp_listen_last(struct udp_port *port)
{
    for (int family = 0; family < UDP_FAMILIES; family++)
        if (port->receiving[family] < 0)
            open_receiving(port, family);
}

void udp_keep(struct udp_port *port, int fd)
{
    port->kept = fd;
    if (fd >= 0)
        udp_watch(port, fd);
}

static void close_all(struct udp_port *port)
{
    udp_leave_all(port);
    for (int family = 0; family < UDP_FAMILIES; family++) {
        descriptor_close(&port->receiving[family]);
        for (int i = 0; i < UDP_SENDING; i++)
            if (port->flows[family][i].fd >= 0)
                close(port->flows[family][i].fd);
    }
    for (int i = 0; i < UDP_PREFERRED; i++)
        descriptor_close(&port->preferred[i].fd);
    descriptor_close(&port->epoll);
    descriptor_close(&port->kept);
    port->hot = -1;
}

void udp_close(struct udp_port *port)
{
    close_all(port);
    for (int family = 0; family < UDP_FAMILIES; family++)
        for (int i = 0; i < UDP_SENDING; i++)
            free(port->flows[family][i].bytes);
    free(port->buffers);
    free(port);
}

void udp_abandon(struct udp_port *port)
{
    port->abandoned = true;
    lock_inherit(&port->lock);
    lock_inherit(&port->icmp.lock);
    for (int family = 0; family < UDP_FAMILIES; family++)
        for (int i = 0; i < UDP_SENDING; i++) {
            lock_inherit(&port->flows[family][i].lock);
            udp_forget_connection(&port->flows[family][i]);
        }
    close_all(port);
}

int udp_fd(const struct udp_port *port)
{
    return port->epoll;
}

/* Finds the answer of the last half a minute. Reads all queues first, as it may still wait there. */
static bool find_error(struct udp_port *port, const uint8_t destination[16], struct udp_icmp_error *heard)
{
    static const nanos fresh = 30 * NANOS_SECOND;
    if (port->abandoned)
        return false;
    int before = uncancelled_begin();
    udp_icmp_take_all(&port->icmp);
    uncancelled_end(before);
    nanos now = read_clock(CLOCK_MONOTONIC);
    return udp_icmp_find(&port->icmp, destination, now > fresh ? now - fresh : 0, heard);
}

bool udp_icmp_describe(struct udp_port *port, const uint8_t destination[16], char *text, size_t size)
{
    struct udp_icmp_error heard;
    char words[UDP_ICMP_TEXT];
    text[0] = 0;
    if (!find_error(port, destination, &heard))
        return false;
    udp_icmp_write(&heard, words);
    snprintf(text, size, "%s", words);
    return true;
}

bool udp_icmp_is_closed(struct udp_port *port, const uint8_t destination[16], nanos since)
{
    enum { UNREACHABLE_IPV4 = 3, UNREACHABLE_IPV6 = 1, PORT_IPV4 = 3, PORT_IPV6 = 4 };
    struct udp_icmp_error heard;
    if (!find_error(port, destination, &heard) || heard.at < since)
        return false;
    return heard.type == (heard.ipv6 ? UNREACHABLE_IPV6 : UNREACHABLE_IPV4) &&
           heard.code == (heard.ipv6 ? PORT_IPV6 : PORT_IPV4);
}

unsigned udp_interface(const struct udp_port *port)
{
    return port->index;
}
