#include "lab/network/wiring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/network/rtnetlink.h"

static bool fail(const char *host, int error, char *why, size_t size)
{
    if (error)
        snprintf(why, size, "The link of \"%s\" can't be changed: %s.", host, strerror(error));
    return !error;
}

/* --- in the network of a host */

static int set_mtu_here(uint32_t mtu)
{
    int netlink = rtnetlink_open();
    int error = netlink < 0 ? errno : rtnetlink_set_mtu(netlink, LAB_INTERFACE, mtu);
    close(netlink);
    return error;
}

/* Switches off what the kernel leaves to adapters; where it lacks one of these, it leaves nothing. */
static int make_plain_here(uint32_t nothing)
{
    static const uint32_t offloads[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM, ETHTOOL_SSG};
    int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
        struct ethtool_value value = {.cmd = offloads[i]};
        struct ifreq request = {.ifr_data = (void *)&value};
        strcpy(request.ifr_name, LAB_INTERFACE);
        ioctl(file, SIOCETHTOOL, &request);
    }
    close(file);
    return 0;
}

int wiring_in_network(pid_t holder, int (*change)(uint32_t), uint32_t value)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)holder);
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), other = open(path, O_RDONLY | O_CLOEXEC);
    int error = own < 0 || other < 0 || setns(other, CLONE_NEWNET) ? errno : 0;
    if (!error) {
        error = change(value);
        if (setns(own, CLONE_NEWNET))
            error = errno;
    }
    close(own);
    close(other);
    return error;
}

/* --- of all hosts */

bool wiring_set_mtu(const struct wiring *wiring, uint32_t mtu, char *why, size_t size)
{
    for (unsigned i = 0; i < wiring->plan->count; i++) {
        const char *host = wiring->plan->hosts[i];
        int error = rtnetlink_set_mtu(wiring->netlink, host, mtu);
        if (!error)
            error = wiring_in_network(wiring->holders[i], set_mtu_here, mtu);
        if (!fail(host, error, why, size))
            return false;
    }
    return true;
}

bool wiring_set_up(const struct wiring *wiring, unsigned host, bool up, char *why, size_t size)
{
    const char *name = wiring->plan->hosts[host];
    return fail(name, rtnetlink_set_up(wiring->netlink, name, up), why, size);
}

bool wiring_make_plain(const struct wiring *wiring, char *why, size_t size)
{
    for (unsigned i = 0; i < wiring->plan->count; i++)
        if (!fail(wiring->plan->hosts[i], wiring_in_network(wiring->holders[i], make_plain_here, 0), why, size))
            return false;
    return true;
}
