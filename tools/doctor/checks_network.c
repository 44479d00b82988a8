/* The checks of `softverbs doctor --net INTERFACE`. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "base/user.h"
#include "checks.h"
#include "config/config_net.h"
#include "ipc/ask/claim.h"
#include "ipc/node.h"
#include "share.h"

enum { PORT = 4791, WANTED = 8 << 20 /* bytes of receive buffer, as src/link/udp/udp.c asks for */ };

struct network {
    const char *name;
    check_tell *tell;
    void *context;
};

static __attribute__((format(printf, 4, 5))) void say(const struct network *network, enum verdict verdict,
                                                      const char *name, const char *format, ...)
{
    char sentence[1024];
    va_list rest;
    va_start(rest, format);
    vsnprintf(sentence, sizeof sentence, format, rest);
    va_end(rest);
    network->tell(network->context, verdict, name, sentence);
}

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

static void check_state(const struct network *network)
{
    struct ifreq answer;
    if (!ask_interface(network->name, SIOCGIFFLAGS, &answer))
        say(network, VERDICT_PROBLEM, "state", "%s can't be looked at: %s.", network->name, strerror(errno));
    else if (!(answer.ifr_flags & IFF_UP))
        say(network, VERDICT_PROBLEM, "state", "%s is down: ip link set %s up.", network->name, network->name);
    else if (!(answer.ifr_flags & IFF_RUNNING))
        say(network, VERDICT_WARNING, "state", "%s is up, but has no carrier: the cable, or the other end.",
            network->name);
    else
        say(network, VERDICT_OK, "state", "%s is up.", network->name);
}

static void check_mtu(const struct network *network)
{
    enum { LARGEST = 4096 };
    struct ifreq answer;
    if (!ask_interface(network->name, SIOCGIFMTU, &answer))
        return;
    unsigned path = config_fitting_mtu(answer.ifr_mtu);
    if (path == LARGEST)
        say(network, VERDICT_OK, "MTU", "It is %d, so the path MTU of RoCE is %u.", answer.ifr_mtu, path);
    else
        say(network, VERDICT_OK, "MTU",
            "It is %d, so the path MTU of RoCE is %u. With 4200 and more it is %d, with fewer packets for the same "
            "data: "
            "ip link set %s mtu 9000, where the network carries it.",
            answer.ifr_mtu, path, LARGEST, network->name);
}

static void check_addresses(const struct network *network)
{
    struct ifaddrs *all, *each;
    unsigned ipv4 = 0, ipv6 = 0;
    if (getifaddrs(&all))
        return;
    for (each = all; each; each = each->ifa_next)
        if (each->ifa_addr && !strcmp(each->ifa_name, network->name)) {
            ipv4 += each->ifa_addr->sa_family == AF_INET;
            ipv6 += each->ifa_addr->sa_family == AF_INET6;
        }
    freeifaddrs(all);
    if (ipv4 + ipv6)
        say(network, VERDICT_OK, "addresses", "%u of IPv4 and %u of IPv6; each becomes a GID.", ipv4, ipv6);
    else
        say(network, VERDICT_PROBLEM, "addresses", "%s has none, so no host can be reached: ip address add.",
            network->name);
}

/* --- UDP port 4791 */

/* The inode of the port's first socket in /proc/net/udp or udp6; -1: no socket has it. A socket of the kernel has 0. */
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

static bool is_ours_to_share(const struct network *network)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    bool others =
        node_directory(directory) && claim_is_others(directory, if_nametoindex(network->name), why, sizeof why);
    if (others)
        say(network, VERDICT_PROBLEM, "port 4791", "%s", why);
    return !others;
}

