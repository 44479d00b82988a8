#include "report/live_process.h"

#include <limits.h>
#include <time.h>

#include "base/text/text.h"
#include "command.h"
#include "facts/read.h"
#include "ipc/node.h"
#include "report/around_process.h"
#include "report/reports.h"

enum { ANSWER_MILLISECONDS = 2000, ATTEMPTS = 100, PAUSE_NANOS = 10000000 };

struct search {
    struct live_process *process;
    bool found;
};

long live_process_number(const char *text)
{
    uint64_t number;
    return text && text_number(text, 1, INT_MAX, &number) ? (long)number : 0;
}

static void look_at_process(const struct node_entry *entry, void *context)
{
    struct search *search = context;
    if (!entry->alive || entry->pid != search->process->pid)
        return;
    search->found = true;
    search->process->slot = entry->slot;
}

bool live_process_find(const char *directory, struct live_process *process)
{
    struct search search = {.process = process};
    char why[512];
    process->around = around_process_listens(process->pid);
    if (process->around)
        return true;
    if (node_list(directory, look_at_process, &search, why, sizeof why))
        complain("%s", why);
    return search.found;
}

json_t *live_process_ask(const char *directory, const struct live_process *process, const char *request)
{
    for (int i = 0; i < ATTEMPTS; i++, nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOS}, NULL)) {
        json_t *answer = process->around ? around_process_ask(process->pid, request, ANSWER_MILLISECONDS)
                                         : reports_ask(directory, process->slot, request, ANSWER_MILLISECONDS);
        if (!json_is_true(facts_member(&facts_of_process, answer, offsetof(struct facts_process, busy))))
            return answer;
        json_decref(answer);
    }
    return NULL;
}
