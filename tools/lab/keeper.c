#include "lab/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "lab/lab_control.h"
#include "lab/network/forwarder.h"
#include "lab/network/rtnetlink.h"
#include "lab/network/virtual_host.h"
#include "lab/network/wiring.h"
#include "lab/on.h"
#include "unopened/begin.h"
#include "unopened/hosts.h"
#include "unopened/openings.h"

#define BRIDGE "switch"

static struct keeper {
    const struct lab_plan *plan;
    struct network *network;
    pid_t holders[LAB_HOSTS_MOST];
    struct wiring wiring;
    struct forwarder *forwarder; /* NULL: a bridge joins the hosts */
    uint32_t mtu;                /* of the links */
    bool down[LAB_HOSTS_MOST];
    pid_t command;
} keeper;

/* --- the network */

static int make_bridge(int netlink)
{
    int error = netlink < 0 ? errno : rtnetlink_add_bridge(netlink, BRIDGE);
    if (!error)
        error = rtnetlink_no_own_address(netlink, BRIDGE);
    if (!error)
        error = rtnetlink_set_up(netlink, BRIDGE, true);
    if (error == EOPNOTSUPP)
        complain("lab: The kernel has no bridges: \"modprobe bridge\" as root may load them.");
    else if (error)
        complain("lab: The hosts can't be joined by a bridge: %s.", strerror(error));
    return error;
}

/* Starts the hosts, whose interfaces meet in a bridge. */
static bool make_network(void)
{
    int netlink = rtnetlink_open();
    int error = make_bridge(netlink);
    for (unsigned i = 0; !error && i < keeper.plan->count; i++) {
        const char *name = keeper.plan->hosts[i];
        keeper.holders[i] = virtual_host_start(keeper.plan, i, netlink);
        error = keeper.holders[i] < 0 ? EIO : rtnetlink_set_bridge(netlink, name, BRIDGE);
        if (error && keeper.holders[i] > 0)
            complain("lab: The host \"%s\" can't be joined to the bridge: %s.", name, strerror(error));
    }
    keeper.wiring = (struct wiring){keeper.plan, keeper.holders, netlink};
    return !error;
}

static bool set_ports(char *why, size_t size)
{
    for (unsigned i = 0; i < keeper.plan->count; i++) {
        if (keeper.down[i] == keeper.network->port_down[i])
            continue;
        if (!wiring_set_up(&keeper.wiring, i, keeper.down[i], why, size))
            return false;
        keeper.down[i] = keeper.network->port_down[i];
    }
    return true;
}

/* Brings the interfaces and the forwarder into the state that the network has now. */
static bool follow_network(char *why, size_t size)
{
    struct network *network = keeper.network;
    if (network->mtu != keeper.mtu && !wiring_set_mtu(&keeper.wiring, network->mtu, why, size))
        return false;
    keeper.mtu = network->mtu;
    if (!network->is_plain && !keeper.forwarder) {
        if (!wiring_make_plain(&keeper.wiring, why, size))
            return false;
        keeper.forwarder = forwarder_start(network, keeper.wiring.netlink, why, size);
        if (!keeper.forwarder)
            return false;
    }
    return set_ports(why, size);
}

/* Answers a request such as "h1-h2 delay=1ms"; "" asks for the list of links. */
static bool answer(void *context, const char *request, char *reply, size_t size)
{
    char target[64];
    int length = 0;
    if (!*request) {
        network_print(keeper.network, reply, size);
        return true;
    }
    sscanf(request, "%63s %n", target, &length);
    return network_change(keeper.network, target, request + length, reply, size) && follow_network(reply, size);
}

/* --- the command */

/* Starts the command on the first host, in the lab's own process group, which may have the terminal's foreground. */
static pid_t start_command(char **command)
{
    pid_t child = fork();
    if (child)
        return child;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    _exit(on_become(keeper.plan->hosts[0], keeper.holders[0], command));
}

/* Reaps all children that have ended. Returns the exit status of the command; -1: it lives. */
static int collect(pid_t command)
{
    int how, status = -1;
    for (pid_t ended; (ended = waitpid(-1, &how, WNOHANG)) > 0;)
        if (ended == command)
            status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return status;
}

enum { SIGNALS, ALIVE, CONTROL, PORTS };

/* Waits for work; the first PORTS descriptors have names, the forwarder's follow. */
static bool wait_for_work(struct pollfd *ready)
{
    unsigned count = PORTS;
    struct timespec left, *most = NULL;
    if (keeper.forwarder) {
        int64_t next = forwarder_next(keeper.forwarder);
        count += forwarder_wants(keeper.forwarder, ready + PORTS);
        left = (struct timespec){next / 1000000000, next % 1000000000};
        most = next < 0 ? NULL : &left;
    }
    return ppoll(ready, count, most, NULL) >= 0 || errno == EINTR;
}

/* The exit status of the command; -1: it lives. A signal to this process is passed on to the command. */
static int heed_signal(int signals)
{
    struct signalfd_siginfo signal;
    if (read(signals, &signal, sizeof signal) != sizeof signal)
        return -1;
    if (signal.ssi_signo != SIGCHLD)
        kill(keeper.command, (int)signal.ssi_signo);
    return collect(keeper.command);
}

/* Works until the command ends, or the process that started the lab does. Returns the exit status. */
static int look_after(int signals, int alive, int control)
{
    struct pollfd ready[PORTS + LAB_HOSTS_MOST] = {[SIGNALS] = {.fd = signals, .events = POLLIN},
                                                   [ALIVE] = {.fd = alive, .events = POLLIN},
                                                   [CONTROL] = {.fd = control, .events = POLLIN}};
    while (wait_for_work(ready)) {
        if (ready[ALIVE].revents)
            return 128 + SIGKILL;
        if (ready[CONTROL].revents)
            lab_control_serve(control, answer, NULL);
        if (keeper.forwarder)
            forwarder_work(keeper.forwarder);
        int status = ready[SIGNALS].revents ? heed_signal(signals) : -1;
        if (status >= 0)
            return status;
    }
    return EXIT_SELF;
}

static int catch_signals(void)
{
    static const int caught[] = {SIGCHLD, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        sigaddset(&set, caught[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Says if no process opened a device; of a command that could not be started another sentence was printed. */
static void tell_of_openings(char *const *command, int status)
{
    bool started = status < EXIT_SELF || status > EXIT_NOT_FOUND;
    if (started && unopened_is_wanted(command) && unopened_on_hosts(keeper.holders, keeper.plan->count))
        complain("lab: No process opened a device in /dev/shm of its host. %s", openings_cure(*command));
}

_Noreturn void keeper_run(struct network *network, char **command, int alive)
{
    char why[512];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "softverbs-lab");
    keeper.network = network;
    keeper.plan = network->plan;
    if (!virtual_host_prepare(keeper.plan) || !make_network())
        _exit(EXIT_SELF);
    if (!follow_network(why, sizeof why)) {
        complain("lab: %s", why);
        _exit(EXIT_SELF);
    }
    int signals = catch_signals(), control = lab_control_listen();
    keeper.command = signals < 0 || control < 0 ? -1 : start_command(command);
    if (keeper.command < 0) {
        complain("lab: The command can't be started: %s.", strerror(errno));
        _exit(EXIT_SELF);
    }
    int status = look_after(signals, alive, control);
    tell_of_openings(command, status);
    _exit(status);
}
