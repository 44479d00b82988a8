/* softverbs why: what each live process waits for, of looks at its objects, a second apart. A rule says one thing that
 * two reports can show; of a queue pair the first that holds is printed. */
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "last.h"
#include "meeting.h"
#include "print/emit.h"
#include "print/screen.h"
#include "reports.h"

enum { SENTENCE = 320, LOOKS = 4 };

static const char NOTHING[] =
    "Nothing of softverbs stands out: something is under way, or it waits for something else.";

/* A queue pair and what belongs to it. */
struct view {
    const json_t *processes; /* all of them now */
    const json_t *process;
    const json_t *qp, *before; /* now, and in the first look; NULL: it was not there */
    const json_t *peer;        /* on this host; NULL: not known */
    const json_t *peer_process;
};

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const json_t *find(const json_t *list, const char *key, json_int_t number)
{
    size_t i;
    json_t *each;
    json_array_foreach(list, i, each) if (number_of(each, key) == number) return each;
    return NULL;
}

static bool is_in(const json_t *qp, const char *states)
{
    const char *state = text_of(qp, "state");
    return *state && strstr(states, state);
}

/* Nothing of it came or went between the looks. */
static bool is_still(const struct view *view)
{
    return view->before && json_equal(json_object_get(view->qp, "traffic"), json_object_get(view->before, "traffic"));
}

static const json_t *cq_of(const struct view *view, const char *which)
{
    return find(json_object_get(view->process, "cqs"), "handle", number_of(view->qp, which));
}

/* -- rules of queue pairs: each writes its sentence, or returns false */

static bool is_locked(const struct view *view, char *say)
{
    snprintf(say, SENTENCE,
             "a thread is within a call of it, or a batch is open (ibv_wr_start without ibv_wr_complete)");
    return json_is_true(json_object_get(view->qp, "busy"));
}

static bool is_not_connected(const struct view *view, char *say)
{
    snprintf(say, SENTENCE, "is in %s: ibv_modify_qp to RTR, and to RTS for sending, is missing",
             text_of(view->qp, "state"));
    return is_in(view->qp, "RESET INIT");
}

static bool has_failed(const struct view *view, char *say)
{
    json_int_t error = number_of(view->qp, "first_error");
    if (error)
        snprintf(say, SENTENCE, "is in %s since its first error, %s: softverbs explain %" JSON_INTEGER_FORMAT,
                 text_of(view->qp, "state"), text_of(view->qp, "first_error_name"), error);
    else
        snprintf(say, SENTENCE, "is in %s: the program moved it there, or its peer ended", text_of(view->qp, "state"));
    return is_in(view->qp, "ERR SQE");
}

static bool is_on_this_host(const struct view *view)
{
    return json_object_get(view->qp, "peer_pid") || view->peer;
}

/* One on another host is not in any report here, but it has answered. */
static bool has_no_peer(const struct view *view, char *say)
{
    json_int_t number = number_of(view->qp, "peer_qp");
    snprintf(say, SENTENCE, "is connected with queue pair 0x%" PRIx64 ", which no process of this directory has%s",
             (uint64_t)number,
             number >> 24 ? ": more than 24 bits, so it was not brought into the host's byte order"
                          : ", or which is on another host");
    return !strcmp(text_of(view->qp, "type"), "RC") && json_object_get(view->qp, "peer_qp") && !is_on_this_host(view) &&
           !json_object_size(json_object_get(json_object_get(view->qp, "traffic"), "received"));
}

static bool has_deaf_peer(const struct view *view, char *say)
{
    if (!view->peer)
        return false;
    snprintf(say, SENTENCE, "sends to queue pair 0x%" PRIx64 " of process %d (%s), which is in %s and takes nothing",
             (uint64_t)number_of(view->peer, "number"), (int)number_of(view->peer_process, "pid"),
             text_of(view->peer_process, "program"), text_of(view->peer, "state"));
    return number_of(view->qp, "send_posted") && is_in(view->peer, "RESET INIT ERR");
}

static bool waits_for_receives(const struct view *view, char *say)
{
    json_int_t naks = number_of(json_object_get(view->qp, "traffic"), "rnrs_received");
    snprintf(say, SENTENCE,
             "sends, and its peer has no receive posted (ibv_post_recv): it answered %" JSON_INTEGER_FORMAT
             " times that it is not ready",
             naks);
    return naks && number_of(view->qp, "send_posted");
}

