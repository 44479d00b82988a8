/* A connection of librdmacm between two processes that fails or ends: connected CAUSE [USER USER], where client and
 * server become these users. It prints the numbers of the client's process and the server's, and the port, when that
 * has happened, and ends with its input. The text of `softverbs why --id` for each cause is in
 * connection_story_test.py. "swapped-address" is one process, which prints nothing. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 40, RESOLVES = 2000 };

/* The server's action upon the request, and the side that destroys the objects. */
struct cause {
    const char *name;
    enum { ACCEPTS, REJECTS, DESTROYS, FETCHES, WAITS, DIES_ASKED, STOPS, LISTENS_NOT, ELSEWHERE } server;
    enum { LEAVES, CLIENT_ENDS, SERVER_ENDS, SERVER_DIES } end;
    bool datagrams, full; /* a datagram service; a first client has filled the backlog of one */
    bool answered;        /* an event ends it */
    bool unconnected;     /* the client does not ask for the connection */
    bool swapped;         /* the client has left out htons */
};

static const struct cause causes[] = {
    {.name = "rejected", .server = REJECTS, .answered = true},
    {.name = "destroyed", .server = DESTROYS, .answered = true},
    {.name = "nobody", .server = LISTENS_NOT, .answered = true},
    {.name = "other-port", .server = ELSEWHERE, .answered = true},
    {.name = "swapped", .server = ELSEWHERE, .answered = true, .swapped = true},
    {.name = "died", .server = DIES_ASKED, .answered = true},
    {.name = "not-accepted", .server = FETCHES},
    {.name = "not-fetched", .server = WAITS},
    {.name = "backlog", .server = WAITS, .full = true},
    {.name = "stopped", .server = STOPS},
    {.name = "lost", .server = WAITS, .answered = true},
    {.name = "datagram-rejected", .server = REJECTS, .datagrams = true, .answered = true},
    {.name = "not-connected", .server = WAITS, .unconnected = true},
    {.name = "connected", .server = ACCEPTS, .answered = true},
    {.name = "ended", .server = ACCEPTS, .end = CLIENT_ENDS, .answered = true},
    {.name = "ended-there", .server = ACCEPTS, .end = SERVER_ENDS, .answered = true},
    {.name = "killed", .server = ACCEPTS, .end = SERVER_DIES, .answered = true},
};

/* The memory that both processes share. */
static struct meeting {
    atomic_int port; /* -1: there is no listener */
    atomic_bool asked, over;
} * meeting;

static const struct cause *cause;
static struct rdma_event_channel *channel;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static struct rdma_cm_id *make_id(void)
{
    struct rdma_cm_id *id;
    if (rdma_create_id(channel, &id, NULL, cause->datagrams ? RDMA_PS_UDP : RDMA_PS_TCP))
        fail("connected: rdma_create_id");
    return id;
}

/* The next event, which must be the wanted one; -1: any. Acknowledged. */
static struct rdma_cm_id *get_event(int wanted)
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(channel, &event))
        fail("connected: rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    if (wanted >= 0 && (int)event->event != wanted)
        fail(rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    return id;
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.qp_type = cause->datagrams ? IBV_QPT_UD : IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    init.send_cq = init.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    if (!init.send_cq || rdma_create_qp(id, ibv_alloc_pd(id->verbs), &init))
        fail("connected: rdma_create_qp");
}

/* -- the client */

static struct rdma_cm_id *request(void)
{
    struct rdma_cm_id *id = make_id();
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_conn_param parameters = {.retry_count = 1, .rnr_retry_count = 1};
    while (!atomic_load(&meeting->port))
        usleep(1000);
    to.sin_port = htons(atomic_load(&meeting->port) > 0 ? (uint16_t)atomic_load(&meeting->port) : 7);
    if (cause->server == ELSEWHERE)
        to.sin_port = cause->swapped ? htons(to.sin_port) : htons(7);
    if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, RESOLVES))
        fail("connected: rdma_resolve_addr");
    get_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    if (rdma_resolve_route(id, RESOLVES))
        fail("connected: rdma_resolve_route");
    get_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_qp(id);
    if (!cause->unconnected && rdma_connect(id, &parameters))
        fail("connected: rdma_connect");
    return id;
}

