/* softverbs on: enters a host of the lab and becomes the program there. MPI and its kin call it in place of ssh. */
#include "lab/on.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "command.h"
#include "config/settings.h"
#include "lab/network/reach.h"
#include "lab/network/virtual_host.h"
#include "lab/plan.h"
#include "prepare.h"

static int complain_of_program(const char *name)
{
    int error = errno;
    if (error == ENOENT)
        complain("There is no program \"%s\"%s.", name, strchr(name, '/') ? "" : " in $PATH");
    else
        complain("\"%s\" can't be executed: %s.", name, strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* Puts the directory of the lab's ssh first in $PATH, once. */
static int put_launchers_first(void)
{
    static const char first[] = LAB_STATE "/bin:";
    const char *old = getenv("PATH");
    char path[PATH_MAX];
    if (!old || strstr(old, first) || strlen(old) + sizeof first > sizeof path)
        return 0;
    strcpy(path, first);
    strcat(path, old);
    return setenv("PATH", path, 1);
}

/* Lets pdsh use the lab's ssh, and Open MPI run as root if this process does. */
static void prepare_launchers(void)
{
    setenv("PDSH_RCMD_TYPE", "ssh", 0);
    if (geteuid())
        return;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

/* Replaces the settings that are wrong on another host: the network is the host's, and so is the directory in its
 * memory. */
static int prepare(const struct command *command)
{
    prepare_launchers();
    unsetenv(setting_lines[SETTING_DIR].variable);
    unsetenv("XDG_RUNTIME_DIR");
    if (setenv(setting_lines[SETTING_NET].variable, LAB_INTERFACE, 1) || put_launchers_first())
        return EXIT_SELF;
    return prepare_environment(command, true);
}

int on_become(const char *host, pid_t holder, char **program)
{
    char here[PATH_MAX];
    const char *directory = getcwd(here, sizeof here);
    if (!virtual_host_enter(holder))
        return complain_and(EXIT_SELF, "on: The host \"%s\" can't be entered: %s.", host, strerror(errno));
    if (!directory || chdir(directory))
        (void)!chdir("/");
    int status = prepare(&on_command);
    if (status)
        return status;
    execvp(program[0], program);
    return complain_of_program(program[0]);
}

/* --- as ssh */

/* Options of ssh that have a value. */
static const char valued[] = "BbcDEeFIiJLlmOopQRSWw";

/* The first word that is not an option: the host, with or without "user@". */
static char **skip_ssh_options(char **words)
{
    for (; *words && **words == '-'; words++)
        if (strchr(valued, (*words)[1]) && !(*words)[2] && words[1])
            words++;
    return words;
}

/* Runs the words after the host in a shell as one line, as ssh does. */
static int run_line(const char *host, pid_t holder, char **words)
{
    static char line[1 << 17];
    size_t used = 0;
    for (; *words; words++) {
        size_t length = strlen(*words);
        if (used + length + 2 > sizeof line)
            return complain_and(EXIT_SELF, "on: The command for host \"%s\" is longer than %zu bytes.", host,
                                sizeof line);
        if (used)
            line[used++] = ' ';
        memcpy(line + used, *words, length + 1);
        used += length;
    }
    char shell[] = "/bin/sh", option[] = "-c";
    return on_become(host, holder, (char *[]){shell, used ? option : NULL, line, NULL});
}

static int no_host(const struct command *command, const char *host)
{
    if (access(LAB_STATE, F_OK))
        return command_misused(command,
                               "This is not a lab: \"softverbs lab --hosts 2 --shell\" makes one, and --lab names one");
    return command_misused(command, "The lab has no host \"%s\"", host);
}

static int as_ssh(const struct command *command, char **words)
{
    char **host = skip_ssh_options(words);
    if (!*host)
        return command_misused(command, "It needs the name of a host.");
    const char *at = strrchr(*host, '@'), *name = at ? at + 1 : *host;
    pid_t holder = virtual_host_find(name);
    return holder ? run_line(name, holder, host + 1) : no_host(command, name);
}

static int on(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("as-ssh", 's'), VALUED("lab", 'l'), OPTIONS_END};
    const char *name = NULL;
    for (int option; (option = command_option(command, argc, argv, options)) != -1; name = optarg)
        if (option == 's')
            return as_ssh(command, argv + optind);
    if (optind == argc)
        return command_misused(command, "It needs the name of a host.");
    const char *host = argv[optind++];
    if (optind < argc && !strcmp(argv[optind], "--"))
        optind++;
    if (optind == argc)
        return command_misused(command, "It needs a program to run on \"%s\".", host);
    if (name && !reach_enter(name))
        return command_misused(command, "There is no lab of the name \"%s\"", name);
    pid_t holder = virtual_host_find(host);
    return holder ? on_become(host, holder, argv + optind) : no_host(command, host);
}

const struct command on_command = {
    .name = "on",
    .arguments = "[--lab NAME] HOST [--] PROGRAM [ARGUMENTS]...",
    .summary = "Run a program on a host of a lab",
    .help = "  --lab NAME enter the lab of this name, from outside of it\n"
            "  --as-ssh   take options, host and words as ssh does, for programs that start\n"
            "             others on hosts by ssh\n"
            "\n"
            "It works within \"softverbs lab\", or with --lab. The program has the environment\n"
            "of \"softverbs run --net eth0\" on that host. The first \"ssh\" and \"rsh\" in\n"
            "$PATH do the same; mpirun, mpiexec.hydra and pdsh find them by\n"
            "themselves.\n"
            "\n"
            "Exit status: the program's; 127 when it does not exist, 126 when it can't be\n"
            "executed, 125 when softverbs could not do its part, 2 for a bad option.\n",
    .runs_rest = true,
    .run = on,
};
