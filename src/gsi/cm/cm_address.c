#include "gsi/cm/cm_address.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/uncancelled.h"
#include "config/config.h"
#include "config/device_state.h"
#include "gsi/cm/cm_bindable.h"
#include "gsi/cm/cm_refusal.h"
#include "link/udp/reach.h"

enum { ACK_DELAY = 15, DISCARD_PORT = 9 };

/* --- socket addresses */

union socket_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

static socklen_t to_socket(const struct cm_address *address, uint16_t port, union socket_address *to)
{
    memset(to, 0, sizeof *to);
    if (cm_is_mapped(address->gid)) {
        to->ipv4.sin_family = AF_INET;
        to->ipv4.sin_port = htons(port);
        memcpy(&to->ipv4.sin_addr, address->gid + 12, 4);
        return sizeof to->ipv4;
    }
    to->ipv6.sin6_family = AF_INET6;
    to->ipv6.sin6_port = htons(port);
    to->ipv6.sin6_scope_id = address->scope;
    memcpy(&to->ipv6.sin6_addr, address->gid, 16);
    return sizeof to->ipv6;
}

static void take_gid(const union socket_address *from, uint8_t gid[16])
{
    if (from->any.sa_family == AF_INET6)
        memcpy(gid, &from->ipv6.sin6_addr, 16);
    else
        grh_gid_of_ipv4((const uint8_t *)&from->ipv4.sin_addr, gid);
}

