/* softverbs event: raises an asynchronous event in the live processes of this host, which do what the event says. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "config/config.h"
#include "facts/seen.h"
#include "ipc/node.h"
#include "ipc/place/admin_port.h"
#include "print/emit.h"
#include "report/event.h"
#include "report/live_process.h"
#include "report/meeting.h"
#include "report/report.h"
#include "report/reports.h"
#include "script/parse.h"

struct wish {
    const char *event, *device, *directory;
    long pid;                          /* 0: all */
    unsigned meant, processes, silent; /* the processes asked, those that got the event, those that did not answer */
    json_t *list;                      /* of the processes that got the event; NULL: they are printed */
};

static void write_request(const struct wish *wish, char *request, size_t size)
{
    snprintf(request, size, REPORT_EVENT "\"%s\" \"%s\"", wish->event, wish->device);
}

/* The number of contexts that got the event; -1: no answer. */
static int ask(const struct wish *wish, unsigned slot)
{
    char request[NODE_REQUEST_MAX + 1];
    write_request(wish, request, sizeof request);
    json_t *answer = live_process_ask(wish->directory, &(struct live_process){.slot = slot}, request),
           *contexts = json_object_get(answer, "contexts");
    int told = json_is_integer(contexts) ? (int)json_integer_value(contexts) : -1;
    json_decref(answer);
    return told;
}

static void tell_process(const struct node_entry *entry, void *context)
{
    struct wish *wish = context;
    if (!entry->alive || (wish->pid && entry->pid != wish->pid))
        return;
    int told = ask(wish, entry->slot);
    wish->meant++;
    if (told < 0) {
        complain("Process %d (%s) does not answer.", (int)entry->pid, entry->program);
        wish->silent++;
    } else if (told) {
        wish->processes++;
        if (wish->list)
            json_array_append_new(
                wish->list, json_pack("{s:i, s:o}", "pid", (int)entry->pid, "program", emit_text(entry->program)));
        else
            printf("%s on %s: process %d (%s)\n", wish->event, wish->device, (int)entry->pid, entry->program);
    }
}

static bool is_port_event(const struct wish *wish)
{
    return !strcmp(wish->event, "port-down") || !strcmp(wish->event, "port-up");
}

/* Keeps a port's new state for processes that start later, unless the event is for one process only. */
static int keep_port(const struct wish *wish)
{
    char why[512];
    bool down = !strcmp(wish->event, "port-down");
    if (wish->pid || !is_port_event(wish) || !admin_port_set(wish->directory, wish->device, down, why, sizeof why))
        return EXIT_OK;
    return complain_and(EXIT_NEGATIVE, "%s", why);
}

static void conclude(const struct wish *wish)
{
    bool nobody = !wish->processes && !wish->silent;
    if (wish->list)
        emit(json_pack("{s:s, s:s, s:O, s:i}", "event", wish->event, "device", wish->device, "processes", wish->list,
                       "silent", (int)wish->silent));
    else if (nobody && is_port_event(wish) && !wish->pid)
        printf("The port of %s is %s now, also for processes that start later; no process had the device open.\n",
               wish->device, wish->event + strlen("port-"));
    else if (nobody)
        puts("No process had the device open, so no process got the event.");
}

static int provoke(struct wish *wish)
{
    char why[512];
    if (keep_port(wish))
        return EXIT_NEGATIVE;
    if (node_list(wish->directory, tell_process, wish, why, sizeof why))
        return complain_and(EXIT_NEGATIVE, "%s", why);
    bool missing = wish->pid && !wish->meant;
    if (missing)
        complain(MEETING_NO_PROCESS, wish->pid);
    if (!missing || wish->list)
        conclude(wish);
    return wish->silent || missing ? EXIT_NEGATIVE : EXIT_OK;
}

/* The request's words are a line of the language of scripts, which knows the events. */
static bool is_event(const struct wish *wish, struct script_fault *fault)
{
    static struct script script;
    char line[NODE_REQUEST_MAX + 1];
    write_request(wish, line, sizeof line);
    return script_parse(line, &script, fault);
}

