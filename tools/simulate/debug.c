#include "simulate/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/program.h"
#include "place.h"

/* gdb's own processes and threads get numbers from here on, and the run's are the same without gdb. */
enum { NUMBERS_FROM = 30000, FIRST_PROCESS = 2 };

static const char last_number[] = "/proc/sys/kernel/ns_last_pid";

static struct {
    char **environment;
    int input;  /* 0: the programs have it */
    pid_t gdb;  /* 0: it does not run */
    int before; /* the last number of a process before gdb began */
} debug;

/* --- the user's words */

/* 0: it is a name. */
static pid_t number_of(const char *word)
{
    return word[strspn(word, "0123456789")] ? 0 : (pid_t)strtol(word, NULL, 10);
}

int debug_check(const struct command *command, const char *word)
{
    char path[PATH_MAX];
    bool is_name = word[strspn(word, "0123456789")] && !strchr(word, '/');
    if (!is_name && number_of(word) < FIRST_PROCESS)
        return command_misused(command, "--gdb \"%s\": It is the number of a process, from 2, or a program's name.",
                               word);
    if (program_find("gdb", path))
        return 0;
    return complain_and(EXIT_NOT_FOUND, "sim: There is no gdb in $PATH.");
}

void debug_want(struct sim_run *run, const struct sim_choice *choice)
{
    if (!choice->gdb)
        return;
    run->debug.process = number_of(choice->gdb);
    snprintf(run->debug.name, sizeof run->debug.name, "%.*s", (int)sizeof run->debug.name - 1, choice->gdb);
    atomic_store(&run->debug.state, SIM_DEBUG_WANTED);
}

/* --- before the programs */

static char **copy_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = malloc((count + 1) * sizeof *copy);
    if (copy)
        memcpy(copy, environ, (count + 1) * sizeof *copy);
    return copy;
}

void debug_keep(const struct sim_choice *choice)
{
    if (!choice->gdb)
        return;
    debug.environment = copy_environment();
    debug.input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    if (nothing > STDERR_FILENO)
        close(nothing);
}

/* --- numbers of processes */

static int read_last_number(void)
{
    char text[16] = "";
    int file = open(last_number, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    return length > 0 ? (int)strtol(text, NULL, 10) : 0;
}

static bool write_last_number(int number)
{
    int file = open(last_number, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && dprintf(file, "%d", number) > 0;
    int error = errno;
    if (file >= 0)
        close(file);
    errno = error;
    return written;
}

static void leave_numbers(void)
{
    debug.before = read_last_number();
    if (debug.before && write_last_number(NUMBERS_FROM))
        return;
    debug.before = 0;
    complain("sim: \"%s\" can't be written (%s), so processes that begin from now on have other numbers than without "
             "gdb.",
             last_number, strerror(errno));
}

static void return_to_numbers(void)
{
    if (debug.before)
        write_last_number(debug.before);
    debug.before = 0;
}

/* --- gdb */

/* It is refused by a signal to a process in the terminal's background, which this one is. */
static void take_terminal(int input)
{
    if (!isatty(input))
        return;
    signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(input, getpgrp());
    signal(SIGTTOU, SIG_DFL);
}

static void become_gdb(pid_t process)
{
    char directory[PLACE_PATH_MAX], script[PLACE_PATH_MAX + 32], number[16], why[512];
    snprintf(number, sizeof number, "%d", process);
    if (place_libraries(directory, why, sizeof why))
        *directory = '\0';
    snprintf(script, sizeof script, "%s/softverbs-gdb.py", directory);
    dup2(debug.input, STDIN_FILENO);
    setpgid(0, 0); /* so that Ctrl-C is for gdb alone */
    take_terminal(STDIN_FILENO);
    if (debug.environment)
        environ = debug.environment;
    execlp("gdb", "gdb", "-q", "-iex", "maint set worker-threads 0", "-ix", script, "-p", number, NULL);
    complain("sim: gdb can't be executed: %s.", strerror(errno));
    _exit(EXIT_SELF);
}

static void begin_gdb(pid_t process)
{
    leave_numbers();
    debug.gdb = fork();
    if (!debug.gdb)
        become_gdb(process);
    if (debug.gdb < 0) {
        complain("sim: fork(2): %s.", strerror(errno));
        debug.gdb = 0;
    }
}

bool debug_has(pid_t process)
{
    char path[32], line[128];
    int tracer = 0;
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "TracerPid: %d", &tracer) != 1)
        ;
    if (file)
        fclose(file);
    return debug.gdb && tracer == debug.gdb;
}

/* The launcher can't name the group that the shell made, which is of another namespace of processes. */
void debug_reaped(pid_t process)
{
    if (process != debug.gdb)
        return;
    debug.gdb = 0;
    setpgid(0, 0);
    take_terminal(debug.input);
}

bool debug_lives(void)
{
    int how;
    if (debug.gdb && waitpid(debug.gdb, &how, WNOHANG) == debug.gdb)
        debug_reaped(debug.gdb);
    return debug.gdb;
}

static void tell(struct sim_run *run, enum sim_debug state)
{
    atomic_store(&run->debug.state, state);
    syscall(SYS_futex, &run->debug.state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void attach(struct sim_run *run)
{
    if (!debug.before && !debug.gdb)
        begin_gdb(run->debug.process);
    if (!debug_lives() || debug_has(run->debug.process))
        tell(run, SIM_DEBUG_ATTACHED);
}

/* Attached, gdb begins more processes of its own until its user lets the process go on. */
void debug_serve(struct sim_run *run)
{
    uint32_t state = atomic_load(&run->debug.state);
    if (state == SIM_DEBUG_BEGUN)
        attach(run);
    if (state != SIM_DEBUG_ASKS)
        return;
    return_to_numbers();
    tell(run, SIM_DEBUGGED);
}

/* --- ends */

static void await_gdb(void)
{
    int how;
    if (debug_lives() && waitpid(debug.gdb, &how, 0) == debug.gdb)
        debug_reaped(debug.gdb);
}

void debug_show(const struct sim_run *run)
{
    if (!debug_lives())
        return;
    complain("sim: The run ends when gdb does.");
    if (debug_has(run->debug.process))
        kill(run->debug.process, SIGSTOP); /* its threads may have blocked all other signals */
    await_gdb();
}

void debug_await(const struct sim_run *run)
{
    if (atomic_load(&run->debug.state) == SIM_DEBUG_WANTED)
        complain("sim: gdb was not started: no %s %s has begun.", run->debug.process ? "process" : "program",
                 run->debug.name);
    await_gdb();
}

void debug_take_terminal(void)
{
    take_terminal(STDIN_FILENO);
}
