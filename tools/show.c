/* softverbs show: each live process on this host is asked for its report, which src/verbs/report.c writes. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"
#include "fabric/node.h"
#include "objects.h"

enum { ANSWER_MILLISECONDS = 1000 };

/* The processes that node_list told of. */
struct found {
    json_t *reports;
    const char *directory;
};

/* What the process in this slot answers, or NULL. */
static json_t *ask(const char *directory, unsigned slot)
{
    json_t *report = NULL;
    int fd = memfd_create("report", MFD_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (!node_ask(directory, slot, "", fd, ANSWER_MILLISECONDS) && !lseek(fd, 0, SEEK_SET))
        report = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
    close(fd);
    if (json_is_object(report))
        return report;
    json_decref(report);
    return NULL;
}

static void add_process(const struct node_entry *entry, void *context)
{
    struct found *found = context;
    if (!entry->alive)
        return;
    json_t *report = ask(found->directory, entry->slot);
    bool answers = report;
    if (!report)
        report = json_object();
    json_object_set_new(report, "pid", json_integer(entry->pid));
    json_object_set_new(report, "program", json_string(entry->program));
    json_object_set_new(report, "answers", json_boolean(answers));
    json_array_append_new(found->reports, report);
}

static int show_directory(const char *directory, const char *what, bool as_json)
{
    char why[512];
    struct found found = {json_array(), directory};
    int error = node_list(directory, add_process, &found, why, sizeof why);
    if (error)
        complain("%s", why);
    else if (as_json)
        json_dumpf(found.reports, stdout, JSON_INDENT(2)), puts("");
    else if (!json_array_size(found.reports))
        puts("No process has a softverbs device open.");
    else
        objects_print(found.reports, what);
    json_decref(found.reports);
    return error ? EXIT_NEGATIVE : EXIT_OK;
}

static int show(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"dir", required_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'}, {0}};
    char directory[NODE_DIRECTORY_MAX + 1];
    bool as_json = false;
    int option;
    while ((option = command_option(command, argc, argv, options)) != -1)
        if (option == 'j')
            as_json = true;
        else if (setenv("SOFTVERBS_DIR", optarg, 1))
            return EXIT_NEGATIVE;
    const char *what = optind < argc ? argv[optind++] : NULL;
    if (what && (optind < argc || !objects_exist(what)))
        return command_misused(command, "It shows %s.", objects_known());
    if (!node_directory(directory))
        return command_misused(command, "The directory's name is too long: $SOFTVERBS_DIR may have %d bytes.",
                               NODE_DIRECTORY_MAX);
    return show_directory(directory, what, as_json);
}

const struct command show_command = {
    .name = "show",
    .arguments = "[--json] [--dir DIR] [processes|qps|cqs|srqs|tags|mrs|pds]",
    .summary = "Show the objects of the live processes on this host: queue pairs and their peers, queues, memory",
    .help = "  --json            everything, as one JSON array with an object for each process\n"
            "  --dir DIR         of the processes that meet in this directory  (SOFTVERBS_DIR=DIR)\n"
            "\n"
            "Without an argument it shows processes and queue pairs. A process answers from its own memory while it\n"
            "works; one that is stopped does not answer. Only processes of the same user can be seen.\n",
    .run = show,
};
