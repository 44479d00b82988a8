#include "lab/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "lab/on.h"
#include "lab/rtnetlink.h"
#include "lab/virtual_host.h"

#define BRIDGE "switch"

static pid_t holders[LAB_HOSTS_MOST];

/* The hosts' interfaces meet in a bridge. */
static bool make_network(const struct lab_plan *plan)
{
    int netlink = rtnetlink_open();
    int error = netlink < 0 ? errno : rtnetlink_add_bridge(netlink, BRIDGE);
    if (!error)
        error = rtnetlink_no_own_address(netlink, BRIDGE);
    if (!error)
        error = rtnetlink_set_up(netlink, BRIDGE, true);
    if (error == EOPNOTSUPP)
        complain("lab: The kernel has no bridges: \"modprobe bridge\" as root may load them.");
    else if (error)
        complain("lab: The hosts can't be joined by a bridge: %s.", strerror(error));
    for (unsigned i = 0; !error && i < plan->count; i++) {
        holders[i] = virtual_host_start(plan, i, netlink);
        error = holders[i] < 0 ? EIO : rtnetlink_set_bridge(netlink, plan->hosts[i], BRIDGE);
        if (error && holders[i] > 0)
            complain("lab: The host \"%s\" can't be joined to the bridge: %s.", plan->hosts[i], strerror(error));
    }
    close(netlink);
    return !error;
}

/* In a process group of the terminal's foreground, as the lab was. */
static pid_t start_command(const struct lab_plan *plan, char **command)
{
    pid_t child = fork();
    if (child)
        return child;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    _exit(on_become(plan->hosts[0], holders[0], command));
}

static int status_of(int how)
{
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* All that ended; -1: the command lives. */
static int collect(pid_t command)
{
    int how, status = -1;
    for (pid_t ended; (ended = waitpid(-1, &how, WNOHANG)) > 0;)
        if (ended == command)
            status = status_of(how);
    return status;
}

/* Until the command ends, or the process that started the lab. What it was told to do by a signal the command is. */
static int look_after(pid_t command, int signals, int alive)
{
    struct pollfd ready[] = {{.fd = signals, .events = POLLIN}, {.fd = alive, .events = POLLIN}};
    for (;;) {
        struct signalfd_siginfo signal;
        if (poll(ready, sizeof ready / sizeof *ready, -1) < 0 && errno != EINTR)
            return EXIT_SELF;
        if (ready[1].revents)
            return 128 + SIGKILL;
        if (read(signals, &signal, sizeof signal) != sizeof signal)
            continue;
        if (signal.ssi_signo != SIGCHLD)
            kill(command, (int)signal.ssi_signo);
        int status = collect(command);
        if (status >= 0)
            return status;
    }
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

_Noreturn void keeper_run(const struct lab_plan *plan, char **command, int alive)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "softverbs-lab");
    if (!virtual_host_prepare(plan) || !make_network(plan))
        _exit(EXIT_SELF);
    int signals = catch_signals();
    pid_t child = signals < 0 ? -1 : start_command(plan, command);
    if (child < 0) {
        complain("lab: The command can't be started: %s.", strerror(errno));
        _exit(EXIT_SELF);
    }
    _exit(look_after(child, signals, alive));
}
