#include "sweep/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/settings.h"
#include "command.h"
#include "place.h"

const char *const sweep_outcomes[SWEEP_OUTCOMES] = {
    [SWEEP_ENDS_BADLY] = "ends with an error",
    [SWEEP_ENDS_WELL] = "ends with success",
    [SWEEP_CRASHES] = "crashes",
    [SWEEP_HANGS] = "hangs",
    [SWEEP_LEAKS] = "leaks memory",
    [SWEEP_BREAKS_MEMORY] = "uses memory that it must not use",
    [SWEEP_GOES_ON] = "goes on another way",
};

enum { PAUSE_NANOS = 2000000 };

/* The status with which a program ends when its sanitizer has found something. */
static const struct {
    const char *variable, *option;
    int status;
    enum sweep_outcome outcome;
} sanitizers[] = {
    {"LSAN_OPTIONS", "exitcode=123", 123, SWEEP_LEAKS},
    {"ASAN_OPTIONS", "exitcode=124", 124, SWEEP_BREAKS_MEMORY},
};
enum { SANITIZERS = sizeof sanitizers / sizeof *sanitizers };

/* --- signals that end the command: the program has a separate process group, so a terminal does not signal it */

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
enum { ENDING = sizeof ending / sizeof *ending };

static volatile sig_atomic_t ended_by; /* a signal; 0: no signal */

/* The actions of the signals before the command took them, for a run or for all. */
static struct {
    bool for_all;
    struct sigaction before[ENDING];
} caught;

static void note_end(int signal)
{
    ended_by = signal;
}

static void catch_ends(void)
{
    struct sigaction action = {.sa_handler = note_end};
    for (int i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &caught.before[i]);
        if (caught.before[i].sa_handler != SIG_IGN) /* as under nohup(1) */
            sigaction(ending[i], &action, NULL);
    }
}

/* A signal that came meanwhile takes its effect now. */
static void let_end(void)
{
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &caught.before[i], NULL);
    if (ended_by)
        raise(ended_by);
    ended_by = 0;
}

void attempts_begin(void)
{
    catch_ends();
    caught.for_all = true;
}

void attempts_end(void)
{
    caught.for_all = false;
    let_end();
}

int attempts_signal(void)
{
    return ended_by;
}

/* --- a run */

/* The arguments of this command's `run` or `around` with the program, in an array to free; NULL: no memory. */
static const char **make_arguments(const struct attempt *attempt, const char *log)
{
    const char *level = attempt->adverse && *attempt->adverse ? "info" : "warn";
    const char *const begin[] = {"softverbs", attempt->around ? "around" : "run", "--log", level, "--log-file", log};
    enum { BEGIN = sizeof begin / sizeof *begin, RULE = 3 };
    size_t count = BEGIN, program = 0;
    while (attempt->program[program])
        program++;
    const char **arguments = calloc(BEGIN + RULE + program + 1, sizeof *arguments);
    if (!arguments)
        return NULL;
    memcpy(arguments, begin, sizeof begin);
    if (attempt->rule) {
        arguments[count++] = "--inject";
        arguments[count++] = attempt->rule;
    }
    arguments[count++] = "--";
    memcpy(arguments + count, attempt->program, program * sizeof *arguments);
    return arguments;
}

static void set_adverse(const char *list)
{
    if (list && *list)
        setting_put(SETTING_ADVERSE, list);
    else if (list)
        unsetenv(setting_variable(SETTING_ADVERSE));
}

/* Becomes the program, in the child, which writes to the file. The user's options for a sanitizer are first, so ours
 * prevail. */
static void become(const char **arguments, int output)
{
    char options[1024];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < SANITIZERS; i++) {
        const char *own = getenv(sanitizers[i].variable);
        snprintf(options, sizeof options, "%s%s%s", own ? own : "", own ? ":" : "", sanitizers[i].option);
        setenv(sanitizers[i].variable, options, 1);
    }
    for (int fd = 0; fd < 3; fd++)
        dup2(fd == STDOUT_FILENO ? output : null, fd);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* when the command is killed, which it can't catch */
    place_execute((char **)arguments);
    _exit(EXIT_SELF);
}

/* Takes what is in the pipe now. */
static void take_output(struct attempt *attempt, int pipe)
{
    enum { MOST = 64 }; /* pieces, or a program that only writes would not be watched */
    char text[1 << 14];
    ssize_t length;
    for (int i = 0; i < MOST && (length = read(pipe, text, sizeof text)) > 0; i++)
        written_add(&attempt->output, text, (size_t)length);
}

/* Waits for the end of the program. False: its time is up, or a signal ends the command. */
static bool wait_for(struct attempt *attempt, pid_t child, int pipe, int *status)
{
    double until = read_clock_seconds() + attempt->seconds;
    while (waitpid(child, status, WNOHANG) != child) {
        if (ended_by || read_clock_seconds() > until)
            return false;
        if (attempt->wait)
            attempt->wait();
        take_output(attempt, pipe);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOS}, NULL);
    }
    return true;
}

/* Children that the command had before it made any: a shell that became the command has left them. */
enum { STRANGERS_MOST = 256 };

