/* The checks of `softverbs doctor --net INTERFACE`. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text/text.h"
#include "base/user.h"
#include "checks.h"
#include "config/config_net.h"
#include "ipc/ask/claim.h"
#include "ipc/node.h"
#include "share.h"

enum { PORT = 4791, WANTED = 8 << 20 /* bytes of receive buffer, as src/link/udp/udp_socket.c asks for */ };

/* --- the interface */

static bool ask_interface(const char *name, unsigned long request, struct ifreq *answer)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memset(answer, 0, sizeof *answer);
    snprintf(answer->ifr_name, sizeof answer->ifr_name, "%s", name);
    bool fine = fd >= 0 && !ioctl(fd, request, answer);
    if (fd >= 0)
        close(fd);
    return fine;
}

static void check_state(const char *interface)
{
    struct ifreq answer;
    if (!ask_interface(interface, SIOCGIFFLAGS, &answer))
        check_say(VERDICT_PROBLEM, "state", "%s can't be looked at: %s.", interface, strerror(errno));
    else if (!(answer.ifr_flags & IFF_UP))
        check_say(VERDICT_PROBLEM, "state", "%s is down: ip link set %s up.", interface, interface);
    else if (!(answer.ifr_flags & IFF_RUNNING))
        check_say(VERDICT_WARNING, "state", "%s is up, but has no carrier: the cable, or the other end.", interface);
    else
        check_say(VERDICT_OK, "state", "%s is up.", interface);
}

static void check_mtu(const char *interface)
{
    enum { LARGEST = 4096 };
    struct ifreq answer;
    if (!ask_interface(interface, SIOCGIFMTU, &answer))
        return;
    unsigned path = config_fitting_mtu(answer.ifr_mtu);
    if (path == LARGEST)
        check_say(VERDICT_OK, "MTU", "It is %d, so the path MTU of RoCE is %u.", answer.ifr_mtu, path);
    else
        check_say(
            VERDICT_OK, "MTU",
            "It is %d, so the path MTU of RoCE is %u. With 4200 and more it is %d, with fewer packets for the same "
            "data: "
            "ip link set %s mtu 9000, where the network carries it.",
            answer.ifr_mtu, path, LARGEST, interface);
}

static void check_addresses(const char *interface)
{
    struct ifaddrs *all, *each;
    unsigned ipv4 = 0, ipv6 = 0;
    if (getifaddrs(&all))
        return;
    for (each = all; each; each = each->ifa_next)
        if (each->ifa_addr && !strcmp(each->ifa_name, interface)) {
            ipv4 += each->ifa_addr->sa_family == AF_INET;
            ipv6 += each->ifa_addr->sa_family == AF_INET6;
        }
    freeifaddrs(all);
    if (ipv4 + ipv6)
        check_say(VERDICT_OK, "addresses", "%u of IPv4 and %u of IPv6; each becomes a GID.", ipv4, ipv6);
    else
        check_say(VERDICT_PROBLEM, "addresses", "%s has no address, so no host can be reached: ip address add.",
                  interface);
}

/* --- UDP port 4791 */

/* The inode of the port's first socket in /proc/net/udp or udp6, 0 for a socket of the kernel; -1: no socket has it. */
static long find_holder(const char *file, unsigned *user)
{
    char line[512];
    long found = -1;
    FILE *list = fopen(file, "re");
    while (list && found < 0 && fgets(line, sizeof line, list)) {
        unsigned port, uid;
        unsigned long inode;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*x:%*x %*x:%*x %*x %u %*d %lu", &port, &uid,
                   &inode) == 3 &&
            port == PORT) {
            found = (long)inode;
            *user = uid;
        }
    }
    if (list)
        fclose(list);
    return found;
}

static bool is_ours_to_share(const char *interface)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    bool others = node_directory(directory) && claim_is_others(directory, if_nametoindex(interface), why, sizeof why);
    if (others)
        check_say(VERDICT_PROBLEM, "port 4791", "%s", why);
    return !others;
}