static int no_event(const struct command *command, const struct wish *wish, const struct script_fault *fault)
{
    const char *meant = strstr(fault->why, " Did you mean");
    return command_misused(command, "There is no event \"%s\".%s \"softverbs help event\" lists them.", wish->event,
                           meant ? meant : "");
}

/* -- devices: the environment of this command names them, or live processes have them open */

struct search {
    const char *wanted;
    bool found;
    char names[200]; /* the names of all devices, each between blanks */
};

static void look_at_name(struct search *search, const char *name)
{
    size_t length = strlen(search->names);
    char padded[80];
    search->found |= !strcmp(name, search->wanted);
    snprintf(padded, sizeof padded, " %s ", name);
    if (strstr(search->names, padded))
        return;
    snprintf(search->names + length, sizeof search->names - length, "%s%s ", length ? "" : " ", name);
}

static void look_at_processes(struct search *search, const char *directory)
{
    char why[512];
    size_t i, k;
    json_t *name, *reports = reports_collect(directory, why, sizeof why);
    struct seen seen = seen_begin(reports);
    for (i = 0; i < seen.count; i++)
        json_array_foreach (facts_json(&seen.processes[i].own.devices), k, name)
            if (json_is_string(name))
                look_at_name(search, json_string_value(name));
    seen_end(&seen);
    json_decref(reports);
}

/* 0, or the exit status after a sentence that names the devices that there are. */
static int find_device(const struct command *command, const struct wish *wish)
{
    struct search search = {.wanted = wish->device};
    CONFIG_EACH (device)
        look_at_name(&search, device->name);
    if (!search.found)
        look_at_processes(&search, wish->directory);
    const char *names = *search.names ? search.names : " none ";
    return search.found
               ? EXIT_OK
               : command_misused(command, "There is no device \"%s\" here, and no process has one; there are:%.*s",
                                 wish->device, (int)strlen(names) - 1, names);
}

static int event(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {VALUED("pid", 'p'), MEETING_OPTIONS};
    struct meeting meeting = {0};
    struct wish wish = {.directory = meeting.directory};
    while (meeting_option(command, argc, argv, options, &meeting) != -1)
        if (!(wish.pid = live_process_number(optarg)))
            return command_misused(command, "A process has a number above 0.");
    struct script_fault fault;
    wish.event = argc > optind ? argv[optind] : NULL;
    wish.device = argc > optind + 1 ? argv[optind + 1] : "soft0";
    if (wish.event && !is_event(&wish, &fault))
        return no_event(command, &wish, &fault);
    if (argc - optind != 2)
        return command_misused(command, "It needs an event and a device.");
    int status = meeting_find(command, &meeting);
    if (!status)
        status = find_device(command, &wish);
    wish.list = meeting.as_json ? json_array() : NULL;
    return status ? status : provoke(&wish);
}

const struct command event_command = {
    .name = "event",
    .arguments = "[--pid PID] [--dir DIR] [--json] EVENT DEVICE",
    .summary = "Let a port go down, a device fail or a table change",
    .help = "  port-down         the cable is pulled: frames in both directions are lost, so\n"
            "                    reliable queue pairs end with IBV_WC_RETRY_EXC_ERR unless\n"
            "                    the port comes back in time\n"
            "  port-up           the cable is back\n"
            "  device-fatal      the device fails: its queue pairs go to the error state\n"
            "  device-removal    the same, and identifiers of librdmacm get\n"
            "                    RDMA_CM_EVENT_DEVICE_REMOVAL\n"
            "  addr-change       the device has another address, as when an interface of a\n"
            "                    bond fails: IBV_EVENT_GID_CHANGE, and identifiers of\n"
            "                    librdmacm get RDMA_CM_EVENT_ADDR_CHANGE\n"
            "  pkey-change, gid-change, lid-change, sm-change, client-reregister\n"
            "                    raise the event and change nothing else\n"
            "\n"
            "  --pid PID         raise it in this process only\n" MEETING_HELP_DIR
            "  --json            print the processes that got it (docs/reference/json.md)\n"
            "\n"
            "Each context of the device in each live process gets the asynchronous event;\n"
            "ibv_asyncwatch shows it. A port that is down stays down for processes that start\n"
            "later, unless --pid was given.\n",
    .run = event,
};
