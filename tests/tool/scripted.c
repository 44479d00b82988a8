/* Calls that a script disturbs, each with what it returned: scripted
 * regions|receives|srq|batch|polls|queues|fork; lists: of devices; and work between a queue pair and itself, with its
 * completions and events: work|slow|sends|built|datagrams|events; asks: what the device says of itself; asyncs: what
 * arrived; lines: a line of stdin for a message, with how its send ended. With a final "stay" it stays until its stdin
 * ends. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 4, DEPTH = 4 };

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void say(const char *call, int answer)
{
    printf("%s %d errno %d\n", call, answer, errno);
    errno = 0;
}

static void regions(void)
{
    static char memory[4096];
    for (int i = 0; i < CALLS; i++)
        say("ibv_reg_mr", ibv_reg_mr(pd, memory, sizeof memory, 0) ? 0 : -1);
}

static struct ibv_qp *make_qp(enum ibv_qp_state state)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        exit(2);
    if (state == IBV_QPS_INIT)
        return qp;
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        exit(2);
    attr.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
        exit(2);
    return qp;
}

/* Lists of four, then single ones until the queue is full, which shows how many of the list were taken. */
static void receives(void)
{
    struct ibv_qp *qp = make_qp(IBV_QPS_INIT);
    struct ibv_recv_wr list[DEPTH] = {0}, *bad = NULL, one = {0};
    for (int i = 0; i < DEPTH; i++) {
        list[i].wr_id = (uint64_t)i + 1;
        list[i].next = i + 1 < DEPTH ? &list[i + 1] : NULL;
    }
    errno = 0;
    int answer = ibv_post_recv(qp, list, &bad);
    say("ibv_post_recv", answer);
    printf("bad %d\n", answer ? (int)bad->wr_id : 0);
    int room = 0;
    while (!ibv_post_recv(qp, &one, &bad))
        room++;
    printf("room %d\n", room);
}

static void show_asyncs(void);

/* A list into a shared receive queue, how many more it takes, and which asynchronous events were raised. */
static void srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
    struct ibv_srq *queue = ibv_create_srq(pd, &init);
    struct ibv_recv_wr list[DEPTH] = {0}, *bad = NULL, one = {0};
    if (!queue)
        exit(2);
    for (int i = 0; i < DEPTH; i++) {
        list[i].wr_id = (uint64_t)i + 1;
        list[i].next = i + 1 < DEPTH ? &list[i + 1] : NULL;
    }
    errno = 0;
    int answer = ibv_post_srq_recv(queue, list, &bad), room = 0;
    say("ibv_post_srq_recv", answer);
    printf("bad %d\n", answer ? (int)bad->wr_id : 0);
    while (room < 2 * DEPTH && !ibv_post_srq_recv(queue, &one, &bad))
        room++;
    struct ibv_srq_attr attr;
    ibv_query_srq(queue, &attr);
    printf("room %d of %u\n", room, attr.max_wr);
    show_asyncs();
}

static void batch(void)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(make_qp(IBV_QPS_RTS));
    for (int i = 0; i < 2; i++) {
        errno = 0;
        ibv_wr_start(qp);
        say("ibv_wr_complete", ibv_wr_complete(qp));
    }
}

static void polls(void)
{
    struct ibv_wc wc;
    for (int i = 0; i < 2; i++)
        say("ibv_poll_cq", ibv_poll_cq(cq, 1, &wc));
}

/* Polls two queues in turn, then, after another call, six, with another count each. */
static void queues(void)
{
    enum { QUEUES = 6, ROUNDS = 100 };
    struct ibv_cq *all[QUEUES];
    struct ibv_device_attr attr;
    struct ibv_wc wc[QUEUES];
    for (int i = 0; i < QUEUES; i++)
        if (!(all[i] = ibv_create_cq(pd->context, 4, NULL, NULL, 0)))
            exit(2);
    for (int i = 0; i < ROUNDS; i++)
        ibv_poll_cq(all[i % 2], 1, wc);
    ibv_query_device(pd->context, &attr);
    for (int i = 0; i < ROUNDS; i++)
        ibv_poll_cq(all[i % QUEUES], 1 + i % QUEUES, wc);
    ibv_query_device(pd->context, &attr);
}

