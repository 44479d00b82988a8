/* A connection that stays idle until one of its ends ends.
 *
 *     client ADDRESS PORT          connects, prints "connected", and "disconnected" at that event; on SIGUSR1 it
 *                                  disconnects
 *     server ADDRESS PORT HOW      prints "listens", and "connected" for each client; on SIGUSR1 it ends
 *     stream|streams ADDRESS PORT  the same over rsockets: "closed" when the stream is at its end; streams serves
 *
 * HOW: _exit, return; exec: becomes another program; fork: with a child that lives on; close: closes all descriptors
 * and lives on; wait: prints "childless" if it has no child and has never got a SIGCHLD; limit: may start no process,
 * as of RLIMIT_NPROC; filter: a seccomp filter kills it if it starts a program. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"

enum { NOBODY = 65534, LIVES_ON = 4 /* seconds */ };

static volatile sig_atomic_t child_signals;
static struct rdma_cm_id *client_id;

static void check(bool right, const char *what)
{
    if (right)
        return;
    perror(what);
    _exit(1);
}

static void say(const char *word)
{
    puts(word);
    fflush(stdout);
}

static struct sockaddr_in address_of(char **arguments)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[3]))};
    check(inet_pton(AF_INET, arguments[2], &address.sin_addr) == 1, "inet_pton");
    return address;
}

/* --- ways to end */

static void note_child(int number)
{
    child_signals++;
}

static void fork_and_end(void)
{
    if (fork() == 0) {
        sleep(LIVES_ON); /* a child that outlives its parent */
        _exit(0);
    }
    raise(SIGKILL);
}

static void end(const char *how)
{
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "disconnect"))
        rdma_disconnect(client_id);
    if (!strcmp(how, "return"))
        exit(0);
    if (!strcmp(how, "exec"))
        execlp("sleep", "sleep", "4", (char *)NULL);
    if (!strcmp(how, "fork"))
        fork_and_end();
    if (!strcmp(how, "close"))
        syscall(SYS_close_range, 3, ~0u, 0);
    if (!strcmp(how, "wait"))
        say(wait(NULL) < 0 && errno == ECHILD && !child_signals ? "childless" : "a child");
}

static void *end_when_told(void *how)
{
    sigset_t told;
    int number;
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    sigwait(&told, &number);
    end(how);
    return NULL;
}

static void be_told(const char *how)
{
    sigset_t told;
    pthread_t thread;
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    sigprocmask(SIG_BLOCK, &told, NULL);
    signal(SIGCHLD, note_child);
    check(!pthread_create(&thread, NULL, end_when_told, (void *)how), "pthread_create");
}

/* --- restrictions */

static void forbid_processes(void)
{
    check(!setresuid(NOBODY, NOBODY, NOBODY), "setresuid");
    check(!setrlimit(RLIMIT_NPROC, &(struct rlimit){1, 1}), "setrlimit");
}

static void forbid_programs(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
    check(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), "seccomp");
}

static void restrict_self(const char *how)
{
    if (!strcmp(how, "limit"))
        forbid_processes();
    if (!strcmp(how, "filter"))
        forbid_programs();
}

/* --- connections */

static struct rdma_conn_param usual(void)
{
    return (struct rdma_conn_param){.retry_count = 7, .rnr_retry_count = 7};
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    check(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
}

static struct rdma_cm_id *take(struct rdma_event_channel *events, enum rdma_cm_event_type expected)
{
    struct rdma_cm_event *event;
    check(!rdma_get_cm_event(events, &event), "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    check(event->event == expected, rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    return id;
}

static void be_client(struct sockaddr_in *address)
{
    struct rdma_conn_param parameters = usual();
    be_told("disconnect");
    struct rdma_event_channel *events = rdma_create_event_channel();
    struct rdma_cm_id *id = NULL;
    check(events && !rdma_create_id(events, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)address, PATIENCE), "rdma_resolve_addr");
    take(events, RDMA_CM_EVENT_ADDR_RESOLVED);
    check(!rdma_resolve_route(id, PATIENCE), "rdma_resolve_route");
    take(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_qp(id);
    check(!rdma_connect(id, &parameters), "rdma_connect");
    take(events, RDMA_CM_EVENT_ESTABLISHED);
    client_id = id;
    say("connected");
    take(events, RDMA_CM_EVENT_DISCONNECTED);
    say("disconnected");
    rdma_disconnect(id);
    sleep(1); /* for what may arrive twice */
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(events);
}

static void serve_event(struct rdma_event_channel *events)
{
    struct rdma_conn_param parameters = usual();
    struct rdma_cm_event *event;
    check(!rdma_get_cm_event(events, &event), "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    enum rdma_cm_event_type kind = event->event;
    rdma_ack_cm_event(event);
    if (kind == RDMA_CM_EVENT_CONNECT_REQUEST) {
        make_qp(id);
        check(!rdma_accept(id, &parameters), "rdma_accept");
    } else if (kind == RDMA_CM_EVENT_ESTABLISHED)
        say("connected");
    else if (kind == RDMA_CM_EVENT_DISCONNECTED)
        rdma_disconnect(id);
}

static void be_server(struct sockaddr_in *address, char *how)
{
    be_told(how);
    struct rdma_event_channel *events = rdma_create_event_channel();
    struct rdma_cm_id *listener = NULL;
    check(events && !rdma_create_id(events, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_bind_addr(listener, (struct sockaddr *)address), "rdma_bind_addr");
    check(!rdma_listen(listener, 4), "rdma_listen");
    restrict_self(how);
    say("listens");
    for (;;)
        serve_event(events);
}

/* --- streams */

/* rrecv as well as rpoll see the end; only of a stream that has connected without blocking librdmacm looks for it. */
static void be_stream(struct sockaddr_in *address)
{
    char byte;
    int stream = rsocket(AF_INET, SOCK_STREAM, 0);
    struct pollfd end = {.fd = stream, .events = POLLOUT};
    rfcntl(stream, F_SETFL, O_NONBLOCK);
    check(rconnect(stream, (struct sockaddr *)address, sizeof *address) && errno == EINPROGRESS, "rconnect");
    check(rpoll(&end, 1, PATIENCE) == 1, "rpoll");
    say("connected");
    end.events = POLLIN;
    check(rpoll(&end, 1, PATIENCE) == 1 && rrecv(stream, &byte, 1, 0) <= 0, "rrecv");
    say("closed");
    rclose(stream);
}

static void serve_streams(struct sockaddr_in *address)
{
    int listener = rsocket(AF_INET, SOCK_STREAM, 0);
    check(!rbind(listener, (struct sockaddr *)address, sizeof *address) && !rlisten(listener, 4), "rlisten");
    say("listens");
    check(raccept(listener, NULL, NULL) >= 0, "raccept");
    say("connected");
    pause();
}

int main(int count, char **arguments)
{
    struct sockaddr_in address;
    if (count < 4)
        return 2;
    address = address_of(arguments);
    if (!strcmp(arguments[1], "client"))
        be_client(&address);
    else if (!strcmp(arguments[1], "server"))
        be_server(&address, count > 4 ? arguments[4] : "");
    else if (!strcmp(arguments[1], "stream"))
        be_stream(&address);
    else
        serve_streams(&address);
    return 0;
}
