#include "simulate/space/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"
#include "lab/lab_control.h"
#include "lab/network/rtnetlink.h"
#include "lab/network/virtual_host.h"
#include "place.h"
#include "simulate/space/space.h"

/* --- networks in which the kernel does nothing at a moment of its own */

/* TCP decides these things by measured time. */
static void calm_tcp(void)
{
    static const struct {
        const char *path, *value;
    } lines[] = {{"/proc/sys/net/ipv4/tcp_early_retrans", "0"},
                 {"/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"},
                 {"/proc/sys/net/ipv4/tcp_moderate_rcvbuf", "0"},
                 {"/proc/sys/net/ipv4/tcp_autocorking", "0"},
                 {"/proc/sys/net/ipv4/tcp_congestion_control", "reno"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int file = open(lines[i].path, O_WRONLY | O_CLOEXEC);
        if (file >= 0)
            (void)!write(file, lines[i].value, strlen(lines[i].value));
        if (file >= 0)
            close(file);
    }
}

static int add_neighbour(int netlink, unsigned which)
{
    uint8_t mac[RTNETLINK_MAC], four[4], six[16];
    lab_plan_mac(which, mac);
    lab_plan_addresses(which, four, six);
    int error = rtnetlink_add_neighbour(netlink, LAB_INTERFACE, AF_INET, four, mac);
    if (!error)
        error = rtnetlink_add_neighbour(netlink, LAB_INTERFACE, AF_INET6, six, mac);
    if (!error)
        error = rtnetlink_add_patient_route(netlink, LAB_INTERFACE, AF_INET, four);
    return error ? error : rtnetlink_add_patient_route(netlink, LAB_INTERFACE, AF_INET6, six);
}

/* In the network of a host, which has so many neighbours, itself among them. */
static int calm_here(uint32_t count)
{
    int netlink = rtnetlink_open(), error = netlink < 0 ? errno : 0;
    calm_tcp();
    for (unsigned i = 0; i < count && !error; i++)
        error = add_neighbour(netlink, i);
    if (netlink >= 0)
        close(netlink);
    return error;
}

static bool calm(const struct joined *joined)
{
    const struct lab_plan *plan = joined->network->plan;
    for (unsigned i = 0; i < plan->count; i++) {
        int error = wiring_in_network(joined->holders[i], calm_here, plan->count);
        if (error)
            return complain_and(false, "sim: The network of the host \"%s\" can't be prepared: %s.", plan->hosts[i],
                                strerror(error));
    }
    return true;
}

bool hosts_make(struct joined *joined, struct network *network)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!virtual_host_prepare(network->plan))
        return false;
    if (!space_open_loopback())
        return complain_and(false, "sim: The loopback interface can't be opened: %s.", strerror(errno));
    return joined_make(joined, network) && calm(joined);
}

/* --- the process that carries frames */

static void name_hosts(const struct lab_plan *plan, char *to, size_t size)
{
    size_t used = 0;
    for (unsigned i = 0; i < plan->count; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%s", i ? "," : "", plan->hosts[i]);
}

int hosts_become_carrier(const struct lab_plan *plan)
{
    char names[LAB_HOSTS_MOST * LAB_NAME_SIZE];
    char *words[8 + 2 * LAB_LINKS_MOST] = {"softverbs", "sim", "--carry", "--hosts", names};
    unsigned count = 5;
    name_hosts(plan, names, sizeof names);
    for (unsigned i = 0; i < plan->link_count; i++) {
        words[count++] = "--link";
        words[count++] = (char *)plan->links[i];
    }
    if (plan->topology) {
        words[count++] = "--topology";
        words[count++] = (char *)plan->topology;
    }
    return place_execute(words);
}

static bool answer(void *joined, const char *request, char *reply, size_t size)
{
    return joined_answer(joined, request, reply, size);
}

int hosts_carry(struct network *network)
{
    static struct joined joined;
    char why[512];
    struct pollfd ready[1 + LAB_HOSTS_MOST] = {{.fd = lab_control_listen(), .events = POLLIN}};
    prctl(PR_SET_NAME, "switch");
    joined.simulated = true;
    if (!joined_find(&joined, network))
        return EXIT_SELF;
    if (!joined_follow(&joined, why, sizeof why))
        return complain_and(EXIT_SELF, "sim: %s", why);
    while (joined_work(&joined, ready, 1))
        if (ready[0].revents & POLLIN)
            lab_control_serve(ready[0].fd, answer, &joined);
    return complain_and(EXIT_SELF, "sim: The frames between the hosts can't be carried any more: %s.", strerror(errno));
}