static bool has_unpolled_sends(const struct view *view, char *say)
{
    const json_t *cq = cq_of(view, "send_cq");
    snprintf(say, SENTENCE,
             "%" JSON_INTEGER_FORMAT " work requests are done or under way, and %" JSON_INTEGER_FORMAT
             " completions wait in completion queue %" JSON_INTEGER_FORMAT ": it is not polled",
             number_of(view->qp, "send_posted"), number_of(cq, "waiting"), number_of(view->qp, "send_cq"));
    return is_still(view) && number_of(view->qp, "send_posted") && number_of(cq, "waiting");
}

static bool has_unsignalled_sends(const struct view *view, char *say)
{
    snprintf(say, SENTENCE,
             "%" JSON_INTEGER_FORMAT " work requests were sent and nothing is under way: they have no completion, as "
             "they are not signalled (IBV_SEND_SIGNALED)",
             number_of(view->qp, "send_posted"));
    return is_still(view) && number_of(view->qp, "send_posted") && is_in(view->qp, "RTS SQD");
}

static bool waits_for_message(const struct view *view, char *say)
{
    json_int_t posted = number_of(view->qp, "recv_posted");
    snprintf(say, SENTENCE, "has nothing to send; %" JSON_INTEGER_FORMAT " receives wait for a message of the peer",
             posted);
    return is_still(view) && posted;
}

static bool has_no_receive(const struct view *view, char *say)
{
    snprintf(say, SENTENCE, "has nothing to send, and no receive is posted");
    return is_still(view) && !json_object_get(view->qp, "srq");
}

static bool (*const rules[])(const struct view *, char *) = {
    is_locked,          is_not_connected,      has_failed,        has_no_peer,    has_deaf_peer, waits_for_receives,
    has_unpolled_sends, has_unsignalled_sends, waits_for_message, has_no_receive,
};

/* -- one process */

static void add(json_t *said, const char *what, json_int_t number, const char *sentence)
{
    char line[SENTENCE + 64];
    snprintf(line, sizeof line, "%s 0x%" PRIx64 " %s.", what, (uint64_t)number, sentence);
    json_array_append_new(said, json_string(line));
}

static void find_peer(struct view *view)
{
    size_t i;
    json_t *process;
    json_int_t number = number_of(view->qp, "peer_qp");
    json_array_foreach(view->processes, i, process)
    {
        const json_t *found = number ? find(json_object_get(process, "qps"), "number", number) : NULL;
        if (found) {
            view->peer = found;
            view->peer_process = process;
        }
    }
}

static void judge_qps(const json_t *processes, const json_t *process, const json_t *before, json_t *said)
{
    size_t i;
    json_t *qp;
    char sentence[SENTENCE];
    json_array_foreach(json_object_get(process, "qps"), i, qp)
    {
        json_int_t number = number_of(qp, "number");
        struct view view = {.processes = processes,
                            .process = process,
                            .qp = qp,
                            .before = find(json_object_get(before, "qps"), "number", number)};
        find_peer(&view);
        for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++)
            if (rules[rule](&view, sentence)) {
                add(said, "Queue pair", number, sentence);
                break;
            }
    }
}

static void judge_cqs(const json_t *process, const json_t *before, json_t *said)
{
    size_t i;
    json_t *cq;
    char sentence[SENTENCE];
    json_array_foreach(json_object_get(process, "cqs"), i, cq)
    {
        json_int_t handle = number_of(cq, "handle"), waiting = number_of(cq, "waiting");
        const json_t *old = find(json_object_get(before, "cqs"), "handle", handle);
        bool armed = json_is_true(json_object_get(cq, "armed"));
        if (!waiting || number_of(old, "waiting") != waiting)
            continue;
        snprintf(sentence, sizeof sentence, "has %" JSON_INTEGER_FORMAT " completions that nothing polls, and %s",
                 waiting, armed ? "its event was raised" : "no event is asked for (ibv_req_notify_cq)");
        add(said, "Completion queue", handle, sentence);
    }
}

static json_t *judge(const json_t *processes, const json_t *process, const json_t *before)
{
    json_t *said = json_array();
    if (!json_is_true(json_object_get(process, "answers")))
        json_array_append_new(said, json_string("It does not answer: it is stopped (SIGSTOP, a debugger), or ends."));
    else if (json_is_true(json_object_get(process, "busy")))
        json_array_append_new(said, json_string("A thread makes or destroys an object, and waits: for events that were "
                                                "not acknowledged, or for work that uses the object."));
    judge_cqs(process, before, said);
    judge_qps(processes, process, before, said);
    if (!json_array_size(said))
        json_array_append_new(said, json_string(NOTHING));
    return said;
}

