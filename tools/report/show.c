/* softverbs show: each live process on this host is asked for its report, which src/report/report.c writes. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "command.h"
#include "meeting.h"
#include "objects.h"
#include "reports.h"

static int show_directory(const char *directory, const char *what, bool as_json)
{
    char why[512];
    json_t *reports = reports_collect(directory, why, sizeof why);
    if (!reports)
        complain("%s", why);
    else if (as_json)
        objects_emit(reports, what);
    else if (!json_array_size(reports))
        puts(MEETING_NONE);
    else
        objects_print(reports, what);
    json_decref(reports);
    return reports ? EXIT_OK : EXIT_NEGATIVE;
}

static int no_list(const struct command *command, const char *name)
{
    const char *meant = objects_meant(name);
    return command_misused(command, "There is no list \"%s\".%s%s%s It shows %s.", name, meant ? " Did you mean \"" : "",
                           meant ? meant : "", meant ? "\"?" : "", objects_known());
}

static int show(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {MEETING_OPTIONS};
    struct meeting meeting = {0};
    while (meeting_option(command, argc, argv, options, &meeting) != -1)
        ;
    const char *what = optind < argc ? argv[optind++] : NULL;
    if (what && (optind < argc || !objects_exist(what)))
        return no_list(command, optind < argc ? argv[optind] : what);
    int status = meeting_find(command, &meeting);
    return status ? status : show_directory(meeting.directory, what, meeting.as_json);
}

const struct command show_command = {
    .name = "show",
    .arguments = "[--json] [--dir DIR] [LIST]",
    .summary = "Show the objects of the live processes on this host",
    .help = "  --json            print a JSON list with one object for each process, of all\n"
            "                    lists or of LIST; docs/reference/json.md has the form\n" MEETING_HELP_DIR "\n"
            "LIST is processes, qps (queue pairs and their peers), cqs, srqs, tags (buffers\n"
            "for tag matching), mrs, pds or connections (the listeners, requests and\n"
            "connections of librdmacm). Without LIST it shows processes and queue pairs.\n"
            "\n"
            "A process answers from its own memory while it works; a stopped process does not\n"
            "answer. Only processes of the same user are shown.\n",
    .run = show,
};