static void check_port(const struct network *network)
{
    unsigned user = 0;
    long inode = find_holder("/proc/net/udp", &user);
    if (inode < 0)
        inode = find_holder("/proc/net/udp6", &user);
    if (!is_ours_to_share(network))
        return;
    if (inode < 0)
        say(network, VERDICT_OK, "port 4791", "UDP port 4791 is free.");
    else if (!inode)
        say(network, VERDICT_PROBLEM, "port 4791",
            "The kernel has UDP port 4791 itself: a device of its soft RoCE (rxe). rdma link delete frees it.");
    else if (!user_has_own_number(user))
        say(network, VERDICT_PROBLEM, "port 4791",
            "The user with number %u has UDP port 4791. Only processes of one user share it; the last of them gives it "
            "up "
            "within 5 s of its end.",
            user);
    else if (share_try(network->name) == EADDRINUSE)
        say(network, VERDICT_PROBLEM, "port 4791",
            "%s has UDP port 4791 for itself%s: \"ss -uanp 'sport = :%d'\" shows which.",
            user_is_own(user) ? "A program of this user" : "A program, perhaps of a user without a number here,",
            user_is_own(user) ? ", without SO_REUSEPORT" : "", PORT);
    else
        say(network, VERDICT_OK, "port 4791", "A program of this user has UDP port 4791; those of softverbs share it.");
}

/* --- what the kernel drops */

static long read_setting(const char *format, const char *name)
{
    char path[128], text[32];
    snprintf(path, sizeof path, format, name);
    return text_read_at(AT_FDCWD, path, text, sizeof text) ? strtol(text, NULL, 10) : -1;
}

/* The stricter of the two counts; 1 is strict. */
static void check_filter(const struct network *network)
{
    long all = read_setting("/proc/sys/net/ipv4/conf/%s/rp_filter", "all"),
         own = read_setting("/proc/sys/net/ipv4/conf/%s/rp_filter", network->name), counts = all > own ? all : own;
    if (counts == 1)
        say(network, VERDICT_WARNING, "path filter",
            "rp_filter is strict: what comes by another interface than answers would go by is dropped silently. With "
            "several interfaces in one network: sysctl net.ipv4.conf.%s.rp_filter=2.",
            network->name);
    else
        say(network, VERDICT_OK, "path filter", "rp_filter is %s.", counts == 2 ? "loose" : "off");
}

static void check_buffers(const struct network *network)
{
    long most = read_setting("/proc/sys/net/core/%s", "rmem_max");
    if (!geteuid() || most < 0 || most >= WANTED)
        say(network, VERDICT_OK, "buffers", "Sockets get the receive buffers that they ask for.");
    else
        say(network, VERDICT_WARNING, "buffers",
            "Sockets get only %ld KiB of receive buffer, so bursts get lost and are repeated: sysctl "
            "net.core.rmem_max=%d.",
            most / 1024, WANTED);
}

/* Only whether something drops at all: which packets, the rules themselves say best. */
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

static void check_firewall(const struct network *network)
{
#define WITH_PATH "PATH=/usr/sbin:/sbin:/usr/bin:/bin "
    if (geteuid()) {
        say(network, VERDICT_OK, "firewall", "Not looked for: only root may list its rules.");
        return;
    }
    int drops = count_drops(WITH_PATH "nft list ruleset 2>/dev/null");
    int older = count_drops(WITH_PATH "iptables-legacy-save 2>/dev/null");
    if (drops < 0 && older < 0)
        say(network, VERDICT_OK, "firewall",
            "Not looked for: neither nft nor iptables is installed, or they may not be asked here.");
    else if (drops > 0 || older > 0)
        say(network, VERDICT_WARNING, "firewall",
            "It has rules that drop or reject (nft list ruleset, iptables-save). UDP port %d must be let in on %s, "
            "whatever the port that it comes from.",
            PORT, network->name);
    else
        say(network, VERDICT_OK, "firewall", "It has no rule that drops.");
}

void check_network(const char *interface, check_tell *tell, void *context)
{
    struct network network = {interface, tell, context};
    if (!if_nametoindex(interface)) {
        say(&network, VERDICT_PROBLEM, "interface", "There is no network interface \"%s\".", interface);
        return;
    }
    check_state(&network);
    check_mtu(&network);
    check_addresses(&network);
    check_port(&network);
    check_firewall(&network);
    check_filter(&network);
    check_buffers(&network);
}