static void fork_and_poll(void)
{
    polls();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        polls();
        exit(0);
    }
    waitpid(child, NULL, 0);
}

/* --- a queue pair that is its own peer */

static struct ibv_comp_channel *channel;
static struct ibv_cq *work_cq;
static struct ibv_mr *mr;
static char memory[64];

static uint8_t ack_timeout = 14;

static struct ibv_qp *make_loop(void)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = work_cq,
        .recv_cq = work_cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024, .rnr_retry = 7};
    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        exit(2);
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = qp->qp_num;
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    ibv_query_gid(pd->context, 1, 0, &attr.ah_attr.grh.dgid);
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        exit(2);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = ack_timeout;
    attr.retry_cnt = 7;
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC))
        exit(2);
    return qp;
}

static bool extended; /* the queue of completions */

static struct ibv_cq *make_queue(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 4 * DEPTH, .channel = channel, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *made = extended ? ibv_create_cq_ex(pd->context, &attr) : NULL;
    if (extended)
        return made ? ibv_cq_ex_to_cq(made) : NULL;
    return ibv_create_cq(pd->context, 4 * DEPTH, NULL, channel, 0);
}

static void begin_work(void)
{
    channel = ibv_create_comp_channel(pd->context);
    work_cq = channel ? make_queue() : NULL;
    mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    if (!work_cq || !mr)
        exit(2);
}

static struct ibv_sge element(void)
{
    return (struct ibv_sge){(uintptr_t)memory, 8, mr->lkey};
}

static void receive_one(struct ibv_qp *qp, uint64_t id)
{
    struct ibv_sge piece = element();
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &piece, .num_sge = 1}, *bad;
    if (ibv_post_recv(qp, &wr, &bad))
        exit(2);
}

static uint64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Each completion, in its order, and how long it took in tenths of a second. */
static int show_for(uint64_t time, int count)
{
    struct ibv_wc wc;
    uint64_t began = milliseconds();
    while (count && milliseconds() < began + time)
        if (ibv_poll_cq(work_cq, 1, &wc) > 0) {
            printf("wr_id %d status %d vendor %u opcode %d late %d bytes %u\n", (int)wc.wr_id, wc.status,
                   wc.status ? wc.vendor_err : 0, wc.status ? -1 : (int)wc.opcode, (int)(milliseconds() - began) / 100,
                   wc.status ? 0 : wc.byte_len);
            count--;
        }
    return count;
}

/* Takes up to two completions by an iterator; -1: there is none. */
static int show_iterated(uint64_t began)
{
    struct ibv_cq_ex *queue = (struct ibv_cq_ex *)work_cq;
    int shown = 0;
    if (ibv_start_poll(queue, &(struct ibv_poll_cq_attr){0}))
        return -1;
    do {
        bool failed = queue->status != IBV_WC_SUCCESS;
        printf("wr_id %d status %d vendor %u opcode %d late %d bytes %u\n", (int)queue->wr_id, queue->status,
               failed ? ibv_wc_read_vendor_err(queue) : 0, failed ? -1 : (int)ibv_wc_read_opcode(queue),
               (int)(milliseconds() - began) / 100, failed ? 0 : ibv_wc_read_byte_len(queue));
    } while (++shown < 2 && !ibv_next_poll(queue));
    ibv_end_poll(queue);
    return shown;
}

static void show_completions(int count)
{
    show_for(20000, count);
}

static void show_state(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
    printf("state %d\n", attr.qp_state);
}

/* Four messages of one list, unless some of it is refused; receives have wr_id 101 and so on. */
static struct ibv_qp *post_four(int *answer, struct ibv_send_wr **bad)
{
    static struct ibv_send_wr list[DEPTH];
    begin_work();
    struct ibv_qp *qp = make_loop();
    struct ibv_sge piece = element();
    for (int i = 0; i < DEPTH; i++) {
        receive_one(qp, 101 + (uint64_t)i);
        list[i] = (struct ibv_send_wr){.wr_id = 1 + (uint64_t)i,
                                       .next = i + 1 < DEPTH ? &list[i + 1] : NULL,
                                       .sg_list = &piece,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_SIGNALED};
    }
    errno = 0;
    *answer = ibv_post_send(qp, list, bad);
    return qp;
}

