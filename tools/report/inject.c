/* softverbs inject: rules of scripts for a live process. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "facts/read.h"
#include "ipc/node.h"
#include "print/emit.h"
#include "report/live_process.h"
#include "report/meeting.h"
#include "script/live/requests.h"

static void print_rules(const struct fact_inner *rules)
{
    struct facts_rule rule;
    if (!facts_count(rules))
        puts("The process has no rules.");
    for (size_t i = 0; i < facts_count(rules); i++)
        if (facts_read_at(&facts_of_rule, rules, i, &rule))
            printf("%s  (met %llu, done %llu)\n", facts_text(rule.rule), (unsigned long long)rule.met.value,
                   (unsigned long long)rule.done.value);
}

static int show(json_t *answer, const struct live_process *process, bool as_json)
{
    const char *wrong = json_string_value(json_object_get(answer, "wrong"));
    struct facts_injected injected;
    int status = EXIT_NEGATIVE;
    if (wrong)
        complain("%s", wrong);
    else if (!facts_read(&facts_of_injected, answer, &injected) || !json_is_array(facts_json(&injected.rules)))
        complain("Process %ld does not answer.", process->pid);
    else if (as_json)
        emit(json_pack("{s:i, s:O}", "pid", (int)process->pid, "rules", facts_json(&injected.rules))), status = EXIT_OK;
    else
        print_rules(&injected.rules), status = EXIT_OK;
    json_decref(answer);
    return status;
}

static int send_request(const char *directory, struct live_process *process, const char *request, bool as_json)
{
    if (!live_process_find(directory, process))
        return complain_and(EXIT_NEGATIVE, MEETING_NO_PROCESS, process->pid);
    return show(live_process_ask(directory, process, request), process, as_json);
}

/* Puts all rules into one request, so that all of them hold or no rule does. False: they are too long. */
static bool write_request(char *request, int count, char **rules)
{
    size_t used = (size_t)snprintf(request, NODE_REQUEST_MAX + 1, REQUESTS_INJECT "rules ");
    for (int i = 0; i < count && used <= NODE_REQUEST_MAX; i++)
        used += (size_t)snprintf(request + used, NODE_REQUEST_MAX + 1 - used, "%s%s", i ? "\n" : "", rules[i]);
    return used <= NODE_REQUEST_MAX;
}

static int inject(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("list", 'l'), OPTION("clear", 'c'), MEETING_OPTIONS};
    char request[NODE_REQUEST_MAX + 1] = "";
    struct meeting meeting = {0};
    for (int option; (option = meeting_option(command, argc, argv, options, &meeting)) != -1;)
        snprintf(request, sizeof request, REQUESTS_INJECT "%s", option == 'l' ? "list" : "clear");
    struct live_process process = {.pid = live_process_number(argv[optind])};
    int rules = argc - optind - 1;
    if (!process.pid)
        return command_misused(command, "It needs the number of a process.");
    if (!*request == !rules)
        return command_misused(command, "It needs either rules, or --list or --clear.");
    if (rules && !write_request(request, rules, argv + optind + 1))
        return command_misused(command, "The rules are longer than %d letters together.", NODE_REQUEST_MAX - 32);
    int status = meeting_find(command, &meeting);
    return status ? status : send_request(meeting.directory, &process, request, meeting.as_json);
}

const struct command inject_command = {
    .name = "inject",
    .arguments = "[--list | --clear] [--dir DIR] [--json] PID [RULE...]",
    .summary = "Let calls, work and packets of a live process go wrong",
    .help = "  --list            show the rules of the process, with their hits and actions\n"
            "  --clear           remove all of them\n" MEETING_HELP_DIR
            "  --json            print the rules as a JSON object (docs/reference/json.md)\n"
            "\n"
            "Rules are written as in scripts (docs/reference/scripts.md):\n"
            "  softverbs inject 4711 'when work, on qp 0x12, once: complete RETRY_EXC_ERR'\n"
            "They are in force when the command returns. A process that has had rules for\n"
            "packets sends all READs and WRITEs as packets, also after --clear.\n",
    .run = inject,
};
