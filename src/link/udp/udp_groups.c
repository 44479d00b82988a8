/* Multicast: each group has a separate socket, bound to the group's address. The sockets that many processes share
 * (SO_REUSEPORT) will not do: when only one of them has joined, a kernel from Linux 6.6 on may hand the datagrams to
 * another of them. Also, a socket may be in at most twenty groups of IPv4. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/udp/udp_state.h"

struct udp_group {
    LIST_ENTRY(udp_group) siblings;
    int fd;
    uint8_t gid[16];
};

static struct udp_group *udp_groups_find(const struct udp_port *port, const uint8_t gid[16])
{
    struct udp_group *group;
    LIST_FOREACH (group, &port->groups, siblings)
        if (!memcmp(group->gid, gid, sizeof group->gid))
            return group;
    return NULL;
}

static bool udp_groups_enter(const struct udp_port *port, int fd, const union udp_address *address)
{
    struct group_req request = {.gr_interface = port->index};
    memcpy(&request.gr_group, address, sizeof *address);
    int level = address->any.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    return !setsockopt(fd, level, MCAST_JOIN_GROUP, &request, sizeof request);
}

int udp_join(struct udp_port *port, const uint8_t gid[16])
{
    union udp_address address;
    if (udp_groups_find(port, gid))
        return 0;
    struct udp_group *group = calloc(1, sizeof *group);
    if (!group)
        return ENOMEM;
    udp_put_address(port, &address, gid, DATAGRAM_PORT);
    memcpy(group->gid, gid, sizeof group->gid);
    group->fd = udp_make_receiving(port, &address);
    if (group->fd >= 0 && udp_groups_enter(port, group->fd, &address) && udp_watch(port, group->fd)) {
        LIST_INSERT_HEAD(&port->groups, group, siblings);
        return 0;
    }
    int error = errno;
    descriptor_close(&group->fd);
    free(group);
    return error;
}

static void leave(struct udp_port *port, struct udp_group *group)
{
    if (port->hot == group->fd)
        port->hot = -1;
    LIST_REMOVE(group, siblings);
    close(group->fd);
    free(group);
}

void udp_leave(struct udp_port *port, const uint8_t gid[16])
{
    struct udp_group *group = udp_groups_find(port, gid);
    if (group)
        leave(port, group);
}

void udp_leave_all(struct udp_port *port)
{
    while (!LIST_EMPTY(&port->groups))
        leave(port, LIST_FIRST(&port->groups));
}