static int make_socket(const union socket_address *address)
{
    return socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Finds out by binding a socket, which is possible only to addresses of the host. */
static bool is_of_host(const struct cm_address *address)
{
    union socket_address socket_address;
    socklen_t length = to_socket(address, 0, &socket_address);
    int fd = make_socket(&socket_address);
    bool bound = fd >= 0 && !bind(fd, &socket_address.any, length);
    if (fd >= 0)
        close(fd);
    return bound;
}

/* Finds the address from which the host sends to the destination. 0, or errno: there is no route. */
static int find_source(const struct cm_address *destination, uint8_t gid[16])
{
    union socket_address there, here;
    socklen_t length = to_socket(destination, DISCARD_PORT, &there), room = sizeof here;
    int fd = make_socket(&there);
    if (fd < 0)
        return errno;
    int error = connect(fd, &there.any, length) || getsockname(fd, &here.any, &room) ? errno : 0;
    close(fd);
    if (!error)
        take_gid(&here, gid);
    return error;
}

/* --- devices */

static void describe(const struct device *device, const struct device_state *now, unsigned gid_index,
                     struct cm_port *port)
{
    uint64_t guid = 0;
    for (unsigned i = 0; i < 8; i++)
        guid = guid << 8 | device->guid[i];
    *port = (struct cm_port){.device = device->index,
                             .guid = guid,
                             .number = 1,
                             .gid_index = (uint8_t)gid_index,
                             .mtu = (uint8_t)device_state_mtu(now),
                             .ack_delay = ACK_DELAY};
    memcpy(port->gid, now->gids[gid_index].raw, 16);
}

bool cm_address_of_gid(const uint8_t gid[16], struct cm_port *port)
{
    union ibv_gid wanted;
    memcpy(&wanted, gid, sizeof wanted);
    CONFIG_EACH (device) {
        const struct device_state *now = device_now(device);
        int index = device_state_find(now, &wanted);
        if (index < 0)
            continue;
        describe(device, now, (unsigned)index, port);
        return true;
    }
    return false;
}

/* Finds a port for addresses of the host that no device has: of the first device without a network, under its loopback
 * address; if all devices have networks, of the first one. */
static int serve_host(struct cm_port *port)
{
    const struct device *device = config_device(0);
    while (device && device->interface[0])
        device = config_device(device->index + 1);
    if (!device)
        device = config_device(0);
    if (!device)
        return ENODEV;
    const struct device_state *now = device_now(device);
    describe(device, now, now->first_gid + device_state_has(now, now->first_gid + 1), port);
    return 0;
}

static int find_port(const struct cm_address *address, struct cm_port *port)
{
    if (!config_has_interfaces())
        return ENODEV;
    if (cm_address_of_gid(address->gid, port))
        return 0;
    return is_of_host(address) ? serve_host(port) : EADDRNOTAVAIL;
}

bool cm_address_is_here(const struct cm_address *address)
{
    int before = uncancelled_begin();
    struct cm_port port;
    int error = find_port(address, &port);
    uncancelled_end(before);
    return !error;
}

/* An identifier that is bound to loopback beside networks has no device yet, as with Linux; libfabric then offers the
 * device's own addresses instead. */
static bool is_loopback_beside_networks(const struct cm_address *address, const struct cm_port *port)
{
    return cm_is_loopback(address) && config_device(port->device)->interface[0];
}

int cm_address_port(const struct cm_address *address, struct cm_port *port)
{
    int before = uncancelled_begin();
    struct cm_port own;
    int error = find_port(address, port);
    if (error)
        error = cm_refusal_of_address(error, address);
    else if (!cm_address_of_gid(address->gid, &own) && !cm_bindable(address))
        error = ENODEV;
    if (!error && is_loopback_beside_networks(address, port))
        port->device = CM_NOWHERE;
    uncancelled_end(before);
    return error;
}

/* --- routes */

static void set_loopback(struct cm_address *address)
{
    bool ipv4 = address->family == AF_INET || cm_is_mapped(address->gid);
    memset(address->gid, 0, 16);
    address->gid[15] = 1;
    if (ipv4)
        memcpy(address->gid + 10, (uint8_t[]){0xff, 0xff, 127, 0, 0, 1}, 6);
}

/* Chooses the bound source, the bound port, or the address from which the host would send. */
static int choose_source(const struct cm_port *bound, struct cm_address *source, const struct cm_address *destination,
                         struct cm_port *from)
{
    int error = 0;
    if (cm_is_any(source))
        error = find_source(destination, source->gid);
    else if (bound) {
        *from = *bound;
        return 0;
    }
    return error ? error : find_port(source, from);
}

/* The hop limit of a route within the host, which is the one of ordinary routes. */
enum { HOP_LIMIT = 64 };

/* Finds the rest of a route that leaves this host: over the device's interface to a neighbour there. */
static int find_way_out(struct cm_route *route)
{
    const struct device *device = config_device(route->from.device);
    struct reach reach;
    if (!device->interface[0])
        return ENODEV;
    int error = reach_ask(if_nametoindex(device->interface), route->from.gid, route->gid, &reach);
    if (reach.hop_limit)
        route->hop_limit = reach.hop_limit;
    return error;
}

static int find_route(const struct cm_port *bound, struct cm_address *source, const struct cm_address *destination,
                      struct cm_route *route)
{
    struct cm_address there = *destination;
    struct cm_port peer;
    if (cm_is_any(&there))
        set_loopback(&there);
    *route = (struct cm_route){.neighbor = CM_NOWHERE, .hop_limit = HOP_LIMIT};
    memcpy(route->gid, there.gid, 16);
    int error = choose_source(bound, source, &there, &route->from);
    if (error && cm_is_multicast(&there)) { /* members of a group on this host need no route that leaves it */
        set_loopback(source);
        error = find_port(source, &route->from);
    }
    if (error)
        return error == EADDRNOTAVAIL ? ENODEV : error;
    if (cm_is_multicast(&there))
        return 0;
    if (!find_port(&there, &peer)) {
        memcpy(route->gid, peer.gid, 16);
        return 0;
    }
    return find_way_out(route);
}

int cm_address_route(const struct cm_port *bound, struct cm_address *source, const struct cm_address *destination,
                     struct cm_route *route)
{
    int before = uncancelled_begin();
    int error = find_route(bound, source, destination, route);
    uncancelled_end(before);
    return error;
}
