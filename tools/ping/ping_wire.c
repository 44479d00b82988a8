#include "ping_wire.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "wire/op.h"

#include <linux/errqueue.h>

enum { FIRST_PORT = 0xc000, TRIES = 1000, DATAGRAM_ROOM = 65536, IPV4 = 20, IPV6 = 40, UDP = 8 };

union address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    struct sockaddr_storage room;
};

static void write_gid(const union address *address, uint8_t gid[16])
{
    memset(gid, 0, 16);
    if (address->any.sa_family == AF_INET6) {
        memcpy(gid, &address->ipv6.sin6_addr, 16);
        return;
    }
    gid[10] = gid[11] = 0xff;
    memcpy(gid + 12, &address->ipv4.sin_addr, 4);
}

/* Writes the address; a link-local one with its interface. */
static void write_text(const union address *address, char text[PING_ADDRESS_MAX])
{
    socklen_t length = address->any.sa_family == AF_INET6 ? sizeof address->ipv6 : sizeof address->ipv4;
    if (getnameinfo(&address->any, length, text, PING_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST))
        *text = 0;
}

static bool set(int fd, int level, int name, int value)
{
    return !setsockopt(fd, level, name, &value, sizeof value);
}

static bool bind_to_interface(int fd, const char *interface)
{
    return !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface) + 1);
}

/* Finds the address from which packets to wire->to leave. 0 or errno. */
static int find_source(const struct ping_wire *wire, const char *interface, union address *source)
{
    socklen_t length = sizeof *source;
    int fd = socket(wire->to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;
    if (fd < 0 || (interface && !bind_to_interface(fd, interface)) ||
        connect(fd, (const struct sockaddr *)&wire->to, wire->to_length) || getsockname(fd, &source->any, &length))
        error = errno;
    if (fd >= 0)
        close(fd);
    return error;
}

static bool is_same(const union address *a, const struct sockaddr *b)
{
    if (!b || b->sa_family != a->any.sa_family)
        return false;
    if (b->sa_family == AF_INET)
        return !memcmp(&a->ipv4.sin_addr, &((const struct sockaddr_in *)b)->sin_addr, 4);
    return !memcmp(&a->ipv6.sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, 16);
}

/* Finds the interface of the source. Several may have the same link-local address, so `source` names its interface. */
static void find_interface(struct ping_wire *wire, const union address *source)
{
    struct ifaddrs *all;
    if (source->any.sa_family == AF_INET6 && source->ipv6.sin6_scope_id &&
        if_indextoname(source->ipv6.sin6_scope_id, wire->interface))
        return;
    if (getifaddrs(&all))
        return;
    for (const struct ifaddrs *each = all; each; each = each->ifa_next)
        if (is_same(source, each->ifa_addr) && !*wire->interface)
            snprintf(wire->interface, sizeof wire->interface, "%s", each->ifa_name);
    freeifaddrs(all);
}

static bool read_mtu(struct ping_wire *wire)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", wire->interface);
    bool read = !ioctl(wire->fd, SIOCGIFMTU, &request);
    wire->mtu = read ? (unsigned)request.ifr_mtu : 0;
    return read;
}

/* Any free port of those that RoCEv2 sends from (A17.9.2). */
static bool bind_somewhere(struct ping_wire *wire, union address source)
{
    uint16_t number;
    for (int tries = 0; tries < TRIES && getrandom(&number, sizeof number, 0) == sizeof number; tries++) {
        number |= FIRST_PORT;
        if (wire->ipv6)
            source.ipv6.sin6_port = htons(number);
        else
            source.ipv4.sin_port = htons(number);
        wire->route.source_port = number;
        if (!bind(wire->fd, &source.any, wire->ipv6 ? sizeof source.ipv6 : sizeof source.ipv4))
            return true;
        if (errno != EADDRINUSE)
            break;
    }
    return false;
}

/* Datagrams are never fragmented, and sent whatever the kernel has learned of the path, which may have changed. The
 * socket stays unconnected, because then the identification is 0, which the ICRC covers. */