static struct strangers {
    bool known;
    unsigned count;
    pid_t pids[STRANGERS_MOST];
} strangers;

static bool is_stranger(pid_t child)
{
    for (unsigned i = 0; i < strangers.count; i++)
        if (strangers.pids[i] == child)
            return true;
    return strangers.count == STRANGERS_MOST; /* there may be more: then no child is ended */
}

static void know_stranger(pid_t child)
{
    if (strangers.count < STRANGERS_MOST)
        strangers.pids[strangers.count++] = child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, WNOHANG);
}

/* Visits each child that the command has made; returns their number. */
static unsigned visit_children(void (*visit)(pid_t))
{
    pid_t child;
    unsigned count = 0;
    FILE *children = fopen("/proc/thread-self/children", "re");
    while (children && fscanf(children, "%d", &child) == 1)
        if (!is_stranger(child)) {
            visit(child);
            count++;
        }
    if (children)
        fclose(children);
    return count;
}

static void know_strangers(void)
{
    if (!strangers.known)
        visit_children(know_stranger);
    strangers.known = true;
}

/* Processes that the run has left outside of its group, such as those that timeout(1) or setsid(1) start, have become
 * children of this process, as have those that they leave in turn. */
static void end_orphans(void)
{
    enum { ROUNDS = 1000 };
    for (int round = 0; round < ROUNDS && visit_children(end_child); round++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOS}, NULL);
}

static void judge(struct attempt *attempt, int status)
{
    attempt->value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        attempt->outcome = SWEEP_CRASHES;
    else
        attempt->outcome = attempt->value ? SWEEP_ENDS_BADLY : SWEEP_ENDS_WELL;
    if (!WIFSIGNALED(status) && attempt->value > 128 && attempt->value <= 128 + SIGRTMAX) /* a shell's child crashed */
        attempt->outcome = SWEEP_CRASHES, attempt->value -= 128;
    for (size_t i = 0; !WIFSIGNALED(status) && i < SANITIZERS; i++)
        if (attempt->value == sanitizers[i].status)
            attempt->outcome = sanitizers[i].outcome;
}

/* The text between "softverbs: PROGRAM[PID] " and " by line" in the first line of the log about a rule. */
static void take_fault(char *line, char *fault)
{
    char *end = strstr(line, " by line "), *begin = strstr(line, "] ");
    if (*fault || !end || !begin || !strstr(end, "(reason 700)") || begin > end)
        return;
    *end = 0;
    snprintf(fault, ATTEMPT_FAULT, "%s", begin + 2);
}

/* "adverse behaviour 3, late-write (seed 7): ..." */
static void take_behaviour(const char *line, uint32_t *shown)
{
    unsigned number;
    const char *begin = strstr(line, "] adverse behaviour ");
    if (begin && sscanf(begin, "] adverse behaviour %u,", &number) == 1 && number < 32)
        *shown |= 1u << number;
}

static void read_log(FILE *log, struct attempt *attempt)
{
    char line[1024];
    *attempt->fault = 0;
    attempt->shown = 0;
    while (fgets(line, sizeof line, log)) {
        take_behaviour(line, &attempt->shown);
        take_fault(line, attempt->fault);
    }
}

static void follow(struct attempt *attempt, pid_t child, int pipe)
{
    int status;
    double began = read_clock_seconds();
    setpgid(child, child); /* the child does the same, and either may be first */
    if (wait_for(attempt, child, pipe, &status)) {
        judge(attempt, status);
        take_output(attempt, pipe);
        written_end(&attempt->output);
    } else {
        attempt->outcome = SWEEP_HANGS;
        attempt->value = 0;
        kill(-child, SIGKILL);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    kill(-child, SIGKILL); /* the processes that it has left */
    end_orphans();
    attempt->took = read_clock_seconds() - began;
}

/* Starts the program, whose output is in the pipe, and waits until it has ended. False and errno. */
static bool start_and_follow(struct attempt *attempt, const char **arguments)
{
    int pipe[2];
    if (pipe2(pipe, O_CLOEXEC))
        return false;
    fcntl(pipe[0], F_SETFL, O_NONBLOCK); /* of this end alone */
    pid_t child = fork();
    if (!child) {
        set_adverse(attempt->adverse);
        become(arguments, pipe[1]);
    }
    close(pipe[1]);
    if (child > 0)
        follow(attempt, child, pipe[0]);
    close(pipe[0]);
    return child > 0;
}

bool attempt_run(struct attempt *attempt)
{
    char path[64]; /* of a file without a name, which lives as long as the command */
    if (!caught.for_all)
        catch_ends();
    attempt->output = (struct written){0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int file = memfd_create("log", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), file);
    FILE *log = file < 0 ? NULL : fdopen(file, "r");
    const char **arguments = make_arguments(attempt, path);
    know_strangers();
    bool ran = log && arguments && start_and_follow(attempt, arguments);
    free(arguments);
    if (ran) {
        rewind(log);
        read_log(log, attempt);
    }
    int error = errno;
    if (log)
        fclose(log);
    else if (file >= 0)
        close(file);
    if (!caught.for_all)
        let_end();
    errno = error;
    return ran;
}
