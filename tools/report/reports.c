#include "reports.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "facts/read.h"
#include "ipc/node.h"

enum { ANSWER_MILLISECONDS = 1000 };

/* The processes that node_list found. */
struct found {
    json_t *reports;
    const char *directory;
};

/* Returns 0, or the errno of node_ask. `answer` is NULL if the process answered with no object. */
static int ask(const char *directory, unsigned slot, const char *request, int milliseconds, json_t **answer)
{
    int fd = memfd_create("report", MFD_CLOEXEC), error = fd < 0 ? errno : 0;
    *answer = NULL;
    if (!error && !(error = node_ask(directory, slot, request, fd, milliseconds)))
        *answer = facts_parse_descriptor(fd);
    if (fd >= 0)
        close(fd);
    if (!json_is_object(*answer)) {
        json_decref(*answer);
        *answer = NULL;
    }
    return error;
}

json_t *reports_ask(const char *directory, unsigned slot, const char *request, int milliseconds)
{
    json_t *report;
    ask(directory, slot, request, milliseconds, &report);
    return report;
}

static void add_process(const struct node_entry *entry, void *context)
{
    struct found *found = context;
    if (!entry->alive)
        return;
    struct facts_process facts;
    json_t *report;
    int error = ask(found->directory, entry->slot, "", ANSWER_MILLISECONDS, &report);
    bool answers = facts_read(&facts_of_process, report, &facts);
    if (!answers) {
        json_decref(report);
        report = json_object();
    }
    json_object_set_new(report, "pid", json_integer(entry->pid));
    json_object_set_new(report, "program", json_string(entry->program));
    json_object_set_new(report, "answers", json_boolean(answers));
    if (error == EPERM)
        json_object_set_new(report, "refuses", json_true());
    json_array_append_new(found->reports, report);
}

json_t *reports_collect(const char *directory, char *why, size_t why_size)
{
    struct found found = {json_array(), directory};
    if (!node_list(directory, add_process, &found, why, why_size))
        return found.reports;
    json_decref(found.reports);
    return NULL;
}

/* A request to all processes, and their answers. */
struct round {
    const char *directory, *request;
    json_t *answers;
    int *silent;
};

/* A process that answers without an object is not silent: it has nothing to say about the request. */
static void ask_one(const struct node_entry *entry, void *context)
{
    struct round *round = context;
    json_t *answer;
    if (!entry->alive)
        return;
    int error = ask(round->directory, entry->slot, round->request, ANSWER_MILLISECONDS, &answer);
    if (answer)
        json_array_append_new(round->answers, answer);
    else if (error && round->silent)
        *round->silent = (int)entry->pid;
}

json_t *reports_ask_all(const char *directory, const char *request, int *silent)
{
    struct round round = {directory, request, json_array(), silent};
    char why[256];
    node_list(directory, ask_one, &round, why, sizeof why);
    return round.answers;
}
