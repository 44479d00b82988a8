/* softverbs trace: the calls of programs as they happen. This process reads what their library writes into a ring of
 * memory; the programs never wait for it. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "config/settings.h"
#include "ipc/node.h"
#include "place.h"
#include "report/live_process.h"
#include "report/meeting.h"
#include "ring/trace_control.h"
#include "ring/trace_ring.h"
#include "trace/trace.h"
#include "trace/trace_calls.h"
#include "trace/trace_line.h"

enum {
    SECOND_NANOS = 1000000000,
    PAUSE_NANOS = SECOND_NANOS / 250, /* four million lines a second fill the ring in this time */
    FILE_BUFFER = 1 << 18,            /* lines of a pause, which one system call writes */
    PATIENCE = 50                     /* pauses between two checks that the process lives */
};

struct trace {
    struct meeting meeting;
    struct live_process process; /* that is traced; pid 0: the program is a child of this process */
    const char *calls;
    FILE *out;
    int (*become)(char **program); /* of a child: starts the program, or says why it can't; its exit status */
    struct trace_reader reader;
    struct trace_slot line;
    bool fails; /* lines can't be written */
};

static volatile sig_atomic_t interrupted;
static struct sigaction before[3]; /* the actions of `taken` when the command began, which the program gets back */
static const int taken[] = {SIGINT, SIGTERM, SIGPIPE};

static void note_signal(int number)
{
    interrupted = number;
}

static void take_signals(void)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct sigaction action = {.sa_handler = taken[i] == SIGPIPE ? SIG_IGN : note_signal, .sa_flags = SA_RESTART};
        sigaction(taken[i], &action, &before[i]);
    }
}

static void give_back_signals(void)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        sigaction(taken[i], &before[i], NULL);
}

/* Writes the lines in the ring. False: they can't be written, which one message says; later lines are only read, so
 * that the processes find room in the ring and count no line as lost. */
static bool show_lines(struct trace *trace)
{
    while (trace_ring_read(&trace->reader, &trace->line))
        if (!trace->fails)
            trace_line_print(trace->out, &trace->line, trace->meeting.as_json);
    if (!trace->fails && (fflush(trace->out) || ferror(trace->out))) {
        trace->fails = true;
        complain("The trace can't be written: %s.", strerror(errno));
    }
    return !trace->fails;
}

static void tell_lost(const struct trace *trace)
{
    uint64_t lost = trace_ring_lost(&trace->reader);
    if (lost)
        complain("%llu line%s lost: more came than could be written.", (unsigned long long)lost,
                 lost == 1 ? " was" : "s were");
}

/* Pauses until the next multiple of PAUSE_NANOS on the host's clock: if both ends of a connection are traced on few
 * processors, both commands take processors from the ends at once, not one after the other, as an end waits while the
 * other is stopped. Long pauses cost less than short ones, up to where the ring fills meanwhile. */
