/* An end of a connection of librdmacm whose program makes a mistake that others have reported
 * (docs/evidence/mistakes.md): reported CASE server|client PORT. It prints its process's number, and stays. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESOLVES = 2000, ROOM = 64, ANY = -1 };

static struct rdma_event_channel *channel;
static struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};
static struct rdma_conn_param parameters = {.retry_count = 1, .rnr_retry_count = 0};
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[ROOM];

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void tell(void)
{
    printf("%d\n", (int)getpid());
    fflush(stdout);
}

/* The errno of a call that is refused, as its program shows it. */
static void show(const char *call, int failed)
{
    printf("%s: %s\n", call, failed ? strerror(errno) : "success");
    fflush(stdout);
}

static struct rdma_cm_id *make_id(void)
{
    struct rdma_cm_id *id;
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
        fail("rdma_create_id");
    return id;
}

static struct rdma_cm_event *get_event(int wanted)
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(channel, &event))
        fail("rdma_get_cm_event");
    if (wanted != ANY && (int)event->event != wanted)
        fail(rdma_event_str(event->event));
    return event;
}

static struct rdma_cm_id *await(int wanted)
{
    struct rdma_cm_event *event = get_event(wanted);
    struct rdma_cm_id *id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
    cq = init.send_cq = init.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    mr = pd ? ibv_reg_mr(pd, memory, ROOM, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!cq || !mr || rdma_create_qp(id, pd, &init))
        fail("rdma_create_qp");
}

static struct rdma_cm_id *resolve(void)
{
    struct rdma_cm_id *id = make_id();
    if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, RESOLVES))
        fail("rdma_resolve_addr");
    await(RDMA_CM_EVENT_ADDR_RESOLVED);
    make_qp(id);
    if (rdma_resolve_route(id, RESOLVES))
        fail("rdma_resolve_route");
    return id;
}

static struct rdma_cm_id *ask(void)
{
    struct rdma_cm_id *id = resolve();
    await(RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (rdma_connect(id, &parameters))
        fail("rdma_connect");
    return id;
}

static struct rdma_cm_id *connect_to(void)
{
    struct rdma_cm_id *id = ask();
    await(RDMA_CM_EVENT_ESTABLISHED);
    return id;
}

static void hear(void)
{
    struct rdma_cm_id *listener = make_id();
    if (rdma_bind_addr(listener, (struct sockaddr *)&there) || rdma_listen(listener, 4))
        fail("rdma_listen");
    tell();
}

static struct rdma_cm_id *accept_one(void)
{
    hear();
    struct rdma_cm_id *id = await(RDMA_CM_EVENT_CONNECT_REQUEST);
    make_qp(id);
    if (rdma_accept(id, &parameters))
        fail("rdma_accept");
    return id;
}

static void poll_one(const char *what)
{
    struct ibv_wc wc;
    while (!ibv_poll_cq(cq, 1, &wc))
        usleep(1000);
    printf("%s: %s\n", what, ibv_wc_status_str(wc.status));
    fflush(stdout);
}

/* -- servers */

static void accepts(void)
{
    accept_one();
    await(RDMA_CM_EVENT_ESTABLISHED);
}

static void listens_not(void)
{
    tell();
}

static void is_killed(void)
{
    accepts();
    raise(SIGKILL);
}

static void stops(void)
{
    hear();
    raise(SIGSTOP);
}

static void rejects_too(void)
{
    struct rdma_cm_id *id = accept_one();
    await(RDMA_CM_EVENT_ESTABLISHED);
    show("rdma_reject", rdma_reject(id, NULL, 0));
}

static void receives_late(void)
{
    struct rdma_cm_id *id = accept_one();
    struct ibv_sge sge = {(uintptr_t)memory, ROOM, mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    await(RDMA_CM_EVENT_ESTABLISHED);
    getchar(); /* the mistake: the first message is there before */
    if (ibv_post_recv(id->qp, &wr, &bad))
        fail("ibv_post_recv");
    poll_one("receive");
}

/* -- clients */

static void acknowledges_nothing(void)
{
    struct rdma_cm_id *id = ask();
    get_event(RDMA_CM_EVENT_REJECTED);
    rdma_destroy_qp(id);
    tell();
    rdma_destroy_id(id);
}

static void connects_early(void)
{
    struct rdma_cm_id *id = resolve();
    show("rdma_connect", rdma_connect(id, &parameters));
}

static void connects_again(void)
{
    struct rdma_cm_id *id = ask();
    await(RDMA_CM_EVENT_REJECTED);
    show("rdma_connect", rdma_connect(id, &parameters));
}

static void waits_for_one_more(void)
{
    struct rdma_cm_id *id = connect_to();
    await(RDMA_CM_EVENT_DISCONNECTED);
    show("rdma_disconnect", rdma_disconnect(id));
    tell();
    await(ANY);
}

static void disconnects(void)
{
    struct rdma_cm_id *id = connect_to();
    show("rdma_disconnect", rdma_disconnect(id));
    tell();
    await(RDMA_CM_EVENT_DISCONNECTED);
}

static void connects(void)
{
    connect_to();
}

static void moves_to_channel(void)
{
    struct rdma_event_channel *later = channel;
    channel = NULL; /* each call waits for its event */
    struct rdma_cm_id *id = make_id();
    if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, RESOLVES) || rdma_resolve_route(id, RESOLVES))
        fail("rdma_resolve_route");
    make_qp(id);
    if (rdma_connect(id, &parameters) || rdma_migrate_id(id, later))
        fail("rdma_connect");
    channel = later;
    tell();
    await(RDMA_CM_EVENT_ESTABLISHED);
}