static void check_port(const char *interface)
{
    unsigned user = 0;
    long inode = find_holder("/proc/net/udp", &user);
    if (inode < 0)
        inode = find_holder("/proc/net/udp6", &user);
    if (!is_ours_to_share(interface))
        return;
    if (inode < 0)
        check_say(VERDICT_OK, "port 4791", "UDP port 4791 is free.");
    else if (!inode)
        check_say(VERDICT_PROBLEM, "port 4791",
                  "The kernel has UDP port 4791 itself: a device of its soft RoCE (rxe). rdma link delete frees it.");
    else if (!user_has_own_number(user))
        check_say(
            VERDICT_PROBLEM, "port 4791",
            "The user with number %u has UDP port 4791. Only processes of one user share it; the last of them gives it "
            "up "
            "within 5 s of its end.",
            user);
    else if (share_try(interface) == EADDRINUSE)
        check_say(VERDICT_PROBLEM, "port 4791",
                  "%s has UDP port 4791 for itself%s: \"ss -uanp 'sport = :%d'\" shows which.",
                  user_is_own(user) ? "A program of this user" : "A program, perhaps of a user without a number here,",
                  user_is_own(user) ? ", without SO_REUSEPORT" : "", PORT);
    else
        check_say(VERDICT_OK, "port 4791",
                  "A program of this user has UDP port 4791; processes of softverbs share it.");
}

/* --- what the kernel drops */

static long read_setting(const char *format, const char *name)
{
    char path[128], text[32];
    snprintf(path, sizeof path, format, name);
    return text_read_at(AT_FDCWD, path, text, sizeof text) ? strtol(text, NULL, 10) : -1;
}

/* The kernel takes the larger of the two values: 0 is off, 1 strict, 2 loose. */
static void check_filter(const char *interface)
{
    long all = read_setting("/proc/sys/net/ipv4/conf/%s/rp_filter", "all"),
         own = read_setting("/proc/sys/net/ipv4/conf/%s/rp_filter", interface), counts = all > own ? all : own;
    if (counts == 1)
        check_say(VERDICT_WARNING, "path filter",
                  "rp_filter is strict: the kernel silently drops what comes by another interface than answers would "
                  "take. With "
                  "several interfaces in one network: sysctl net.ipv4.conf.%s.rp_filter=2.",
                  interface);
    else
        check_say(VERDICT_OK, "path filter", "rp_filter is %s.", counts == 2 ? "loose" : "off");
}

static void check_buffers(const char *interface)
{
    long most = read_setting("/proc/sys/net/core/%s", "rmem_max");
    if (!geteuid() || most < 0 || most >= WANTED)
        check_say(VERDICT_OK, "buffers", "Sockets get the receive buffers that they ask for.");
    else
        check_say(VERDICT_WARNING, "buffers",
                  "Sockets get only %ld KiB of receive buffer, so bursts get lost and are repeated: sysctl "
                  "net.core.rmem_max=%d.",
                  most / 1024, WANTED);
}

/* Counts the rules that drop or reject any packets, which the rules themselves name best; -1: the command failed. */
static int count_drops(const char *command)
{
    char line[1024];
    int drops = 0;
    FILE *rules = popen(command, "re");
    while (rules && fgets(line, sizeof line, rules))
        drops += strstr(line, "policy drop") || strstr(line, " drop") || strstr(line, " reject") ||
                 strstr(line, "INPUT DROP") || strstr(line, "-j DROP") || strstr(line, "-j REJECT");
    return !rules || pclose(rules) ? -1 : drops;
}

static void check_firewall(const char *interface)
{
#define WITH_PATH "PATH=/usr/sbin:/sbin:/usr/bin:/bin "
    if (geteuid()) {
        check_say(VERDICT_OK, "firewall", "Not looked for: only root may list its rules.");
        return;
    }
    int drops = count_drops(WITH_PATH "nft list ruleset 2>/dev/null");
    int older = count_drops(WITH_PATH "iptables-legacy-save 2>/dev/null");
    if (drops < 0 && older < 0)
        check_say(VERDICT_OK, "firewall",
                  "Not looked for: neither nft nor iptables is installed, or they may not be asked here.");
    else if (drops > 0 || older > 0)
        check_say(
            VERDICT_WARNING, "firewall",
            "It has rules that drop or reject (nft list ruleset, iptables-save). UDP port %d must be let in on %s, "
            "whatever the port that it comes from.",
            PORT, interface);
    else
        check_say(VERDICT_OK, "firewall", "It has no rule that drops.");
}

void check_network(const char *interface)
{
    if (!if_nametoindex(interface)) {
        check_say(VERDICT_PROBLEM, "interface", "There is no network interface \"%s\".", interface);
        return;
    }
    check_state(interface);
    check_mtu(interface);
    check_addresses(interface);
    check_port(interface);
    check_firewall(interface);
    check_filter(interface);
    check_buffers(interface);
}