static void pause_a_moment(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PAUSE_NANOS - until.tv_nsec % PAUSE_NANOS;
    if (until.tv_nsec >= SECOND_NANOS)
        until = (struct timespec){.tv_sec = until.tv_sec + 1};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* --- a process that runs */

/* 0, or an exit status after a sentence. */
static int send_request(struct trace *trace, const char *request)
{
    json_t *answer = live_process_ask(trace->meeting.directory, &trace->process, request);
    const char *wrong = json_string_value(json_object_get(answer, "wrong"));
    bool answers = json_is_boolean(json_object_get(answer, "traced"));
    if (wrong)
        complain("Process %ld can't be traced: %s.", trace->process.pid, wrong);
    else if (!answers)
        complain("Process %ld does not answer.", trace->process.pid);
    json_decref(answer);
    return answers && !wrong ? EXIT_OK : EXIT_NEGATIVE;
}

static int join(struct trace *trace)
{
    char request[NODE_REQUEST_MAX + 1];
    int used = snprintf(request, sizeof request, TRACE_REQUEST "begin %s %s", trace->reader.path, trace->calls);
    if (used >= (int)sizeof request)
        return complain_and(EXIT_USAGE, "The list of calls is too long.");
    return send_request(trace, request);
}

static int trace_process(struct trace *trace)
{
    int status = join(trace);
    for (unsigned pauses = 0; !status && !interrupted && show_lines(trace); pause_a_moment())
        if (++pauses % PATIENCE == 0 && !live_process_find(trace->meeting.directory, &trace->process))
            break;
    if (!status && live_process_find(trace->meeting.directory, &trace->process))
        send_request(trace, TRACE_REQUEST "end");
    show_lines(trace);
    return trace->fails ? EXIT_NEGATIVE : status;
}

/* --- a program that is started */

/* Becomes "softverbs run -- PROGRAM" of this very command; returns EXIT_SELF if it can't. */
static int start_run(char **program)
{
    char *arguments[] = {"softverbs", "run", "--"};
    enum { COUNT = sizeof arguments / sizeof *arguments };
    size_t count = 0;
    while (program[count])
        count++;
    char **all = calloc(count + COUNT + 1, sizeof *all);
    if (!all)
        return EXIT_SELF;
    memcpy(all, arguments, sizeof arguments);
    memcpy(all + COUNT, program, count * sizeof *all);
    return complain_and(EXIT_SELF, "softverbs can't be executed: %s.", strerror(place_execute(all)));
}

static void become(struct trace *trace, char **program)
{
    give_back_signals();
    setenv(setting_lines[SETTING_TRACE_RING].variable, trace->reader.path, 1);
    setenv(setting_lines[SETTING_TRACE_CALLS].variable, trace->calls, 1);
    _exit(trace->become(program));
}

/* Signals that the user sends to all of the terminal are for the program; this process continues until it has ended. */
static int trace_program(struct trace *trace, char **program)
{
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        return complain_and(EXIT_SELF, "No process can be made: %s.", strerror(errno));
    if (!child)
        become(trace, program); /* which does not return */
    while (waitpid(child, &status, WNOHANG) == 0) {
        show_lines(trace);
        pause_a_moment();
    }
    show_lines(trace);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- the command */

static int begin(struct trace *trace, const char *path, char **program)
{
    static char buffer[FILE_BUFFER]; /* glibc ignores the size of a buffer that it allocates itself */
    if (!trace->process.pid && !trace_calls_check(trace->calls)) /* a running process checks the list itself */
        return EXIT_USAGE;
    trace->out = path ? fopen(path, "we") : stderr;
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* the program writes there, too */
    if (!trace->out)
        return complain_and(EXIT_NEGATIVE, "%s can't be written: %s.", path, strerror(errno));
    if (path)
        setvbuf(trace->out, buffer, _IOFBF, sizeof buffer);
    int error = trace_ring_create(&trace->reader);
    if (error)
        return complain_and(EXIT_NEGATIVE, "There is no memory for a trace: %s.", strerror(error));
    take_signals();
    int status = trace->process.pid ? trace_process(trace) : trace_program(trace, program);
    tell_lost(trace);
    trace_ring_destroy(&trace->reader);
    return status;
}

/* 0, or an exit status after a sentence. */
static int find_process(const struct command *command, struct trace *trace)
{
    int status = trace->process.pid ? meeting_find(command, &trace->meeting) : 0;
    if (status || !trace->process.pid || live_process_find(trace->meeting.directory, &trace->process))
        return status;
    return complain_and(EXIT_NEGATIVE, MEETING_NO_PROCESS, trace->process.pid);
}

int trace_run(const char *calls, const char *path, int (*start)(char **), char **program)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return EXIT_SELF;
    trace->calls = calls ? calls : "";
    trace->become = start;
    int status = begin(trace, path, program);
    free(trace);
    return status;
}

static int trace(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {VALUED("pid", 'p'), VALUED("calls", 'e'), VALUED("output", 'o'),
                                            MEETING_OPTIONS};
    struct trace *trace = calloc(1, sizeof *trace);
    const char *path = NULL, *pid = NULL;
    int status;
    if (!trace)
        return EXIT_SELF;
    trace->calls = "";
    trace->become = start_run;
    for (int option; (option = meeting_option(command, argc, argv, options, &trace->meeting)) != -1;) {
        pid = option == 'p' ? optarg : pid;
        trace->calls = option == 'e' ? optarg : trace->calls;
        path = option == 'o' ? optarg : path;
    }
    trace->process.pid = pid ? live_process_number(pid) : 0;
    if (pid && !trace->process.pid)
        status = command_misused(command, "\"%s\" is not a number of a process.", pid);
    else if (!pid == (optind == argc))
        status = command_misused(command, "It needs either a program, or -p and the number of a process.");
    else if (!(status = find_process(command, trace)))
        status = begin(trace, path, argv + optind);
    free(trace);
    return status;
}

const struct command trace_command = {
    .name = "trace",
    .arguments = "[OPTIONS] [-p PID | [--] PROGRAM [ARGUMENTS]]",
    .summary = "Show the calls of verbs and librdmacm as they happen",
    .help = "  -p, --pid PID     trace this running process; Ctrl-C ends the trace, and the\n"
            "                    process goes on. Without it the program is started as by\n"
            "                    softverbs run, and traced with all that it starts\n"
            "  -e, --calls LIST  trace these calls only, with commas between them:\n"
            "                    post_send,poll_cq; or all but these: '!poll_cq,start_poll'\n"
            "  -o, --output FILE write to this file instead of standard error\n" MEETING_HELP_DIR
            "  --json            print each call as a line of JSON (docs/reference/json.md)\n"
            "\n"
            "A line has the time, process and thread, the call with its arguments, its\n"
            "result, and its duration. Polls in a row that found nothing are one line with\n"
            "their number. The exit status is the program's.\n",
    .runs_rest = true,
    .letters = "p:e:o:",
    .run = trace,
};
