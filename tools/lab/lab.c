/* softverbs lab: a cluster on one machine, for as long as a command runs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "command.h"
#include "lab/keeper.h"
#include "lab/plan.h"
#include "prepare.h"

/* --- rights */

static bool write_line(const char *path, const char *format, unsigned number)
{
    char line[64];
    int file = open(path, O_WRONLY | O_CLOEXEC);
    int length = snprintf(line, sizeof line, format, number, number);
    bool written = file >= 0 && write(file, line, (size_t)length) == length;
    if (file >= 0)
        close(file);
    return written;
}

/* In a user namespace in which we stay who we are, and may do with networks and mounts what root may. */
static bool become_own_root(void)
{
    unsigned user = geteuid(), group = getegid();
    return !unshare(CLONE_NEWUSER) && write_line("/proc/self/setgroups", "deny", 0) &&
           write_line("/proc/self/uid_map", "%u %u 1", user) && write_line("/proc/self/gid_map", "%u %u 1", group);
}

/* The rights go on to programs, which are not root's. */
static bool keep_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data))
        return false;
    for (int i = 0; i < 2; i++)
        data[i].inheritable = data[i].permitted;
    if (syscall(SYS_capset, &header, data))
        return false;
    for (unsigned long right = 0; right <= CAP_LAST_CAP; right++)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0);
    return true;
}

enum { SPACES = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS };

/* False after a sentence. */
static bool leave_system(void)
{
    if (!unshare(SPACES))
        return true;
    int error = errno;
    if (error == EPERM && become_own_root() && !unshare(SPACES) && keep_rights())
        return true;
    complain("lab: This system allows no namespaces of one's own (%s). \"softverbs doctor\" says what to set; root may "
             "make a lab in any case.",
             strerror(error == EPERM ? errno : error));
    return false;
}

/* --- names */

/* A socket with the lab's name, which the kernel takes back when we end; false: another lab of ours has it. */
static bool take_name(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "softverbs-lab/%u/%s", geteuid(), name);
    int socket_of_name = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return !bind(socket_of_name, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) &&
           !listen(socket_of_name, 8);
}

/* --- the process that stays outside */

static pid_t keeper;

static void forward(int number)
{
    kill(keeper, number);
}

/* A terminal's signals reach the command by themselves. */
static int wait_for_keeper(void)
{
    static const int forwarded[] = {SIGTERM, SIGHUP};
    int how;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaction(forwarded[i], &(struct sigaction){.sa_handler = forward}, NULL);
    while (waitpid(keeper, &how, 0) < 0)
        if (errno != EINTR)
            return EXIT_SELF;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static int start(const struct lab_plan *plan, char **command)
{
    int alive[2];
    if (!leave_system() || pipe2(alive, O_CLOEXEC))
        return EXIT_SELF;
    keeper = fork();
    if (!keeper) {
        close(alive[1]);
        keeper_run(plan, command, alive[0]);
    }
    if (keeper < 0) {
        complain("lab: No process can be started: %s.", strerror(errno));
        return EXIT_SELF;
    }
    return wait_for_keeper();
}

/* --- the command line */

enum { OPTION_HOSTS = 1, OPTION_NAME, OPTION_SHELL };

static const struct option own[] = {{"hosts", required_argument, NULL, OPTION_HOSTS},
                                    {"name", required_argument, NULL, OPTION_NAME},
                                    {"shell", no_argument, NULL, OPTION_SHELL},
                                    {0}};

static int set_hosts(const struct command *command, struct lab_plan *plan, const char *text)
{
    char why[256];
    return lab_plan_hosts(plan, text, why, sizeof why) ? 0 : command_misused(command, "--hosts: %s", why);
}

static int set_name(const struct command *command, struct lab_plan *plan, const char *name)
{
    if (!*name || strlen(name) >= sizeof plan->name)
        return command_misused(command, "--name: A name has 1 to %d letters.", LAB_NAME_SIZE - 1);
    strcpy(plan->name, name);
    return 0;
}

static int lab(const struct command *command, int argc, char **argv)
{
    static struct lab_plan plan;
    static char *shell[] = {NULL, NULL};
    const struct option *options = prepare_options(own);
    int option, status = 0;
    while (!status && (option = command_option(command, argc, argv, options)) != -1)
        if (option == OPTION_HOSTS)
            status = set_hosts(command, &plan, optarg);
        else if (option == OPTION_NAME)
            status = set_name(command, &plan, optarg);
        else if (option == OPTION_SHELL)
            shell[0] = getenv("SHELL") ? getenv("SHELL") : "/bin/sh";
        else
            status = prepare_option(command, option, optarg);
    if (!status && !plan.count)
        status = command_misused(command, "How many hosts? --hosts 4");
    if (!status && !shell[0] == (optind == argc))
        status = command_misused(command, "It needs a program to run, or --shell.");
    if (!status && *plan.name && !take_name(plan.name))
        status = command_misused(command, "The name \"%s\" is taken: a lab of that name runs.", plan.name);
    return status ? status : start(&plan, shell[0] ? shell : argv + optind);
}

const struct command lab_command = {
    .name = "lab",
    .arguments = "--hosts N [OPTIONS] [OPTIONS of run] [--] PROGRAM [ARGUMENTS]...",
    .summary = "A cluster on one machine, for as long as a program runs",
    .help = "  --hosts N         so many hosts, h1, h2, ...; or their names: a,b,c\n"
            "  --name NAME       of the lab, which no other of this user has then\n"
            "  --shell           run a shell\n"
            "\n"
            "Each host has a name, a network interface (eth0, 10.77.0.1 and fd77::1 for the\n"
            "first), a soft0 on it, a /dev/shm, and a /etc/hosts with the others. Files and\n"
            "processes are those of this machine. The program runs on the first host;\n"
            "\"softverbs on h2 -- PROGRAM\" runs another on the second. All of it ends with\n"
            "the program, however that ends.\n"
            "\n"
            "It needs no root where the system allows user namespaces (\"softverbs doctor\").\n"
            "\n"
            "Exit status: the program's, as of \"softverbs run\".\n",
    .runs_rest = true,
    .letters = "q",
    .run = lab,
};