static void uses_address_twice(void)
{
    struct rdma_cm_id *first = make_id(), *second = make_id();
    struct sockaddr_in own = there;
    own.sin_port = 0;
    if (rdma_bind_addr(first, (struct sockaddr *)&own))
        fail("rdma_bind_addr");
    own.sin_port = rdma_get_src_port(first);
    show("rdma_resolve_addr", rdma_resolve_addr(second, (struct sockaddr *)&own, (struct sockaddr *)&there, RESOLVES));
}

static void swaps_bytes(void)
{
    struct rdma_cm_id *id = make_id();
    there.sin_addr.s_addr = INADDR_LOOPBACK;
    if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, RESOLVES)) {
        show("rdma_resolve_addr", true);
        return;
    }
    struct rdma_cm_event *event = get_event(ANY);
    printf("%s, status %d\n", rdma_event_str(event->event), event->status);
    fflush(stdout);
    rdma_ack_cm_event(event);
}

static void sends(void)
{
    struct rdma_cm_id *id = connect_to();
    struct ibv_sge sge = {(uintptr_t)memory, ROOM, mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    if (ibv_post_send(id->qp, &wr, &bad))
        fail("ibv_post_send");
    poll_one("send");
}

static void asks(void)
{
    ask();
    tell();
    await(RDMA_CM_EVENT_ESTABLISHED);
}

static const struct {
    const char *name;
    void (*serve)(void), (*play)(void);
} cases[] = {
    {"acknowledge", listens_not, acknowledges_nothing},
    {"early", hear, connects_early},
    {"again", listens_not, connects_again},
    {"killed", is_killed, waits_for_one_more},
    {"channel", accepts, moves_to_channel},
    {"goodbye", accepts, disconnects},
    {"address", hear, uses_address_twice},
    {"reject", rejects_too, connects},
    {"bytes", hear, swaps_bytes},
    {"late", receives_late, sends},
    {"stopped", stops, asks},
};

int main(int argc, char **argv)
{
    size_t i = 0, count = sizeof cases / sizeof *cases;
    while (argc == 4 && i < count && strcmp(cases[i].name, argv[1]))
        i++;
    channel = rdma_create_event_channel();
    if (argc != 4 || i == count || !channel)
        return 2;
    there.sin_port = htons((uint16_t)atoi(argv[3]));
    (strcmp(argv[2], "server") ? cases[i].play : cases[i].serve)();
    tell();
    for (;;)
        pause();
}