static struct ibv_qp *begin_four(void)
{
    struct ibv_send_wr *bad;
    int answer;
    struct ibv_qp *qp = post_four(&answer, &bad);
    if (answer)
        exit(2);
    return qp;
}

/* Prints how much of the list is taken, and how that ends. */
static void sends(void)
{
    struct ibv_send_wr *bad;
    int answer;
    post_four(&answer, &bad);
    say("ibv_post_send", answer);
    printf("bad %d\n", answer ? (int)bad->wr_id : 0);
    show_completions(answer ? 2 * (int)(bad->wr_id - 1) : 2 * DEPTH);
}

static void work(void)
{
    struct ibv_qp *qp = begin_four();
    show_completions(2 * DEPTH);
    show_state(qp);
}

static void iterated(void)
{
    extended = true;
    struct ibv_qp *qp = begin_four();
    uint64_t began = milliseconds();
    for (int left = 2 * DEPTH, shown; left > 0 && milliseconds() < began + 20000; left -= shown > 0 ? shown : 0)
        shown = show_iterated(began);
    show_state(qp);
}

/* Work whose completions are partly lost: its places in the queues are free again all the same. */
static void again(void)
{
    enum { ROUNDS = 10 * DEPTH };
    struct ibv_wc wc;
    begin_work();
    struct ibv_qp *qp = make_loop();
    struct ibv_sge piece = element();
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
        wr.send_flags = IBV_SEND_SIGNALED;
        receive_one(qp, 101);
        if (ibv_post_send(qp, &wr, &bad))
            exit(2);
        for (uint64_t end = milliseconds() + 10; milliseconds() < end;)
            ibv_poll_cq(work_cq, 1, &wc);
    }
    printf("good\n");
}

