#include "link/udp/reach.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/read_clock.h"
#include "base/uncancelled.h"
#include "link/udp/netlink.h"
#include "wire/grh.h"

enum {
    DISCARD_PORT = 9,
    USABLE = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY,
    METRIC_HOP_LIMIT = 10 /* RTAX_HOPLIMIT */
};

struct way {
    unsigned interface;
    bool ipv6;
    const uint8_t *source, *destination;
};

/* The bytes of the address in a GID. */
static const uint8_t *address_of(const uint8_t gid[16], bool ipv6)
{
    return ipv6 ? gid : gid + 12;
}

static size_t length_of(bool ipv6)
{
    return ipv6 ? 16 : 4;
}

static void put_gid(const uint8_t *address, bool ipv6, uint8_t gid[16])
{
    if (ipv6)
        memcpy(gid, address, 16);
    else
        grh_gid_of_ipv4(address, gid);
}

/* --- the kernel's tables */

/* Reads the gateway, which may be of the other IP version. */
static void read_gateway(const struct netlink_response *reply, bool ipv6, struct reach *reach)
{
    size_t size = 0;
    const uint8_t *gateway = netlink_find(reply, sizeof(struct rtmsg), RTA_GATEWAY, length_of(ipv6), NULL);
    const uint8_t *via = netlink_find(reply, sizeof(struct rtmsg), RTA_VIA, sizeof(uint16_t), &size);
    if (gateway)
        put_gid(gateway, ipv6, reach->neighbor);
    else if (via && size >= sizeof(uint16_t) + 16)
        memcpy(reach->neighbor, via + sizeof(uint16_t), 16);
}

static void read_hop_limit(const struct netlink_response *reply, struct reach *reach)
{
    size_t size = 0;
    uint32_t limit = 0;
    const void *metrics = netlink_find(reply, sizeof(struct rtmsg), RTA_METRICS, 0, &size);
    const void *found = metrics ? netlink_find_within(metrics, size, METRIC_HOP_LIMIT, sizeof limit, NULL) : NULL;
    if (found)
        memcpy(&limit, found, sizeof limit);
    if (limit && limit <= UINT8_MAX)
        reach->hop_limit = (uint8_t)limit;
}

/* Returns an error that says that no packet gets there, and 0 for any other, which is no reason to refuse. */
static int verdict_of(int error)
{
    return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES ? error : 0;
}

/* Asks for the first neighbour and its interface `over`; 0: the way ends here. Returns 0 or why nothing gets there. */
static int ask_route(int fd, const struct way *way, struct reach *reach, unsigned *over)
{
    struct netlink_request request;
    struct netlink_response reply;
    struct rtmsg body = {.rtm_family = way->ipv6 ? AF_INET6 : AF_INET,
                         .rtm_dst_len = (uint8_t)(8 * length_of(way->ipv6)),
                         .rtm_src_len = (uint8_t)(8 * length_of(way->ipv6))};
    uint32_t interface = way->interface;
    *over = 0;
    netlink_begin(&request, RTM_GETROUTE, &body, sizeof body);
    netlink_add(&request, RTA_DST, address_of(way->destination, way->ipv6), length_of(way->ipv6));
    netlink_add(&request, RTA_SRC, address_of(way->source, way->ipv6), length_of(way->ipv6));
    netlink_add(&request, RTA_OIF, &interface, sizeof interface);
    int error = netlink_ask(fd, &request, RTM_NEWROUTE, sizeof body, &reply);
    if (error)
        return verdict_of(error);
    memcpy(&body, netlink_body(&reply), sizeof body);
    read_hop_limit(&reply, reach);
    if (body.rtm_type != RTN_UNICAST)
        return 0;
    memcpy(reach->neighbor, way->destination, 16);
    read_gateway(&reply, way->ipv6, reach);
    const void *out = netlink_find(&reply, sizeof body, RTA_OIF, sizeof *over, NULL);
    if (out)
        memcpy(over, out, sizeof *over);
    return 0;
}

/* Returns true if the kernel knows the neighbour's hardware address. Kernels before 5.0 do not report a single one. */
static bool is_known(int fd, unsigned interface, const uint8_t neighbor[16])
{
    struct netlink_request request;
    struct netlink_response reply;
    bool ipv6 = !grh_is_ipv4(neighbor);
    struct ndmsg body = {.ndm_family = ipv6 ? AF_INET6 : AF_INET, .ndm_ifindex = (int)interface};
    netlink_begin(&request, RTM_GETNEIGH, &body, sizeof body);
    netlink_add(&request, NDA_DST, address_of(neighbor, ipv6), length_of(ipv6));
    int error = netlink_ask(fd, &request, RTM_NEWNEIGH, sizeof body, &reply);
    if (error)
        return error != ENOENT;
    memcpy(&body, netlink_body(&reply), sizeof body);
    return body.ndm_state & USABLE;
}

