/* A server that sleeps, two clients that ping it for as long as the test lasts (one polls, one sleeps), and others that
 * are killed, one after the other: at a random moment, or inside the wake-up that they were just about to send to the
 * server, before or after it (some are stopped there for a while first). No ping of the two may take longer than a
 * second. Usage: kills_at_doorbell ROUNDS [SEED [stops]]; with "stops" one of the processes is stopped for some
 * milliseconds now and then, which does not count. Neither does the time that the scheduler keeps them waiting for a
 * processor. Exit status 0 when all was right. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum {
    SURVIVORS = 2,
    CLIENTS = SURVIVORS + 1, /* at a time */
    DEPTH = 16,
    RECEIVES = 256,
    TIMEOUT = 14, /* 67 ms */
    LATEST = 4,   /* ms until a victim is killed from outside */
    HANGS = 30,   /* s without a ping of a survivor */
    PAUSE = 300,  /* us between a survivor's pings, at most */
};
enum { LONGEST_WAIT = 1000 }; /* ms, multiplied where others stop us, too, as storm.py does */

enum trap { NOWHERE, BEFORE_THE_LETTER, AFTER_THE_LETTER, STOPPED_BEFORE, STOPPED_AFTER, TRAPS };

/* One of the two, as the parent sees it. */
struct survivor {
    atomic_ulong pings;
    _Atomic double longest;
};

struct shared {
    pid_t server;
    struct survivor survivors[SURVIVORS];
    _Atomic double stopped; /* s, all in all */
    atomic_uint trapped[TRAPS];
};

static struct shared *shared;

static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

/* ------------------------------------------------------------------ the doorbell's trap */

static enum trap trap; /* of this process */
static unsigned letters_before_trap;

static void fall_in(enum trap killed, enum trap stopped)
{
    if (trap != killed && trap != stopped)
        return;
    atomic_fetch_add(&shared->trapped[trap], 1);
    if (trap == stopped)
        raise(SIGSTOP);
    raise(SIGKILL);
}

static bool is_doorbell(const struct msghdr *message)
{
    struct {
        uint32_t magic;
        uint16_t layout, kind;
    } head; /* of struct control_message in src/link/control.h */
    if (message->msg_iovlen != 1 || message->msg_iov->iov_len < sizeof head)
        return false;
    memcpy(&head, message->msg_iov->iov_base, sizeof head);
    return head.magic == 0x4d767473 && head.kind == 1;
}

/* The library's calls reach this function first. */
__attribute__((visibility("default"))) ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    bool hit = trap && is_doorbell(message) && !letters_before_trap--;
    if (hit)
        fall_in(BEFORE_THE_LETTER, STOPPED_BEFORE);
    ssize_t length = syscall(SYS_sendmsg, socket, message, flags);
    if (hit)
        fall_in(AFTER_THE_LETTER, STOPPED_AFTER);
    return length;
}

/* ------------------------------------------------------------------ both */

