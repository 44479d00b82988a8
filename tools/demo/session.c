#include "demo/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text/text.h"
#include "config/settings.h"
#include "doctor/program.h"
#include "place.h"
#include "tree_sweep.h"

_Static_assert((int)PLACE_PATH_MAX == (int)PATH_MAX, "program_find writes this much");

enum { SECONDS = 30, NAP_NANOS = 5000000, SERVER_SECONDS = 10 };

static bool fails(struct session *session, const char *what, const char *name)
{
    return SAY_AND(false, session->why, sizeof session->why, "%s \"%.200s\": %s.", what, name, strerror(errno));
}

bool session_begin(struct session *session)
{
    char libraries[PLACE_PATH_MAX];
    const char *base = getenv("TMPDIR");
    *session = (struct session){0};
    snprintf(session->directory, PLACE_PATH_MAX, "%.*s/softverbs-demo-XXXXXX", PLACE_PATH_MAX - 32,
             base && *base == '/' ? base : "/tmp");
    if (place_libraries(libraries, session->why, sizeof session->why))
        return false;
    snprintf(session->own_pingpong, PLACE_PATH_MAX, "%.*s/softverbs-pingpong", PLACE_PATH_MAX - 32, libraries);
    if (access(session->own_pingpong, X_OK))
        return fails(session, "The program of the demonstration can't be started,", session->own_pingpong);
    session->installed = program_find("ibv_rc_pingpong", session->pingpong);
    if (!session->installed)
        strcpy(session->pingpong, session->own_pingpong);
    return (mkdtemp(session->directory) && !chdir(session->directory)) ||
           fails(session, "The files of the demonstration have no place,", session->directory);
}

void session_end(struct session *session)
{
    if (!chdir("/"))
        tree_remove(session->directory);
}

/* --- processes */

static _Noreturn void become(const struct session *session, const char *output, const char *const *words)
{
    int file = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv(setting_lines[SETTING_DIR].variable, session->directory, 1);
    if (file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0)
        place_execute((char *const *)words);
    dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Prints a program's name without its path, which is long: a reader finds it in $PATH, or takes another program. */
static void show(const char *const *words)
{
    printf("  $");
    for (unsigned i = 0; words[i]; i++)
        printf(" %s", *words[i] == '/' ? strrchr(words[i], '/') + 1 : words[i]);
    puts("");
    fflush(stdout);
}

static pid_t start(struct session *session, const char *name, const char *const *words)
{
    show(words);
    pid_t child = fork();
    if (!child)
        become(session, name, words);
    if (child < 0)
        fails(session, "There is no process for", words[0]);
    return child;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_NANOS}, NULL);
}

/* Waits for the process. Returns its exit status, or -1 with a sentence: it did not end in time, and was killed. */
static int finish(struct session *session, pid_t child, int seconds, const char *name)
{
    int status;
    for (long naps = seconds * (1000000000L / NAP_NANOS); naps > 0; naps--, nap())
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return SAY_AND(-1, session->why, sizeof session->why, "The %s did not end within %d seconds.", name, seconds);
}

int session_run(struct session *session, const char *name, const char *const *words)
{
    pid_t child = start(session, name, words);
    return child < 0 ? -1 : finish(session, child, SECONDS, "command");
}

/* --- a server and a client */

/* A port of TCP that no socket of this host uses now. */
static in_port_t free_port(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t length = sizeof name;
    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool known = tcp >= 0 && !bind(tcp, (struct sockaddr *)&name, sizeof name) &&
                 !getsockname(tcp, (struct sockaddr *)&name, &length);
    if (tcp >= 0)
        close(tcp);
    return known ? ntohs(name.sin_port) : 18515;
}

/* Whether a socket of this host listens there, by /proc/net: a trial connection would take the client's place. */
static bool listens(in_port_t port)
{
    static const char *const tables[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    enum { LISTENING = 0x0a };
    bool found = false;
    for (unsigned i = 0; i < 2; i++) {
        char line[512];
        FILE *table = fopen(tables[i], "re");
        while (table && fgets(line, sizeof line, table)) {
            unsigned local, state;
            if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) == 2)
                found |= local == port && state == LISTENING;
        }
        if (table)
            fclose(table);
    }
    return found;
}

static bool begins_to_listen(struct session *session, pid_t server, in_port_t port)
{
    siginfo_t ended = {0};
    for (long naps = SERVER_SECONDS * (1000000000L / NAP_NANOS); naps > 0; naps--, nap()) {
        if (listens(port))
            return true;
        if (!waitid(P_PID, (id_t)server, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid)
            break;
    }
    return SAY_AND(false, session->why, sizeof session->why, "The server %s.",
                   ended.si_pid ? "ended before it listened" : "does not listen");
}

static const char **append(const char **to, const char *const *words)
{
    for (; words && *words; words++)
        *to++ = *words;
    return to;
}

/* The words of one of the two commands. */
static void spell(const struct session_pair *pair, const char *port, bool is_client, const char *words[SESSION_WORDS])
{
    const char **at = append(words, (const char *const[]){"softverbs", "run", NULL});
    at = append(at, pair->options);
    at = append(at, is_client ? pair->client_options : NULL);
    at = append(at, (const char *const[]){"--", pair->program, "-p", port, NULL});
    at = append(at, pair->arguments);
    at = append(at, is_client ? pair->client_arguments : NULL);
    *append(at, (const char *const[]){is_client ? "127.0.0.1" : NULL, NULL}) = NULL;
}

bool session_pair(struct session *session, const struct session_pair *pair)
{
    const char *words[SESSION_WORDS];
    char port[8];
    in_port_t number = free_port();
    snprintf(port, sizeof port, "%u", number);
    spell(pair, port, false, words);
    pid_t server = start(session, "server", words), client = -1;
    if (server < 0)
        return false;
    if (begins_to_listen(session, server, number)) {
        spell(pair, port, true, words);
        client = start(session, "client", words);
    }
    int client_status = client < 0 ? -1 : finish(session, client, SECONDS, "client");
    if (client < 0)
        kill(server, SIGKILL);
    int server_status = finish(session, server, SERVER_SECONDS, "server");
    if (client < 0) /* `why` already names the cause: the server did not listen, or no client was started */
        return false;
    bool client_wrong = client_status >= 0 && client_status != pair->status;
    bool server_wrong = server_status >= 0 && server_status != pair->status;
    if (client_wrong || server_wrong)
        snprintf(session->why, sizeof session->why, "The %s ended with the status %d.",
                 client_wrong ? "client" : "server", client_wrong ? client_status : server_status);
    return client_status == pair->status && server_status == pair->status;
}