static void print(const json_t *list)
{
    size_t i, k;
    json_t *process, *line;
    json_array_foreach(list, i, process)
    {
        printf("%d %s\n", (int)number_of(process, "pid"), text_of(process, "program"));
        json_array_foreach(json_object_get(process, "waits"), k, line)
            screen_wrap(stdout, screen_width(stdout), (size_t)printf("    "), 4, json_string_value(line));
    }
}

/* An object for each process; pid 0: for all. */
static json_t *judge_all(const json_t *before, const json_t *now, int pid)
{
    size_t i;
    json_t *process, *list = json_array();
    json_array_foreach(now, i, process)
    {
        if (pid && number_of(process, "pid") != pid)
            continue;
        json_t *said = judge(now, process, find(before, "pid", number_of(process, "pid")));
        json_array_append_new(list, json_pack("{s:O, s:O, s:o}", "pid", json_object_get(process, "pid"), "program",
                                              json_object_get(process, "program"), "waits", said));
    }
    return list;
}

/* Something is still under way somewhere, as far as two looks show. */
static bool is_moving(const json_t *list)
{
    size_t i;
    json_t *process;
    json_array_foreach(list, i,
                       process) if (!strcmp(json_string_value(json_array_get(json_object_get(process, "waits"), 0)),
                                            NOTHING)) return true;
    return false;
}

/* Looks until nothing moves any more, at most LOOKS times. NULL and a sentence: the directory can't be read. */
static json_t *look(const char *directory, int pid, char *why, size_t size)
{
    json_t *list = NULL, *before = reports_collect(directory, why, size);
    for (int i = 1; before && i < LOOKS && (!list || is_moving(list)); i++) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        json_t *now = reports_collect(directory, why, size);
        json_decref(list);
        list = now ? judge_all(before, now, pid) : NULL;
        json_decref(before);
        before = now;
    }
    json_decref(before);
    return list;
}

static int look_and_tell(const char *directory, int pid, bool as_json)
{
    char why[512];
    json_t *list = look(directory, pid, why, sizeof why);
    bool found = json_array_size(list);
    if (!list)
        complain("%s", why);
    else if (!found && pid)
        complain("No process %d has a softverbs device open here.", pid);
    else if (as_json)
        emit(json_incref(list));
    else if (!found)
        puts("No process has a softverbs device open.");
    else
        print(list);
    json_decref(list);
    return list && (found || !pid) ? EXIT_OK : EXIT_NEGATIVE;
}

static int tell_last(const char *directory, int pid, bool as_json)
{
    json_t *list = last_collect(directory, pid);
    bool found = json_array_size(list);
    if (!found && pid)
        complain("No process %d has left a line here.", pid);
    else if (as_json)
        emit(json_incref(list));
    else if (!found)
        puts("No process has left a line here.");
    else
        last_print(list);
    json_decref(list);
    return found || !pid ? EXIT_OK : EXIT_NEGATIVE;
}

static int why(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"last", no_argument, NULL, 'l'}, MEETING_OPTIONS};
    struct meeting meeting = {0};
    bool last = false;
    while (meeting_option(command, argc, argv, options, &meeting) != -1)
        last = true;
    int pid = optind < argc ? atoi(argv[optind]) : 0;
    if (optind + 1 < argc || (optind < argc && pid <= 0))
        return command_misused(command, "It takes the number of one process.");
    int status = meeting_find(command, &meeting);
    return status ? status : (last ? tell_last : look_and_tell)(meeting.directory, pid, meeting.as_json);
}

const struct command why_command = {
    .name = "why",
    .arguments = "[--last] [--json] [--dir DIR] [PID]",
    .summary = "Say what a program that hangs waits for",
    .help = "  --last            the last twenty lines of the log of each process, also of\n"
            "                    one that has ended, and of one that printed nothing\n"
            "  --json            a list with an object for each process, see\n"
            "                    docs/user/json.md\n" MEETING_HELP_DIR "\n"
            "Looks twice or more, a second apart, at completion queues and queue pairs of\n"
            "the process, or of all: completions that are not polled, sends that were not\n"
            "signalled, peers without receives, in the wrong state or not there, errors.\n"
            "\"softverbs show\" has the objects themselves, \"softverbs explain\" what a number\n"
            "means.\n"
            "\n"
            "The last lines stand in the directory for seven days, of at most 64 processes,\n"
            "for this user only; SOFTVERBS_LOG=none keeps none.\n"
            "\n"
            "Exit status: 0, or 1 when there is no such process.\n",
    .run = why,
};
