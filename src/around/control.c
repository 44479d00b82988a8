#include "around/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "around/library/front.h"
#include "around/raised.h"
#include "around/reach.h"
#include "base/text/text.h"
#include "base/user.h"
#include "ring/trace_control.h"
#include "script/holds.h"
#include "script/live/requests.h"
#include "script/rules.h"
#include "script/script.h"

#undef ibv_get_device_list /* a macro of the header */

static struct {
    int socket;         /* -1: there is none */
    struct stat status; /* the program may have closed the socket, and the number may be another file's */
} listening = {.socket = -1};
static _Atomic pid_t begun; /* the process that has the thread */

/* -- answers */

static void add_rules(const char *text, FILE *out)
{
    char why[512];
    struct script *more = requests_read(text, out);
    if (!more)
        return;
    script_choose(more, program_invocation_short_name);
    unsigned place = rules_next_place();
    bool holds = script_holds_around(more, why, sizeof why) && around_may_begin(more, why, sizeof why);
    int error = holds ? rules_add(more) : 0;
    if (!holds)
        requests_refuse(out, why);
    if (holds && !error)
        raised_meet_open(place);
    if (holds)
        requests_answer(out, error);
    free(more);
}

static void answer_inject(const char *request, FILE *out)
{
    static const char rules[] = "rules ";
    if (!strncmp(request, rules, sizeof rules - 1)) {
        add_rules(request + sizeof rules - 1, out);
        return;
    }
    if (!strcmp(request, "clear"))
        rules_clear();
    requests_list(out);
}

static void answer_request(const char *request, FILE *out)
{
    if (!strncmp(request, REQUESTS_INJECT, sizeof REQUESTS_INJECT - 1))
        answer_inject(request + sizeof REQUESTS_INJECT - 1, out);
    else if (!strncmp(request, TRACE_REQUEST, sizeof TRACE_REQUEST - 1))
        trace_answer(request + sizeof TRACE_REQUEST - 1, out);
    else
        requests_refuse(out, "a process of \"softverbs around\" knows no such request");
}

/* -- the socket */

static bool is_of_user(int peer)
{
    struct ucred owner;
    socklen_t size = sizeof owner;
    return !getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &owner, &size) && user_owns_process(owner.uid, owner.pid);
}

/* A peer that asks nothing, or does not read, keeps others waiting for that time at most. */
static void set_patience(int peer)
{
    const struct timeval patience = {.tv_sec = 1};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static void send_all(int peer, const char *text, size_t size)
{
    for (ssize_t sent; size; size -= (size_t)sent, text += sent) {
        sent = send(peer, text, size < REQUESTS_PART ? size : REQUESTS_PART, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
    }
}

/* A peer that has given up was told so: what it asked must not come later. */
static bool has_left(int peer)
{
    struct pollfd look = {.fd = peer, .events = POLLRDHUP};
    return poll(&look, 1, 0);
}

static void serve(int peer)
{
    static char request[REQUESTS_MOST + 1];
    char *text = NULL;
    size_t size = 0;
    set_patience(peer);
    ssize_t length = is_of_user(peer) ? recv(peer, request, sizeof request - 1, 0) : -1;
    FILE *out = length > 0 && !has_left(peer) ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    request[length] = 0;
    answer_request(request, out);
    fclose(out);
    send_all(peer, text, size);
    free(text);
}

static bool is_there(void)
{
    struct stat status;
    return !fstat(listening.socket, &status) && status.st_dev == listening.status.st_dev &&
           status.st_ino == listening.status.st_ino;
}

/* True: this thread and that of library/front.h are certainly the only ones that have not ended. A process whose
 * threads have all ended ends (pthread_exit(3)). */
static bool is_alone(void)
{
    char path[64], stat[512];
    unsigned others = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", task->d_name);
        pid_t number = atoi(task->d_name);
        bool other = *task->d_name != '.' && number != (pid_t)syscall(SYS_gettid) && number != front_thread();
        const char *name_end = other && text_read_at(AT_FDCWD, path, stat, sizeof stat) ? strrchr(stat, ')') : NULL;
        bool ended = name_end && (!strncmp(name_end, ") Z", 3) || !strncmp(name_end, ") X", 3));
        others += other && !ended; /* also one that can't be read, as where no descriptor is left */
    }
    if (tasks)
        closedir(tasks);
    return tasks && !others;
}

/* False: the socket can't be used any more. */
static bool serve_one(void)
{
    int peer = accept4(listening.socket, NULL, NULL, SOCK_CLOEXEC);
    if (peer >= 0) {
        serve(peer);
        close(peer);
        return true;
    }
    bool lacks = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (lacks)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    return lacks || errno == EINTR || errno == EAGAIN || errno == ECONNABORTED;
}

static void *run(void *unused)
{
    enum { LOOK_MILLISECONDS = 10000 };
    bool good = true;
    prctl(PR_SET_NAME, "softverbs-ctl");
    while (good && is_there()) {
        struct pollfd wait = {.fd = listening.socket, .events = POLLIN};
        int ready = poll(&wait, 1, LOOK_MILLISECONDS);
        if (!ready && is_alone())
            exit(0);
        good = ready <= 0 || serve_one();
    }
    if (is_there())
        close(listening.socket);
    atomic_store(&begun, 0); /* the next look for devices begins anew */
    return unused;
}

/* A number that a program which counts on the lowest ones does not miss. */
static int moved_up(int made)
{
    enum { HIGH = 200 };
    int high = fcntl(made, F_DUPFD_CLOEXEC, HIGH);
    if (high >= 0)
        close(made);
    return high >= 0 ? high : made;
}

/* -1: there is no socket. */
static int make_socket(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, REQUESTS_SOCKET, (long)getpid());
    int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (made >= 0 && !bind(made, (struct sockaddr *)&name, size) && !listen(made, 4) && !fstat(made, &listening.status))
        return moved_up(made);
    if (made >= 0)
        close(made);
    return -1;
}

/* No signal of the program is for the thread. */
static bool begin_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool running = !pthread_create(&thread, NULL, run, NULL) && !pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return running;
}

static void begin_once(void)
{
    int before = errno;
    pid_t own = getpid(), last = atomic_load(&begun);
    if (last != own && atomic_compare_exchange_strong(&begun, &last, own)) {
        listening.socket = make_socket();
        if (listening.socket >= 0 && !begin_thread())
            close(listening.socket);
    }
    errno = before;
}

void control_forked(void)
{
    if (atomic_load(&begun) && listening.socket >= 0 && is_there())
        close(listening.socket);
    listening.socket = -1;
}

/* -- its beginning */

static struct ibv_device **(*get_device_list)(int *);

static struct ibv_device **list_devices(int *count)
{
    begin_once();
    return get_device_list(count);
}

void control_begin(struct calls *calls)
{
    get_device_list = calls->ibv_get_device_list;
    calls->ibv_get_device_list = list_devices;
}