/* --- sockets */

static int open_udp(bool ipv6)
{
    return socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Returns true if the interface needs no hardware addresses, such as a tunnel or the loopback. */
static bool needs_none(int fd, unsigned interface)
{
    struct ifreq request = {.ifr_ifindex = (int)interface};
    return !ioctl(fd, SIOCGIFNAME, &request) && !ioctl(fd, SIOCGIFFLAGS, &request) &&
           request.ifr_flags & (IFF_NOARP | IFF_LOOPBACK);
}

/* The hop limit of a route that states none. */
static uint8_t default_hop_limit(int fd, bool ipv6)
{
    int value = 0;
    socklen_t length = sizeof value;
    int error = ipv6 ? getsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &value, &length)
                     : getsockopt(fd, IPPROTO_IP, IP_TTL, &value, &length);
    return !error && value > 0 && value <= UINT8_MAX ? (uint8_t)value : 0;
}

static socklen_t put_address(const struct way *way, const uint8_t gid[16], uint16_t port, struct sockaddr_in6 *to)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (!way->ipv6) {
        memcpy(&ipv4.sin_addr, gid + 12, 4);
        memcpy(to, &ipv4, sizeof ipv4);
        return sizeof ipv4;
    }
    *to = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = way->interface};
    memcpy(&to->sin6_addr, gid, 16);
    return sizeof *to;
}

static bool leads_over(int fd, const struct way *way)
{
    int interface = (int)htonl(way->interface);
    return way->ipv6 ? !setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, &interface, sizeof interface)
                     : !setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &interface, sizeof interface);
}

/* Makes the kernel ask for the neighbour, by a first packet that goes there. It carries nothing, is for a service that
 * throws away what it gets (RFC 863), and ends at the first router. */
static void provoke(int fd, const struct way *way)
{
    struct sockaddr_in6 here, there;
    socklen_t length = put_address(way, way->source, 0, &here);
    int once = 1;
    bool near = way->ipv6 ? !setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &once, sizeof once)
                          : !setsockopt(fd, IPPROTO_IP, IP_TTL, &once, sizeof once);
    if (near && leads_over(fd, way)) {
        bind(fd, (struct sockaddr *)&here, length); /* may fail: the interface may have lost the address */
        put_address(way, way->destination, DISCARD_PORT, &there);
        sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&there, length);
    }
}

/* --- the answer */

static int ask_with(int netlink, int udp, const struct way *way, struct reach *reach)
{
    unsigned over;
    reach->hop_limit = default_hop_limit(udp, way->ipv6);
    int error = ask_route(netlink, way, reach, &over);
    if (error || !over || needs_none(udp, over)) {
        memset(reach->neighbor, 0, sizeof reach->neighbor);
        return error;
    }
    if (is_known(netlink, over, reach->neighbor))
        return 0;
    provoke(udp, way);
    return EAGAIN;
}

/* If no socket can be had, nothing is known, and nothing is refused. */
int reach_ask(unsigned interface, const uint8_t source[16], const uint8_t destination[16], struct reach *reach)
{
    struct way way = {interface, !grh_is_ipv4(destination), source, destination};
    *reach = (struct reach){.hop_limit = 0};
    int netlink = netlink_open(), udp = open_udp(way.ipv6);
    int error = netlink >= 0 && udp >= 0 ? ask_with(netlink, udp, &way, reach) : 0;
    descriptor_close(&netlink);
    descriptor_close(&udp);
    return error;
}

int reach_wait(unsigned interface, const uint8_t source[16], const uint8_t destination[16], nanos timeout,
               struct reach *reach)
{
    nanos until = read_clock(CLOCK_MONOTONIC) + timeout;
    int before = uncancelled_begin(), error;
    for (unsigned asked = 0; (error = reach_ask(interface, source, destination, reach)) == EAGAIN; asked++) {
        nanos pause = nanos_backoff(asked), time = read_clock(CLOCK_MONOTONIC);
        if (time >= until)
            break;
        pause = pause < until - time ? pause : until - time;
        nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    }
    uncancelled_end(before);
    return error == EAGAIN ? ETIMEDOUT : error;
}