static void show_asyncs(void)
{
    struct ibv_async_event event;
    struct pollfd wait = {.fd = pd->context->async_fd, .events = POLLIN};
    while (poll(&wait, 1, 100) > 0 && !ibv_get_async_event(pd->context, &event)) {
        printf("async %s\n", ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
    }
}

/* The same with a patient queue pair: what ends within a moment, its state, and what ends after that. */
static void slow(void)
{
    ack_timeout = 19;
    struct ibv_qp *qp = begin_four();
    int rest = show_for(300, 2 * DEPTH);
    show_state(qp);
    show_for(rest ? 3000 : 0, rest);
    show_asyncs();
}

/* Prints the number of devices, three times. */
static void lists(void)
{
    for (int i = 0; i < 3; i++) {
        int count = -1;
        struct ibv_device **list = ibv_get_device_list(&count);
        printf("devices %d first %s\n", count, list && list[0] ? "there" : "none");
        ibv_free_device_list(list);
    }
}

static void built(void)
{
    begin_work();
    struct ibv_qp *qp = make_loop();
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    for (uint64_t i = 0; i < DEPTH; i++)
        receive_one(qp, 101 + i);
    ibv_wr_start(ex);
    for (uint64_t i = 0; i < DEPTH; i++) {
        ex->wr_id = 1 + i;
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(ex);
        ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
    }
    if (ibv_wr_complete(ex))
        exit(2);
    show_completions(2 * DEPTH);
    show_state(qp);
}

static void datagrams(void)
{
    begin_work();
    cq = work_cq;
    struct ibv_qp *qp = make_qp(IBV_QPS_RTS);
    struct ibv_sge piece = element();
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    ibv_query_gid(pd->context, 1, 0, &attr.grh.dgid);
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    for (uint64_t i = 1; ah && i <= DEPTH; i++) {
        struct ibv_send_wr wr = {.wr_id = i,
                                 .sg_list = &piece,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.ud = {.ah = ah, .remote_qpn = 0xfffffe}},
                           *bad;
        if (ibv_post_send(qp, &wr, &bad))
            exit(2);
    }
    show_completions(DEPTH);
    show_state(qp);
}

/* A message, whether its event arrives within a second, and how many more arrive within a tenth; three times. */
static void events(void)
{
    begin_work();
    struct ibv_qp *qp = make_loop();
    struct ibv_sge piece = element();
    struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
    for (uint64_t i = 0; i < 3; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
        struct ibv_cq *of;
        struct ibv_wc wc;
        void *context;
        int more = 0, first;
        receive_one(qp, i);
        ibv_req_notify_cq(work_cq, 0);
        uint64_t began = milliseconds();
        if (ibv_post_send(qp, &wr, &bad))
            exit(2);
        first = poll(&wait, 1, 1000);
        int late = (int)(milliseconds() - began) / 100;
        for (; poll(&wait, 1, 100) > 0; more++) {
            ibv_get_cq_event(channel, &of, &context);
            ibv_ack_cq_events(of, 1);
        }
        printf("event %d more %d late %d\n", first, first ? more - 1 : 0, first ? late : 0);
        while (ibv_poll_cq(work_cq, 1, &wc) > 0)
            ;
    }
}

/* Queries the port, the device and the GIDs, as programs do before they begin. */
static void asks(void)
{
    struct ibv_port_attr port;
    struct ibv_device_attr device;
    struct ibv_device_attr_ex more;
    struct ibv_gid_entry entry;
    union ibv_gid gid;
    static const union ibv_gid none;
    int port_answer = ibv_query_port(pd->context, 1, &port), device_answer = ibv_query_device(pd->context, &device);
    int more_answer = ibv_query_device_ex(pd->context, NULL, &more);
    printf("port %d state %d active_mtu %d active_speed %d lid %d\n", port_answer, port.state, port.active_mtu,
           port.active_speed, port.lid);
    printf("device %d max_qp %d max_mr %d\n", device_answer, device.max_qp, device.max_mr);
    printf("device_ex %d max_qp %d odp %d\n", more_answer, more.orig_attr.max_qp,
           (int)(more.odp_caps.general_caps & IBV_ODP_SUPPORT));
    for (int i = 0; i < 2; i++) {
        int answer = ibv_query_gid(pd->context, 1, i, &gid);
        int entry_answer = ibv_query_gid_ex(pd->context, 1, (uint32_t)i, &entry, 0);
        printf("gid %d %d gone %d ex %d gone %d\n", i, answer, !memcmp(&gid, &none, sizeof gid), entry_answer,
               entry_answer || !memcmp(&entry.gid, &none, sizeof gid));
    }
}

/* Polls twice, and which asynchronous events were raised until then. */
static void asyncs(void)
{
    begin_work();
    struct ibv_qp *qp = make_loop();
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_wc wc;
    memset(&init, 0xa5, sizeof init); /* no pointer in it leads anywhere, until the call has filled it */
    ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
    ibv_poll_cq(work_cq, 1, &wc);
    show_asyncs();
    show_state(qp);
}

/* Sends a message for each line of stdin; the queue pair is made first. */
static void lines(void)
{
    char line[16];
    begin_work();
    struct ibv_qp *qp = make_loop();
    printf("qp %u\n", qp->qp_num);
    fflush(stdout);
    for (uint64_t i = 1; fgets(line, sizeof line, stdin); i++) {
        struct ibv_sge piece = element();
        struct ibv_send_wr wr = {.wr_id = i,
                                 .sg_list = &piece,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        receive_one(qp, 100 + i);
        if (ibv_post_send(qp, &wr, &bad))
            printf("errno %d\n", errno);
        else
            show_completions(2);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"regions", regions},    {"receives", receives}, {"batch", batch},      {"polls", polls},
                 {"fork", fork_and_poll}, {"work", work},         {"built", built},      {"datagrams", datagrams},
                 {"events", events},      {"lines", lines},       {"asyncs", asyncs},    {"asks", asks},
                 {"slow", slow},          {"lists", lists},       {"sends", sends},      {"srq", srq},
                 {"queues", queues},      {"again", again},       {"iterated", iterated}};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!context) {
        say("ibv_open_device", -1);
        return 1;
    }
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    if (!pd || !cq)
        return 2;
    errno = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && !strcmp(argv[1], modes[i].name))
            modes[i].run();
    fflush(stdout);
    while (argc > 2 && getchar() != EOF)
        ;
    return 0;
}
