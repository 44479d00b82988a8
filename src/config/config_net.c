#include "config/config_net.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/complaint.h"
#include "config/gid.h"

uint32_t config_fitting_mtu(int interface_mtu)
{
    enum { HEADERS = 80 };
    uint32_t mtu = 4096;
    while (mtu > 256 && (int)mtu + HEADERS > interface_mtu)
        mtu /= 2;
    return mtu;
}

static bool read_hardware(struct device *device, const char *interface)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    bool found = fd >= 0 && !ioctl(fd, SIOCGIFMTU, &request);
    if (found) {
        device->mtu = config_fitting_mtu(request.ifr_mtu);
        if (!ioctl(fd, SIOCGIFHWADDR, &request))
            memcpy(device->mac, request.ifr_hwaddr.sa_data, 6);
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static void add_gid(struct device *device, const union ibv_gid *gid)
{
    for (unsigned i = 0; i < device->gid_count; i++)
        if (!memcmp(&device->gids[i], gid, sizeof *gid))
            return;
    if (device->gid_count < GIDS)
        device->gids[device->gid_count++] = *gid;
}

static void add_addresses(struct device *device, const struct ifaddrs *all, int family)
{
    for (const struct ifaddrs *each = all; each; each = each->ifa_next) {
        union ibv_gid gid;
        if (!each->ifa_addr || each->ifa_addr->sa_family != family || strcmp(each->ifa_name, device->interface))
            continue;
        if (family == AF_INET)
            gid = gid_from_ipv4((const uint8_t *)&((struct sockaddr_in *)each->ifa_addr)->sin_addr);
        else
            memcpy(&gid, &((struct sockaddr_in6 *)each->ifa_addr)->sin6_addr, sizeof gid);
        add_gid(device, &gid);
    }
}

/* First the link-local GID that follows from the MAC, whether or not the interface has that address; then the IPv4 and
 * the IPv6 addresses. */
static void list_gids(struct device *device)
{
    union ibv_gid first = {.raw = {0xfe, 0x80}};
    struct ifaddrs *all;
    memcpy(first.raw + 8, device->guid, 8);
    memset(device->gids, 0, sizeof device->gids);
    device->gid_count = 0;
    add_gid(device, &first);
    if (getifaddrs(&all))
        return;
    add_addresses(device, all, AF_INET);
    add_addresses(device, all, AF_INET6);
    freeifaddrs(all);
}

bool config_network(struct device *device, const char *interface)
{
    if (strlen(interface) >= sizeof device->interface || !read_hardware(device, interface)) {
        complaint_add("device %s stays off the network: there is no interface \"%s\"", device->name, interface);
        return false;
    }
    const uint8_t *mac = device->mac;
    snprintf(device->interface, sizeof device->interface, "%s", interface);
    memcpy(device->guid, (uint8_t[8]){mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}, 8);
    list_gids(device);
    return true;
}
