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
#include "lab/joined.h"
#include "lab/lab_control.h"
#include "lab/network/virtual_host.h"
#include "lab/on.h"
#include "unopened/begin.h"
#include "unopened/hosts.h"
#include "unopened/openings.h"

static struct keeper {
    const struct lab_plan *plan;
    struct joined joined;
    pid_t command;
} keeper;

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
    _exit(on_become(keeper.plan->hosts[0], keeper.joined.holders[0], command));
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

enum { SIGNALS, ALIVE, CONTROL, OWN };

static bool answer(void *joined, const char *request, char *reply, size_t size)
{
    return joined_answer(joined, request, reply, size);
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
    struct pollfd ready[OWN + LAB_HOSTS_MOST] = {[SIGNALS] = {.fd = signals, .events = POLLIN},
                                                 [ALIVE] = {.fd = alive, .events = POLLIN},
                                                 [CONTROL] = {.fd = control, .events = POLLIN}};
    while (joined_work(&keeper.joined, ready, OWN)) {
        if (ready[ALIVE].revents)
            return 128 + SIGKILL;
        if (ready[CONTROL].revents)
            lab_control_serve(control, answer, &keeper.joined);
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
    if (started && unopened_is_wanted(command) && unopened_on_hosts(keeper.joined.holders, keeper.plan->count))
        complain("lab: No process opened a device in /dev/shm of its host. %s", openings_cure(*command));
}

_Noreturn void keeper_run(struct network *network, char **command, int alive)
{
    char why[512];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "softverbs-lab");
    keeper.plan = network->plan;
    if (!virtual_host_prepare(keeper.plan) || !joined_make(&keeper.joined, network))
        _exit(EXIT_SELF);
    if (!joined_follow(&keeper.joined, why, sizeof why)) {
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
