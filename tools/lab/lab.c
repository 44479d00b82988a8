/* softverbs lab: a cluster on one machine, for as long as a command runs. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "command.h"
#include "lab/follow_child.h"
#include "lab/keeper.h"
#include "lab/lab_control.h"
#include "lab/lab_options.h"
#include "lab/network/network.h"
#include "lab/network/reach.h"
#include "lab/own_root.h"
#include "lab/plan.h"
#include "lab/spaces.h"
#include "place.h"
#include "prepare.h"

/* --- the process that stays outside */

static int start(struct network *network, char **command)
{
    int alive[2];
    char self[PLACE_PATH_MAX];
    (void)place_self(self);
    if (!spaces_enter("lab", true) || pipe2(alive, O_CLOEXEC))
        return EXIT_SELF;
    pid_t keeper = fork();
    if (!keeper) {
        close(alive[1]);
        keeper_run(network, command, alive[0]);
    }
    if (keeper < 0)
        return complain_and(EXIT_SELF, "lab: No process can be started: %s.", strerror(errno));
    return follow_child(keeper);
}

/* --- the command line */

enum { OPTION_HOSTS = 1, OPTION_NAME, OPTION_SHELL, OPTION_LINK, OPTION_TOPOLOGY };

static const struct option own[] = {VALUED("hosts", OPTION_HOSTS),       VALUED("name", OPTION_NAME),
                                    OPTION("shell", OPTION_SHELL),       VALUED("link", OPTION_LINK),
                                    VALUED("topology", OPTION_TOPOLOGY), {0}};

static int set_name(const struct command *command, struct lab_plan *plan, const char *name)
{
    if (!*name || strlen(name) >= sizeof plan->name)
        return command_misused(command, "--name: A name has 1 to %d letters.", LAB_NAME_SIZE - 1);
    strcpy(plan->name, name);
    return 0;
}

static int take_option(const struct command *command, struct lab_plan *plan, int option, const char *value)
{
    if (option == OPTION_HOSTS)
        return lab_set_hosts(command, plan, value);
    if (option == OPTION_NAME)
        return set_name(command, plan, value);
    if (option == OPTION_LINK)
        return lab_add_link(command, plan, value);
    if (option == OPTION_TOPOLOGY)
        plan->topology = value;
    else if (option == OPTION_SHELL)
        plan->shell = getenv("SHELL") ? getenv("SHELL") : "/bin/sh";
    else
        return prepare_option(command, option, value);
    return 0;
}

/* --- links */

/* softverbs lab [--name NAME] link [TARGET WORDS] */
static int ask_link(const struct command *command, const char *name, int count, char **words)
{
    static char reply[LAB_REPLY_MOST];
    char request[LAB_REQUEST_MOST] = "";
    if (count == 1 || count > 2)
        return command_misused(command, "It needs a link and its new quality: softverbs lab link h1-h2 down");
    if (count && snprintf(request, sizeof request, "%s %s", words[0], words[1]) >= (int)sizeof request)
        return command_misused(command, "The name of the link and its quality are longer than %zu bytes together.",
                               sizeof request - 2);
    if (*name && !reach_enter(name))
        return command_misused(command, "There is no lab of the name \"%s\"", name);
    int done = lab_control_ask(request, reply, sizeof reply);
    if (done < 0)
        return command_misused(command, "This is not a lab: links are changed from a host of one, or with --name");
    if (!done)
        return command_misused(command, "%s", reply);
    fputs(reply, stdout);
    return EXIT_OK;
}

static int lab(const struct command *command, int argc, char **argv)
{
    static struct lab_plan plan;
    static struct network network;
    const struct option *options = prepare_options(own);
    int option, status = 0;
    while (!status && (option = command_option(command, argc, argv, options)) != -1)
        status = take_option(command, &plan, option, optarg);
    if (!status && !plan.count && optind < argc && !strcmp(argv[optind], "link"))
        return ask_link(command, plan.name, argc - optind - 1, argv + optind + 1);
    if (!status && !plan.count)
        status = command_misused(command, "It needs the number of hosts, such as --hosts 4.");
    if (!status && !plan.shell == (optind == argc))
        status = command_misused(command, "It needs a program to run, or --shell.");
    if (!status && *plan.name && !reach_take_name(plan.name))
        status = command_misused(command, "The name \"%s\" is taken: a lab of that name runs.", plan.name);
    if (!status)
        status = lab_plan_network(command, &plan, &network);
    return status ? status : start(&network, plan.shell ? (char *[]){plan.shell, NULL} : argv + optind);
}

const struct command lab_command = {
    .name = "lab",
    .arguments = "--hosts N [OPTIONS] [--] PROGRAM [ARGUMENTS]...",
    .summary = "A cluster on one machine, for as long as a program runs",
    .help = "  --hosts N         make N hosts, h1, h2, ...; or hosts of these names: a,b,c\n"
            "  --name NAME       give the lab a name, unique among this user's labs\n"
            "  --shell           run a shell\n"
            "  --link WORDS      set the quality of all links: rate=10Gbit,delay=5us,\n"
            "                    jitter=1us,loss=0.1%,queue=1M,ecn=64K,mtu=9000,down,\n"
            "                    sockets=2ms (for what is not RoCE); or of\n"
            "                    h1-h2 only: h1-h2:delay=1ms (h1>h2: in one direction; h1:\n"
            "                    of this host)\n"
            "  --topology FILE   read lines: leaf h1 h2, pair h1 h2, core WORDS, link h1-h2\n"
            "                    WORDS\n"
            "\n"
            "Each host has a name, a network interface (eth0, 10.77.0.1 and fd77::1 for the\n"
            "first), a soft0 on it, a /dev/shm, and a /etc/hosts with the others. They\n"
            "share the files and processes of this machine. The program runs on the first\n"
            "host; \"softverbs on h2 -- PROGRAM\" runs another on the second. \"softverbs lab\n"
            "link h1-h2 down\" changes a link while the lab runs, \"softverbs lab link\" lists\n"
            "the links that are not perfect. The lab ends with the program, however that\n"
            "ends. At a terminal a line says then that no process opened a device, if none\n"
            "did.\n"
            "\n"
            "It needs no root where the system allows user namespaces (\"softverbs doctor\").\n"
            "\n"
            "Exit status: the program's, as of \"softverbs run\".\n",
    .runs_rest = true,
    .letters = "q",
    .run = lab,
};