static struct ibv_qp *create_qp(struct endpoint *endpoint, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr attr = {.send_cq = endpoint->cq,
                                    .recv_cq = endpoint->cq,
                                    .srq = srq,
                                    .cap = {DEPTH, DEPTH, 1, 1, ENDPOINT_INLINE},
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *qp = ibv_create_qp(endpoint->pd, &attr);
    if (!qp || ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        die("no queue pair");
    return qp;
}

static void say(struct ibv_qp *qp)
{
    uint64_t word = 0;
    struct ibv_sge sge = {(uintptr_t)&word, sizeof word, 0};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE}, *bad;
    ibv_post_send(qp, &wr, &bad); /* to a process that was killed it may fail */
}

/* ------------------------------------------------------------------ the server */

/* An order of the parent: connect to a client, or forget one. The answer is our address. */
struct order {
    bool forget;
    struct address client; /* of it */
};

struct server {
    struct endpoint endpoint;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    struct {
        struct ibv_qp *qp;
        uint32_t client;
    } clients[CLIENTS];
    int orders;
};

static void post_receives(struct server *server, unsigned count)
{
    struct ibv_sge sge = {(uintptr_t)server->mr->addr, 64, server->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    while (count--)
        if (ibv_post_srq_recv(server->srq, &wr, &bad))
            die("no receive");
}

static unsigned place_of(struct server *server, const struct ibv_qp *qp, uint32_t client)
{
    unsigned i = 0;
    while (i < CLIENTS && !(server->clients[i].qp == qp && server->clients[i].client == client))
        i++;
    if (i == CLIENTS)
        die("there is no such client");
    return i;
}

static void serve_order(struct server *server)
{
    struct order order;
    if (read(server->orders, &order, sizeof order) != sizeof order)
        exit(0);
    if (order.forget) {
        unsigned i = 0;
        while (i < CLIENTS && server->clients[i].client != order.client.qp_num)
            i++;
        if (i == CLIENTS || ibv_destroy_qp(server->clients[i].qp))
            die("no queue pair to destroy");
        server->clients[i].qp = NULL;
        server->clients[i].client = 0;
        return;
    }
    unsigned i = place_of(server, NULL, 0);
    server->clients[i].qp = create_qp(&server->endpoint, server->srq);
    server->clients[i].client = order.client.qp_num;
    endpoint_connect(server->clients[i].qp, &order.client, TIMEOUT);
    struct address mine = endpoint_address(&server->endpoint, server->clients[i].qp, server->mr);
    if (write(server->orders, &mine, sizeof mine) != sizeof mine)
        exit(0);
}

static void answer(struct server *server, const struct ibv_wc *wc)
{
    if (wc->opcode != IBV_WC_RECV || wc->status != IBV_WC_SUCCESS)
        return;
    post_receives(server, 1);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (server->clients[i].qp && server->clients[i].qp->qp_num == wc->qp_num)
            say(server->clients[i].qp);
}

static void serve_events(struct server *server)
{
    struct ibv_wc wc[32];
    struct ibv_cq *cq;
    void *context;
    int count;
    if (ibv_get_cq_event(server->endpoint.channel, &cq, &context) || ibv_req_notify_cq(cq, 0))
        die("no event");
    ibv_ack_cq_events(cq, 1);
    while ((count = ibv_poll_cq(cq, 32, wc)) > 0)
        for (int i = 0; i < count; i++)
            answer(server, &wc[i]);
}

static void serve(int orders)
{
    static char memory[4096];
    struct server server = {.orders = orders};
    struct ibv_srq_init_attr attr = {.attr = {RECEIVES, 1, 0}};
    endpoint_open(&server.endpoint, 4096);
    server.mr = endpoint_register(&server.endpoint, memory, sizeof memory);
    server.srq = ibv_create_srq(server.endpoint.pd, &attr);
    if (!server.srq || ibv_req_notify_cq(server.endpoint.cq, 0))
        die("no shared receive queue");
    post_receives(&server, RECEIVES - 1);
    for (;;) {
        struct pollfd wait[] = {{orders, POLLIN, 0}, {server.endpoint.channel->fd, POLLIN, 0}};
        if (poll(wait, 2, -1) < 0 && errno != EINTR)
            die("poll fails");
        if (wait[0].revents)
            serve_order(&server);
        if (wait[1].revents)
            serve_events(&server);
    }
}

/* ------------------------------------------------------------------ clients */

struct client {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
};

static void post_receive(struct client *client)
{
    struct ibv_sge sge = {(uintptr_t)client->mr->addr, 64, client->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(client->qp, &wr, &bad))
        die("no receive");
}

/* The parent is asked for the server's address. */
static void connect_client(struct client *client, int parent)
{
    static char memory[4096];
    struct address mine, server;
    endpoint_open(&client->endpoint, 4 * DEPTH);
    client->mr = endpoint_register(&client->endpoint, memory, sizeof memory);
    client->qp = create_qp(&client->endpoint, NULL);
    for (unsigned i = 0; i < DEPTH / 2; i++)
        post_receive(client);
    mine = endpoint_address(&client->endpoint, client->qp, client->mr);
    if (write(parent, &mine, sizeof mine) != sizeof mine || read(parent, &server, sizeof server) != sizeof server)
        exit(1);
    endpoint_connect(client->qp, &server, TIMEOUT);
}

static bool take(struct client *client, bool *sent, bool *answered)
{
    struct ibv_wc wc;
    if (ibv_poll_cq(client->endpoint.cq, 1, &wc) <= 0)
        return false;
    if (wc.status != IBV_WC_SUCCESS)
        die("a client's message ends in %s, reason %u", ibv_wc_status_str(wc.status), wc.vendor_err);
    *(wc.opcode == IBV_WC_RECV ? answered : sent) = true;
    return true;
}

static void sleep_on_channel(struct client *client)
{
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(client->endpoint.channel, &cq, &context))
        die("no event");
    ibv_ack_cq_events(cq, 1);
}

/* Until the message was sent and answered. */
static void ping(struct client *client, bool sleeps)
{
    bool sent = false, answered = false;
    say(client->qp);
    while (!sent || !answered) {
        if (take(client, &sent, &answered) || !sleeps)
            continue;
        if (ibv_req_notify_cq(client->endpoint.cq, 0))
            die("no notification");
        if (!take(client, &sent, &answered))
            sleep_on_channel(client);
    }
    post_receive(client);
}

/* How long the threads of a process have waited for a processor until now, in all. */
static double waited_for_processor(pid_t process)
{
    char path[64], name[sizeof path + sizeof(struct dirent)];
    unsigned long long running, waiting = 0, sum = 0;
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *threads = opendir(path);
    while (threads && (entry = readdir(threads))) {
        snprintf(name, sizeof name, "%s/%s/schedstat", path, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(name, "re");
        if (file && fscanf(file, "%llu %llu", &running, &waiting) == 2)
            sum += waiting;
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return (double)sum / 1e9;
}

/* The part of a ping's time that does not count. */
static double excused(void)
{
    return shared->stopped + waited_for_processor(getpid()) + waited_for_processor(shared->server);
}

static void survive(int parent, unsigned number, uint64_t random)
{
    struct client client;
    struct survivor *self = &shared->survivors[number];
    connect_client(&client, parent);
    for (;;) {
        double before = excused(), begun = now_seconds();
        ping(&client, number % 2);
        double took = now_seconds() - begun;
        took = took < patience(LONGEST_WAIT) / 1e4 ? took : took - (excused() - before);
        if (took > self->longest)
            self->longest = took;
        atomic_fetch_add(&self->pings, 1);
        usleep((useconds_t)(next_random(&random) % PAUSE));
    }
}

static void be_victim(int parent, uint64_t random)
{
    struct client client;
    connect_client(&client, parent);
    letters_before_trap = (unsigned)(next_random(&random) % 4);
    trap = (enum trap)(next_random(&random) % TRAPS);
    for (;;) {
        ping(&client, next_random(&random) % 2);
        usleep((useconds_t)(next_random(&random) % PAUSE));
    }
}

/* ------------------------------------------------------------------ the parent */

struct play {
    int orders;
    pid_t server, survivors[SURVIVORS];
    uint64_t random;
    bool stops;
};

static pid_t start(void)
{
    pid_t process = fork();
    if (process < 0)
        die("no process");
    if (!process)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return process;
}

/* Introduces a client to the server. */
static uint32_t introduce(struct play *play, int client)
{
    struct order order = {.forget = false};
    struct address server;
    if (read(client, &order.client, sizeof order.client) != sizeof order.client ||
        write(play->orders, &order, sizeof order) != sizeof order ||
        read(play->orders, &server, sizeof server) != sizeof server ||
        write(client, &server, sizeof server) != sizeof server)
        die("a client can't be introduced");
    return order.client.qp_num;
}

/* Survivor `number`, or a victim. */
static pid_t start_client(struct play *play, unsigned number, uint32_t *qp_num)
{
    int ends[2];
    uint64_t random = next_random(&play->random);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
        die("no sockets");
    pid_t process = start();
    if (!process) {
        close(ends[0]);
        if (number < SURVIVORS)
            survive(ends[1], number, random);
        be_victim(ends[1], random);
    }
    close(ends[1]);
    *qp_num = introduce(play, ends[0]);
    close(ends[0]);
    return process;
}

/* Returns true if each survivor has made a ping since. */
static bool all_go_on(const unsigned long *since)
{
    for (unsigned i = 0; i < SURVIVORS; i++)
        if (shared->survivors[i].pings == since[i])
            return false;
    return true;
}

static void check_survivors(unsigned round)
{
    unsigned long since[SURVIVORS];
    double begun = now_seconds();
    for (unsigned i = 0; i < SURVIVORS; i++)
        since[i] = shared->survivors[i].pings;
    while (!all_go_on(since) && now_seconds() - begun < HANGS)
        usleep(200);
    for (unsigned i = 0; i < SURVIVORS; i++)
        if (shared->survivors[i].pings == since[i] || shared->survivors[i].longest > patience(LONGEST_WAIT) / 1e3) {
            printf("after %u kills the client that %s waits for %.2f s; it hangs: %s\n", round, i ? "sleeps" : "polls",
                   shared->survivors[i].longest, shared->survivors[i].pings == since[i] ? "yes" : "no");
            exit(1);
        }
}

static void stop_for_a_while(struct play *play)
{
    unsigned which = (unsigned)(next_random(&play->random) % (SURVIVORS + 1));
    pid_t process = which == SURVIVORS ? play->server : play->survivors[which];
    double begun = now_seconds();
    kill(process, SIGSTOP);
    usleep((useconds_t)(next_random(&play->random) % 20000));
    kill(process, SIGCONT);
    shared->stopped = shared->stopped + now_seconds() - begun;
}

/* Kills it when its time has come, if it has not killed itself; when it stopped itself, after a while. */
static void kill_victim(struct play *play, pid_t victim)
{
    int status;
    double end = now_seconds() + (double)(next_random(&play->random) % 1000) / 1e6 * LATEST;
    while (now_seconds() < end && !waitpid(victim, &status, WNOHANG | WUNTRACED))
        usleep(100);
    if (play->stops)
        stop_for_a_while(play);
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
}

static void play_round(struct play *play)
{
    struct order order = {.forget = true};
    pid_t victim = start_client(play, SURVIVORS, &order.client.qp_num);
    kill_victim(play, victim);
    if (write(play->orders, &order, sizeof order) != sizeof order)
        die("the server has ended");
}

static void begin(struct play *play)
{
    int ends[2];
    uint32_t qp_num;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
        die("no shared memory");
    play->orders = ends[0];
    play->server = start();
    if (!play->server) {
        close(ends[0]);
        serve(ends[1]);
    }
    shared->server = play->server;
    close(ends[1]);
    for (unsigned i = 0; i < SURVIVORS; i++)
        play->survivors[i] = start_client(play, i, &qp_num);
}

/* The next process that joins sweeps what the dead have left. */
static void end(struct play *play)
{
    struct endpoint endpoint;
    kill(play->server, SIGKILL);
    for (unsigned i = 0; i < SURVIVORS; i++)
        kill(play->survivors[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    endpoint_open(&endpoint, 1);
    endpoint_close(&endpoint);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    struct play play = {.random = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)getpid(), .stops = argc > 3};
    uint64_t seed = play.random;
    double begun = now_seconds();
    setlinebuf(stdout);
    signal(SIGPIPE, SIG_IGN);
    begin(&play);
    for (unsigned i = 0; i < rounds; i++) {
        play_round(&play);
        check_survivors(i + 1);
    }
    printf("%u kills in %.0f s, at the doorbell before %u, after %u, stopped there first %u and %u; pings %lu and %lu, "
           "the "
           "longest %.3f s and %.3f s; seed %llu\n",
           rounds, now_seconds() - begun, shared->trapped[BEFORE_THE_LETTER], shared->trapped[AFTER_THE_LETTER],
           shared->trapped[STOPPED_BEFORE], shared->trapped[STOPPED_AFTER], shared->survivors[0].pings,
           shared->survivors[1].pings, shared->survivors[0].longest, shared->survivors[1].longest,
           (unsigned long long)seed);
    end(&play);
    return 0;
}
