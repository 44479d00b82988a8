/* Receiving sockets that are connected to a sender. */
#include <string.h>
#include <unistd.h>

#include "link/udp/udp_state.h"

static bool is_preferred(const struct udp_port *port, const struct datagram_route *route)
{
    for (int i = 0; i < UDP_PREFERRED; i++) {
        const struct udp_preferred *each = &port->preferred[i];
        if (each->fd >= 0 && each->source_port == route->source_port && !memcmp(each->source, route->source, 16) &&
            !memcmp(each->destination, route->destination, 16))
            return true;
    }
    return false;
}

static bool connect_to(int fd, const struct udp_port *port, const struct datagram_route *route)
{
    union udp_address there;
    udp_put_address(port, &there, route->source, route->source_port);
    return !connect(fd, &there.any, udp_address_length(&there));
}

/* Makes a socket for this sender; all works without it, too. Datagrams of other senders that reached the socket before
 * it was connected are read, too. */
static bool prefer_at(struct udp_port *port, struct udp_preferred *place, const struct datagram_route *route)
{
    union udp_address here;
    udp_put_address(port, &here, route->destination, DATAGRAM_PORT);
    int fd = udp_make_receiving(port, &here); /* bound, as else the kernel would choose an address when it connects */
    if (fd < 0)
        return false;
    if (!connect_to(fd, port, route) || !udp_watch(port, fd)) {
        close(fd);
        return false;
    }
    descriptor_close(&place->fd);
    port->hot = -1;
    *place = (struct udp_preferred){.fd = fd, .source_port = route->source_port};
    memcpy(place->source, route->source, 16);
    memcpy(place->destination, route->destination, 16);
    return true;
}

void udp_prefer(struct udp_port *port, const struct datagram_route *route, nanos now)
{
    static const nanos each = 10 * NANOS_MILLISECOND;
    if (port->abandoned || is_preferred(port, route) || !bucket_take(&port->preferring, now, each, 1))
        return;
    if (prefer_at(port, &port->preferred[port->next_preferred], route))
        port->next_preferred = (port->next_preferred + 1) % UDP_PREFERRED;
}

void udp_prefer_steady(struct udp_port *port, const struct datagram_route *route)
{
    struct udp_preferred *place = &port->preferred[port->next_preferred];
    if (place->fd < 0 && port->interface[0] && !is_preferred(port, route) && prefer_at(port, place, route))
        port->next_preferred = (port->next_preferred + 1) % UDP_PREFERRED;
}