static void run_client(pid_t server)
{
    char ignored;
    channel = rdma_create_event_channel();
    if (!channel)
        fail("connected: rdma_create_event_channel");
    if (cause->full)
        request();
    struct rdma_cm_id *id = request();
    if (cause->answered)
        get_event(-1);
    if (cause->end == CLIENT_ENDS && rdma_disconnect(id))
        fail("connected: rdma_disconnect");
    if (cause->end == SERVER_DIES)
        kill(server, SIGKILL);
    if (cause->end != LEAVES)
        get_event(RDMA_CM_EVENT_DISCONNECTED);
    for (int i = 0; cause->server == FETCHES && !atomic_load(&meeting->asked) && i < MOST_SECONDS * 1000; i++)
        usleep(1000);
    printf("%d %d %d\n", (int)getpid(), (int)server, atomic_load(&meeting->port));
    fflush(stdout);
    if (read(0, &ignored, 1) < 0)
        fail("connected: no input");
    atomic_store(&meeting->over, true);
    if (server > 0)
        kill(server, cause->server == STOPS ? SIGKILL : SIGCONT);
    if (cause->server == FETCHES || (cause->server == WAITS && !cause->answered && !cause->full && !cause->unconnected))
        get_event(RDMA_CM_EVENT_REJECTED); /* as the server ends */
}

/* -- the server */

static void answer(struct rdma_cm_id *id)
{
    struct rdma_conn_param parameters = {.rnr_retry_count = 1};
    atomic_store(&meeting->asked, true);
    if (cause->server == REJECTS && rdma_reject(id, "no", 2))
        fail("connected: rdma_reject");
    if (cause->server == DESTROYS && rdma_destroy_id(id))
        fail("connected: rdma_destroy_id");
    if (cause->server == DIES_ASKED)
        raise(SIGKILL);
    if (cause->server != ACCEPTS)
        return;
    make_qp(id);
    if (rdma_accept(id, &parameters))
        fail("connected: rdma_accept");
    if (cause->datagrams)
        return;
    get_event(RDMA_CM_EVENT_ESTABLISHED);
    if (cause->end == CLIENT_ENDS)
        get_event(RDMA_CM_EVENT_DISCONNECTED);
    if ((cause->end == SERVER_ENDS || cause->end == CLIENT_ENDS) && rdma_disconnect(id))
        fail("connected: rdma_disconnect");
}

/* At a port that is another one with its bytes in the other order. */
static uint16_t begin_to_listen(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    struct rdma_cm_id *listener;
    do {
        listener = make_id();
        if (rdma_bind_addr(listener, (struct sockaddr *)&at) || rdma_listen(listener, cause->full ? 1 : 8))
            fail("connected: rdma_listen");
    } while (htons(rdma_get_src_port(listener)) == rdma_get_src_port(listener));
    return ntohs(rdma_get_src_port(listener));
}

static void run_server(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    channel = rdma_create_event_channel();
    if (!channel)
        fail("connected: rdma_create_event_channel");
    if (cause->server == LISTENS_NOT)
        make_id();
    atomic_store(&meeting->port, cause->server == LISTENS_NOT ? -1 : begin_to_listen());
    if (cause->server == STOPS)
        raise(SIGSTOP);
    if (cause->server != WAITS && cause->server < STOPS)
        answer(get_event(RDMA_CM_EVENT_CONNECT_REQUEST));
    while (!atomic_load(&meeting->over))
        usleep(1000);
}

static void become(const char *user)
{
    if (user && (setgid((gid_t)atoi(user)) || setuid((uid_t)atoi(user))))
        fail("connected: setuid");
}

/* A client that has left out htonl. */
static int resolve_swapped(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = INADDR_LOOPBACK};
    channel = rdma_create_event_channel();
    if (!channel || rdma_resolve_addr(make_id(), NULL, (struct sockaddr *)&to, RESOLVES))
        fail("connected: rdma_resolve_addr");
    get_event(RDMA_CM_EVENT_ADDR_ERROR);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct cause alone = {.name = "swapped-address"};
    if (argc > 1 && !strcmp(argv[1], alone.name)) {
        cause = &alone;
        return resolve_swapped();
    }
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (argc > 1 && !strcmp(argv[1], causes[i].name))
            cause = &causes[i];
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!cause || meeting == MAP_FAILED)
        fail("connected: no such cause");
    pid_t server = fork();
    if (server < 0)
        fail("connected: fork");
    become(argc > 3 ? argv[server ? 2 : 3] : NULL);
    if (!server) {
        run_server();
        return 0;
    }
    run_client(server);
    waitpid(server, NULL, 0);
    return 0;
}