static bool prepare(struct ping_wire *wire)
{
    wire->fd = socket(wire->to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (wire->fd < 0)
        return false;
    bool asked = wire->ipv6 ? set(wire->fd, IPPROTO_IPV6, IPV6_RECVERR, 1) &&
                                  set(wire->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)
                            : set(wire->fd, IPPROTO_IP, IP_RECVERR, 1) &&
                                  set(wire->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    return asked && bind_to_interface(wire->fd, wire->interface);
}

static int explain(int error, const struct ping_wire *wire, const char *interface, char *why, size_t why_size)
{
    if (error == ENODEV)
        snprintf(why, why_size, "There is no network interface \"%s\".", interface);
    else if (error == ENETUNREACH || error == EHOSTUNREACH)
        snprintf(why, why_size, "No route leads from this host to %s.", wire->there);
    else
        snprintf(why, why_size, "Nothing can be sent to %s: %s.", wire->there, strerror(error));
    return error;
}

int ping_wire_open(struct ping_wire *wire, const struct addrinfo *to, const char *interface, char *why, size_t why_size)
{
    union address source = {.room = {0}}, there = {.room = {0}};
    memset(wire, 0, sizeof *wire);
    memcpy(&there, to->ai_addr, to->ai_addrlen);
    wire->fd = -1;
    wire->to = there.room;
    wire->to_length = to->ai_addrlen;
    wire->ipv6 = to->ai_family == AF_INET6;
    write_text(&there, wire->there);
    int error = find_source(wire, interface, &source);
    if (error)
        return explain(error, wire, interface, why, why_size);
    if (interface)
        snprintf(wire->interface, sizeof wire->interface, "%s", interface);
    else
        find_interface(wire, &source);
    write_text(&source, wire->here);
    write_gid(&source, wire->route.source);
    write_gid(&there, wire->route.destination);
    wire->route.destination_port = DATAGRAM_PORT;
    wire->route.fragment = DATAGRAM_DONT_FRAGMENT;
    if (prepare(wire) && bind_somewhere(wire, source) && read_mtu(wire))
        return 0;
    error = errno;
    ping_wire_close(wire);
    return explain(error, wire, wire->interface, why, why_size);
}

void ping_wire_close(struct ping_wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
}

/* The kernel reports an error of an earlier datagram instead of sending this one; then it is sent again. */
void ping_wire_send(struct ping_wire *wire, const struct packet *packet)
{
    static uint8_t bytes[DATAGRAM_ROOM];
    size_t length = datagram_encode(&wire->route, packet, bytes, sizeof bytes);
    for (int tries = 0; length && tries < 3; tries++)
        if (sendto(wire->fd, bytes, length, MSG_NOSIGNAL, (struct sockaddr *)&wire->to, wire->to_length) >= 0 ||
            errno == EMSGSIZE)
            return;
}

unsigned ping_wire_overhead(const struct ping_wire *wire, uint8_t opcode)
{
    return (wire->ipv6 ? IPV6 : IPV4) + UDP + op_table[opcode].headers + DATAGRAM_ICRC;
}

static bool is_trouble(const struct cmsghdr *header)
{
    return (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_RECVERR) ||
           (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_RECVERR);
}

static void read_trouble(struct cmsghdr *header, struct ping_trouble *trouble)
{
    struct {
        struct sock_extended_err error;
        union address from;
    } told = {.from = {.room = {0}}};
    size_t size = header->cmsg_len - CMSG_LEN(0);
    memcpy(&told, CMSG_DATA(header), size < sizeof told ? size : sizeof told);
    trouble->error = (int)told.error.ee_errno;
    trouble->mtu = told.error.ee_errno == EMSGSIZE ? told.error.ee_info : 0;
    if (told.error.ee_origin == SO_EE_ORIGIN_ICMP || told.error.ee_origin == SO_EE_ORIGIN_ICMP6)
        write_text(&told.from, trouble->from);
}

bool ping_wire_trouble(struct ping_wire *wire, struct ping_trouble *trouble)
{
    _Alignas(struct cmsghdr) uint8_t control[512];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    *trouble = (struct ping_trouble){0};
    if (recvmsg(wire->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        return false;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header))
        if (is_trouble(header))
            read_trouble(header, trouble);
    return true;
}
