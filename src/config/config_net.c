#include "config/config_net.h"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/complaint.h"
#include "config/gid.h"

enum { LOWER_UP = 1 << 16 }; /* IFF_LOWER_UP of <linux/if.h>, which can't be included beside <net/if.h> */

/* False: the kernel could not be asked. */
static bool read_hardware(struct interface *interface, const char *name)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    interface->found = !ioctl(fd, SIOCGIFMTU, &request);
    if (interface->found) {
        interface->mtu = (uint32_t)request.ifr_mtu;
        if (!ioctl(fd, SIOCGIFHWADDR, &request))
            memcpy(interface->mac, request.ifr_hwaddr.sa_data, 6);
        interface->index = ioctl(fd, SIOCGIFINDEX, &request) ? 0 : (unsigned)request.ifr_ifindex;
    }
    close(fd);
    return true;
}

static void add_addresses(struct interface *interface, const char *name, const struct ifaddrs *all, int family)
{
    for (const struct ifaddrs *each = all; each && interface->address_count < INTERFACE_ADDRESSES;
         each = each->ifa_next) {
        union ibv_gid *gid = &interface->addresses[interface->address_count];
        if (!each->ifa_addr || each->ifa_addr->sa_family != family || strcmp(each->ifa_name, name))
            continue;
        if (family == AF_INET)
            *gid = gid_from_ipv4((const uint8_t *)&((struct sockaddr_in *)each->ifa_addr)->sin_addr);
        else
            memcpy(gid, &((struct sockaddr_in6 *)each->ifa_addr)->sin6_addr, sizeof *gid);
        interface->address_count++;
    }
}

/* The kernel calls a RoCE port active under the same conditions. */
static bool is_up(const char *name, const struct ifaddrs *all)
{
    for (const struct ifaddrs *each = all; each; each = each->ifa_next)
        if (!strcmp(each->ifa_name, name))
            return (each->ifa_flags & IFF_UP) && (each->ifa_flags & LOWER_UP);
    return false;
}

bool config_read_interface(struct interface *interface, const char *name)
{
    struct ifaddrs *all;
    interface->found = interface->up = false;
    interface->address_count = 0;
    if (strlen(name) >= IF_NAMESIZE)
        return true;
    if (!read_hardware(interface, name) || (interface->found && getifaddrs(&all)))
        return false;
    if (!interface->found)
        return true;
    interface->up = is_up(name, all);
    add_addresses(interface, name, all, AF_INET);
    add_addresses(interface, name, all, AF_INET6);
    freeifaddrs(all);
    return true;
}

void config_network(struct device *device, const char *name)
{
    static struct interface interface; /* the configuration is read once, by one thread */
    bool known = config_read_interface(&interface, name);
    if (!known || !interface.found) {
        complaint_add("device %s stays off the network: %s \"%s\"", device->name,
                      known ? "there is no interface" : "the kernel can't be asked just now for interface", name);
        return;
    }
    snprintf(device->interface, sizeof device->interface, "%s", name);
    memset(device->start.gids, 0, sizeof device->start.gids);
    device->start.gid_count = 0;
    device->start = device_state_follow(&device->start, &interface);
    memcpy(device->guid, device->start.gids[device->start.first_gid].raw + 8, sizeof device->guid);
}
