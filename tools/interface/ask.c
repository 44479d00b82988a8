/* softverbs-ask: the program that libsoftverbs-test.so runs for a call of <softverbs.h>. It asks a process, as
 * `softverbs inject` does, and prints an errno, a count and a sentence. */
#include "interface/softverbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/nanos.h"
#include "base/read_clock.h"
#include "diag/clean.h"
#include "ipc/node.h"
#include "script/live/requests.h"
#include "script/rule.h"

enum { ANSWER_MILLISECONDS = 2000, ATTEMPTS = 100, PAUSE_NANOS = 10000000 };

struct search {
    long pid;
    unsigned slot;
    bool found;
};

static void look_at_process(const struct node_entry *entry, void *context)
{
    struct search *search = context;
    if (!entry->alive || entry->pid != search->pid)
        return;
    search->found = true;
    search->slot = entry->slot;
}

/* --- an answer: a line of JSON */

static char *read_answer(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *answer = size < 0 ? NULL : calloc(1, (size_t)size + 1);
    if (answer && pread(fd, answer, (size_t)size, 0) != size) {
        free(answer);
        return NULL;
    }
    return answer;
}

static int ask_once(const char *directory, unsigned slot, const char *request, char **answer)
{
    int fd = memfd_create("answer", MFD_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = node_ask(directory, slot, request, fd, ANSWER_MILLISECONDS);
    if (!error) {
        *answer = read_answer(fd);
        error = *answer ? 0 : ENOMEM;
    }
    close(fd);
    return error;
}

/* A process that is making objects right now is asked again. */
static int ask_slot(const char *directory, unsigned slot, const char *request, char **answer)
{
    for (int i = 0; i < ATTEMPTS; i++, nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOS}, NULL)) {
        int error = ask_once(directory, slot, request, answer);
        if (error || strncmp(*answer, "{\"busy\"", 7))
            return error;
        free(*answer);
        *answer = NULL;
    }
    return ETIMEDOUT;
}

/* Returns 0 and an answer to free, or an errno. */
static int ask(long pid, const char *request, char **answer)
{
    struct search search = {.pid = pid};
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    if (!node_directory(directory) || node_list(directory, look_at_process, &search, why, sizeof why) || !search.found)
        return ESRCH;
    return ask_slot(directory, search.slot, request, answer);
}

/* Copies the text of a JSON string that clean_json wrote, with question marks for escaped characters above ASCII. */
static void copy_string(const char *from, char *to, size_t size)
{
    size_t used = 0;
    for (unsigned code; *from && *from != '"' && used + 1 < size; from++) {
        bool escaped = sscanf(from, "\\u%4x", &code) == 1;
        to[used++] = !escaped ? *from : code < 0x80 ? (char)code : '?';
        from += escaped ? strlen("u0022") : 0;
    }
    if (size)
        to[used] = 0;
}

/* Returns EINVAL or ENOSPC if the process has not taken the rules. */
static int judge(const char *answer, char *why, size_t size)
{
    static const char wrong[] = "{\"wrong\":\"";
    if (strncmp(answer, wrong, sizeof wrong - 1))
        return 0;
    if (why)
        copy_string(answer + sizeof wrong - 1, why, size);
    return strncmp(answer + sizeof wrong - 1, "line ", 5) ? ENOSPC : EINVAL;
}

/* --- the interface */

static int request_rules(long pid, const char *rules, char *why, size_t size)
{
    char request[NODE_REQUEST_MAX + 1], *answer = NULL;
    int length = snprintf(request, sizeof request, REQUESTS_INJECT "rules %s", rules);
    if (why && size)
        *why = 0;
    if (length > NODE_REQUEST_MAX)
        return E2BIG;
    int error = ask(pid, request, &answer);
    if (!error)
        error = judge(answer, why, size);
    free(answer);
    return error;
}

static int clear(long pid)
{
    char *answer = NULL;
    int error = ask(pid, REQUESTS_INJECT "clear", &answer);
    free(answer);
    return error;
}

/* Writes a rule that only counts the event. False: the process would not keep all of it. */
static bool write_watch(const char *event, char rule[SCRIPT_TEXT])
{
    return snprintf(rule, SCRIPT_TEXT, "when %s: note", event) < SCRIPT_TEXT && !strpbrk(event, "\n;#");
}

static int watch(long pid, const char *event)
{
    char rule[SCRIPT_TEXT];
    return write_watch(event, rule) ? request_rules(pid, rule, NULL, 0) : E2BIG;
}

/* The part of the answer after the last place of the rule's text. The quotes of texts are escaped, so nothing else can
 * look like it. */
static const char *find_rule(const char *answer, const char *rule)
{
    const char *last = NULL;
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        return NULL;
    fputs("{\"rule\":", file);
    clean_json(file, rule);
    fputs(",", file);
    if (!fclose(file))
        for (const char *at = answer; (at = strstr(at, text)); at += length)
            last = at + length;
    free(text);
    return last;
}

static int count(long pid, const char *event, unsigned long long *times)
{
    char rule[SCRIPT_TEXT], *answer = NULL;
    if (!write_watch(event, rule))
        return ENOENT;
    int error = ask(pid, REQUESTS_INJECT "list", &answer);
    const char *behind = error ? NULL : find_rule(answer, rule);
    if (!error && (!behind || sscanf(behind, "\"met\":%*u,\"done\":%llu", times) != 1))
        error = ENOENT;
    free(answer);
    return error;
}

/* Looks once more after the time is over. A process that does not answer now, for example stopped, may answer later. */
static int wait_for(long pid, const char *event, unsigned long long times, int milliseconds)
{
    nanos until = read_clock(CLOCK_MONOTONIC) + (milliseconds > 0 ? (nanos)milliseconds * NANOS_MILLISECOND : 0);
    unsigned long long seen = 0;
    int error;
    bool late = false;
    while ((!(error = count(pid, event, &seen)) || error == ETIMEDOUT) && seen < times && !late) {
        late = read_clock(CLOCK_MONOTONIC) >= until;
        if (!late)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOS / 5}, NULL);
    }
    return error ? error : seen < times ? ETIMEDOUT : 0;
}

int main(int argc, char **argv)
{
    static const char *const verbs[] = {"inject", "clear", "watch", "count", "wait"};
    enum { INJECT, CLEAR, WATCH, COUNT, WAIT, VERBS } verb = 0;
    char why[256] = "";
    unsigned long long times = 0;
    int error = EINVAL;
    while (verb < VERBS && argc > 1 && strcmp(argv[1], verbs[verb]))
        verb++;
    if (argc != 6)
        return EXIT_FAILURE;
    long pid = atol(argv[2]);
    if (verb == INJECT)
        error = request_rules(pid, argv[3], why, sizeof why);
    else if (verb == CLEAR)
        error = clear(pid);
    else if (verb == WATCH)
        error = watch(pid, argv[3]);
    else if (verb == COUNT)
        error = count(pid, argv[3], &times);
    else if (verb == WAIT)
        error = wait_for(pid, argv[3], strtoull(argv[4], NULL, 10), atoi(argv[5]));
    printf("%d %llu %s", error, times, why);
    return EXIT_SUCCESS;
}
