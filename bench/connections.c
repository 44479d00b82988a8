/* How fast two processes make and end connections with each other, and what one of them costs.
 * Usage: connections qp | id | tcp COUNT [TIMES [ADDRESS]]. In each of TIMES runs (1), COUNT connections are made, all
 * are open at once, and all are ended. `qp`: each has a queue pair; `id`: an identifier alone, as of a program that has
 * its queue pairs made elsewhere; `tcp`: connect and accept. ADDRESS is an address of this host (127.0.0.1, which
 * kernels refuse for RDMA). Prints the median run's numbers: connections made and ended each second, connections made
 * each second, KiB of resident memory of an open connection (both processes together), and descriptors that the last
 * run left open in either process. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { BACKLOG = 512, IN_FLIGHT = 256, RUNS_MAX = 1000, ROUTE_MS = 2000 };

struct usage {
    long kibibytes, descriptors;
};

static unsigned connections;
static int answers[2]; /* a pipe, to the connecting process */

static void check(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "connections: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct usage usage_now(void)
{
    long pages = 0, ignored, descriptors = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    check(file && fscanf(file, "%ld %ld", &ignored, &pages) == 2, "/proc/self/statm");
    fclose(file);
    DIR *directory = opendir("/proc/self/fd");
    check(directory, "/proc/self/fd");
    while (readdir(directory))
        descriptors++;
    closedir(directory);
    return (struct usage){pages * (sysconf(_SC_PAGESIZE) / 1024), descriptors};
}

static void tell(int to)
{
    struct usage usage = usage_now();
    check(write(to, &usage, sizeof usage) == sizeof usage, "write");
}

static struct usage hear(int from)
{
    struct usage usage;
    check(read(from, &usage, sizeof usage) == sizeof usage, "the other process has ended");
    return usage;
}

/* --- librdmacm */

struct end {
    struct rdma_event_channel *channel;
    struct ibv_pd *pd; /* NULL: no queue pairs */
    struct ibv_cq *cq;
    struct rdma_cm_id **ids;
};

static struct sockaddr_in server_address = {.sin_family = AF_INET};

static struct end end_open(bool with_qps)
{
    struct end end = {.channel = rdma_create_event_channel(), .ids = calloc(connections, sizeof(struct rdma_cm_id *))};
    struct ibv_context **devices = rdma_get_devices(NULL);
    check(end.channel && end.ids && devices && *devices, "rdma_create_event_channel");
    if (with_qps) {
        end.pd = ibv_alloc_pd(*devices);
        end.cq = ibv_create_cq(*devices, 16, NULL, NULL, 0);
        check(end.pd && end.cq, "ibv_create_cq");
    }
    return end;
}

static void make_qp(struct end *end, struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    if (end->pd)
        check(!rdma_create_qp(id, end->pd, &attr), "rdma_create_qp");
}

/* An end without queue pairs gives the number of one made elsewhere: a different number each time. */
static struct rdma_conn_param parameters(const struct end *end)
{
    static uint32_t number = 1;
    return (struct rdma_conn_param){
        .qp_num = end->pd ? 0 : number++ & 0xffffff, .retry_count = 7, .rnr_retry_count = 7};
}

static void id_free(struct end *end, struct rdma_cm_id *id)
{
    if (end->pd)
        rdma_destroy_qp(id);
    check(!rdma_destroy_id(id), "rdma_destroy_id");
}

static struct rdma_cm_id *next_event(struct end *end, enum rdma_cm_event_type *kind)
{
    struct rdma_cm_event *event;
    check(!rdma_get_cm_event(end->channel, &event), "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    *kind = event->event;
    rdma_ack_cm_event(event);
    return id;
}

static void accept_one(struct end *end, struct rdma_cm_id *id)
{
    struct rdma_conn_param param = parameters(end);
    make_qp(end, id);
    check(!rdma_accept(id, &param), "rdma_accept");
}

static struct rdma_cm_id *listen_anywhere(struct end *end)
{
    struct rdma_cm_id *listener;
    struct sockaddr_in any = {.sin_family = AF_INET};
    check(!rdma_create_id(end->channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
    check(!rdma_listen(listener, BACKLOG), "rdma_listen");
    return listener;
}

static void rdma_serve_run(struct end *end)
{
    unsigned established = 0, ended = 0;
    while (ended < connections) {
        enum rdma_cm_event_type kind;
        struct rdma_cm_id *id = next_event(end, &kind);
        if (kind == RDMA_CM_EVENT_CONNECT_REQUEST)
            accept_one(end, id);
        else if (kind == RDMA_CM_EVENT_ESTABLISHED && ++established == connections)
            tell(answers[1]);
        else if (kind == RDMA_CM_EVENT_DISCONNECTED) {
            rdma_disconnect(id);
            id_free(end, id);
            ended++;
        }
    }
    tell(answers[1]);
}

static void rdma_serve(bool with_qps)
{
    struct end end = end_open(with_qps);
    struct rdma_cm_id *listener = listen_anywhere(&end);
    uint16_t port = rdma_get_src_port(listener);
    check(write(answers[1], &port, sizeof port) == sizeof port, "write");
    tell(answers[1]);
    for (;;)
        rdma_serve_run(&end);
}

static void begin_one(struct end *end, unsigned number)
{
    check(!rdma_create_id(end->channel, &end->ids[number], NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_resolve_addr(end->ids[number], NULL, (struct sockaddr *)&server_address, ROUTE_MS),
          "rdma_resolve_addr");
}

static void connect_one(struct end *end, struct rdma_cm_id *id)
{
    struct rdma_conn_param param = parameters(end);
    make_qp(end, id);
    check(!rdma_connect(id, &param), "rdma_connect");
}

static void rdma_make_all(struct end *end)
{
    unsigned begun = 0, established = 0;
    while (established < connections) {
        while (begun < connections && begun - established < IN_FLIGHT)
            begin_one(end, begun++);
        enum rdma_cm_event_type kind;
        struct rdma_cm_id *id = next_event(end, &kind);
        if (kind == RDMA_CM_EVENT_ADDR_RESOLVED)
            check(!rdma_resolve_route(id, ROUTE_MS), "rdma_resolve_route");
        else if (kind == RDMA_CM_EVENT_ROUTE_RESOLVED)
            connect_one(end, id);
        else if (kind == RDMA_CM_EVENT_CONNECT_RESPONSE && !rdma_establish(id))
            established++;
        else if (kind == RDMA_CM_EVENT_ESTABLISHED)
            established++;
        else
            check(false, rdma_event_str(kind));
    }
}

static void rdma_end_all(struct end *end)
{
    unsigned ended = 0;
    for (unsigned i = 0; i < connections; i++)
        check(!rdma_disconnect(end->ids[i]), "rdma_disconnect");
    while (ended < connections) {
        enum rdma_cm_event_type kind;
        struct rdma_cm_id *id = next_event(end, &kind);
        if (kind != RDMA_CM_EVENT_DISCONNECTED)
            continue;
        id_free(end, id);
        ended++;
    }
}

/* --- TCP */

static void tcp_serve(void)
{
    socklen_t length = sizeof server_address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), *sockets = calloc(connections, sizeof *sockets);
    check(sockets && !listen(listener, BACKLOG), "listen");
    getsockname(listener, (struct sockaddr *)&server_address, &length);
    check(write(answers[1], &server_address.sin_port, 2) == 2, "write");
    tell(answers[1]);
    for (;;) {
        char byte;
        for (unsigned i = 0; i < connections; i++)
            check((sockets[i] = accept(listener, NULL, NULL)) >= 0, "accept");
        tell(answers[1]);
        for (unsigned i = 0; i < connections; i++) {
            check(read(sockets[i], &byte, 1) == 0, "read");
            close(sockets[i]);
        }
        tell(answers[1]);
    }
}

static void tcp_make_all(int *sockets)
{
    for (unsigned i = 0; i < connections; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
        check(!connect(sockets[i], (struct sockaddr *)&server_address, sizeof server_address), "connect");
    }
}

static void tcp_end_all(int *sockets)
{
    for (unsigned i = 0; i < connections; i++)
        close(sockets[i]);
}

/* --- the runs */

struct run {
    double made, ended; /* seconds */
};

static int by_length(const void *one, const void *other)
{
    double difference = ((const struct run *)one)->ended - ((const struct run *)other)->ended;
    return (difference > 0) - (difference < 0);
}

struct sample {
    long kibibytes, descriptors; /* of both processes */
};

static struct sample together(struct usage other)
{
    struct usage own = usage_now();
    return (struct sample){own.kibibytes + other.kibibytes, own.descriptors + other.descriptors};
}

static void connect_runs(struct end *end, int *sockets, unsigned times)
{
    static struct run runs[RUNS_MAX];
    struct sample before = together(hear(answers[0])), standing = before, first = before, last = before;
    for (unsigned i = 0; i < times; i++) {
        double start = measure_seconds();
        end ? rdma_make_all(end) : tcp_make_all(sockets);
        struct usage other = hear(answers[0]);
        runs[i].made = measure_seconds() - start;
        if (!i)
            standing = together(other);
        start = measure_seconds();
        end ? rdma_end_all(end) : tcp_end_all(sockets);
        last = together(hear(answers[0]));
        runs[i].ended = runs[i].made + measure_seconds() - start;
        first = i ? first : last;
    }
    qsort(runs, times, sizeof *runs, by_length);
    printf("%.0f %.0f %.2f %ld\n", connections / runs[times / 2].ended, connections / runs[times / 2].made,
           (double)(standing.kibibytes - before.kibibytes) / connections, last.descriptors - first.descriptors);
    fprintf(stderr, "resident before: %ld KiB, after the first run: %ld KiB, after the last: %ld KiB\n",
            before.kibibytes, first.kibibytes, last.kibibytes);
}

static void raise_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Forks the server before anything of librdmacm is used: a child could not use it. */
static pid_t start_server(const char *what)
{
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!strcmp(what, "tcp"))
        tcp_serve();
    else
        rdma_serve(!strcmp(what, "qp"));
    return 0;
}

int main(int argc, char **argv)
{
    unsigned times = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    connections = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    if (!connections || !times || times > RUNS_MAX) {
        fputs("usage: connections qp | id | tcp COUNT [TIMES [ADDRESS]]\n", stderr);
        return 2;
    }
    raise_limit();
    check(!pipe(answers), "pipe");
    pid_t server = start_server(argv[1]);
    close(answers[1]);
    server_address.sin_addr.s_addr = inet_addr(argc > 4 ? argv[4] : "127.0.0.1");
    check(read(answers[0], &server_address.sin_port, 2) == 2, "the server has ended");
    if (!strcmp(argv[1], "tcp"))
        connect_runs(NULL, calloc(connections, sizeof(int)), times);
    else {
        struct end end = end_open(!strcmp(argv[1], "qp"));
        connect_runs(&end, NULL, times);
    }
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}
