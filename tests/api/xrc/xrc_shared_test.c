/* XRC between processes: a domain of one file is open in several, the queue pair is in one, the SRQs are in all. This
 * process sends; each end is this program started anew, and gets its commands over a socket. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "one_process.h"
#include "xrc_make.h"

enum { LONG = 20000, LARGE = 100000, ROOM = 1 << 18, DEPTH = 128 };

enum order_kind { CONNECT, DISCONNECT, RECEIVE, POLL, LOOK, LIMIT, EVENT, DESTROY, OPEN_QP, STATE, FILL };

struct order {
    enum order_kind kind;
    uint64_t first, second, third;
};

struct answer {
    int result;
    struct ibv_wc wc;
    char bytes[8];
};

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int poll_for(struct ibv_cq *cq, struct ibv_wc *wc, int64_t wait)
{
    int64_t until = milliseconds() + wait;
    int count;
    while (!(count = ibv_poll_cq(cq, 1, wc)) && milliseconds() < until)
        usleep(100);
    return count;
}

/* -- an end */

struct end {
    struct ibv_context *context;
    struct ibv_xrcd *xrcd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    char *memory;
};

/* The numbers and addresses that an end sends to this process. */
struct about {
    uint32_t qp, srq, stranger, rkey; /* the SRQ `stranger` is of another domain */
    uint64_t address;
};

static struct about begin(struct end *end, int file)
{
    struct about about = {0};
    end->context = local_open();
    end->xrcd = xrc_make_domain(end->context, file, O_CREAT);
    struct ibv_pd *pd = ibv_alloc_pd(end->context);
    end->cq = ibv_create_cq(end->context, 2 * DEPTH, NULL, NULL, 0);
    end->memory = calloc(1, ROOM);
    end->mr = ibv_reg_mr(pd, end->memory, ROOM,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    end->srq = xrc_make_srq(pd, end->xrcd, end->cq, DEPTH);
    struct ibv_srq *stranger = xrc_make_srq(pd, xrc_make_domain(end->context, -1, O_CREAT), end->cq, DEPTH);
    end->qp = xrc_make_receiver(end->context, end->xrcd);
    ibv_get_srq_num(end->srq, &about.srq);
    ibv_get_srq_num(stranger, &about.stranger);
    about.qp = end->qp->qp_num;
    about.rkey = end->mr->rkey;
    about.address = (uintptr_t)end->memory;
    return about;
}

static int receive(struct end *end, const struct order *order)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, (uint32_t)order->second, end->mr->lkey + (uint32_t)order->third};
    struct ibv_recv_wr wr = {.wr_id = order->first, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_srq_recv(end->srq, &wr, &bad);
}

static int next_event(struct end *end, int wait)
{
    struct pollfd waits = {.fd = end->context->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    if (poll(&waits, 1, wait) != 1 || ibv_get_async_event(end->context, &event))
        return -1;
    ibv_ack_async_event(&event);
    return event.event_type;
}

static int open_qp(struct end *end, uint32_t number)
{
    errno = 0;
    return xrc_make_handle(end->context, end->xrcd, number) ? 0 : errno;
}

static int connect_from(struct ibv_qp *qp, uint32_t number)
{
    local_initialize(qp);
    local_receive_from(qp, number);
    return 0;
}

/* The library writes this memory and reports that to the peer, and only the peer reports it to this thread:
 * ThreadSanitizer can't see that order. */
#define UNSEEN __attribute__((no_sanitize("thread")))

UNSEEN static void look_at(const volatile char *memory, struct answer *answer)
{
    for (size_t i = 0; i < sizeof answer->bytes; i++)
        answer->bytes[i] = memory[i];
}

UNSEEN static void fill(volatile char *memory, char value)
{
    for (size_t i = 0; i < ROOM; i++)
        memory[i] = value;
}

static int obey(struct end *end, const struct order *order, struct answer *answer)
{
    switch (order->kind) {
    case CONNECT:
        return connect_from(end->qp, (uint32_t)order->first);
    case DISCONNECT:
        return ibv_modify_qp(end->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
    case RECEIVE:
        return receive(end, order);
    case POLL:
        return poll_for(end->cq, &answer->wc, (int64_t)order->first);
    case LOOK:
        look_at(end->memory + order->first, answer);
        return 0;
    case FILL:
        fill(end->memory, (char)order->first);
        return 0;
    case LIMIT:
        return ibv_modify_srq(end->srq, &(struct ibv_srq_attr){.srq_limit = (uint32_t)order->first}, IBV_SRQ_LIMIT);
    case EVENT:
        return next_event(end, (int)order->first);
    case DESTROY:
        return ibv_destroy_srq(end->srq);
    case OPEN_QP:
        return open_qp(end, (uint32_t)order->first);
    case STATE: {
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        return ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init) ? -1 : (int)attr.qp_state;
    }
    }
    return -1;
}

static int serve(int file, int socket)
{
    struct end end;
    struct order order;
    struct about about = begin(&end, file);
    if (write(socket, &about, sizeof about) != sizeof about)
        return 1;
    while (read(socket, &order, sizeof order) == sizeof order) {
        struct answer answer = {0};
        answer.result = obey(&end, &order, &answer);
        if (write(socket, &answer, sizeof answer) != sizeof answer)
            return 1;
    }
    int error = ibv_close_device(end.context);
    free(end.memory);
    return error ? 1 : 0;
}

/* -- this process */

struct child {
    pid_t pid;
    int socket;
    struct about about;
};

struct room {
    struct ibv_context *context;
    struct ibv_cq *sent;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    char *memory;
    int file;
    struct child ends[3]; /* the first has the queue pair */
    unsigned count;
};

static struct child start(int file)
{
    int sockets[2];
    char numbers[2][16];
    struct child child;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), ==, 0);
    fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
    snprintf(numbers[0], sizeof numbers[0], "%d", file);
    snprintf(numbers[1], sizeof numbers[1], "%d", sockets[1]);
    child.pid = fork();
    if (!child.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "end", "--end", numbers[0], numbers[1], (char *)NULL);
        _exit(98);
    }
    close(sockets[1]);
    child.socket = sockets[0];
    EXPECT(read(child.socket, &child.about, sizeof child.about), ==, sizeof child.about);
    return child;
}

static struct answer ask(const struct child *child, struct order order)
{
    struct answer answer;
    EXPECT(write(child->socket, &order, sizeof order), ==, sizeof order);
    EXPECT(read(child->socket, &answer, sizeof answer), ==, sizeof answer);
    return answer;
}

#define ASK(child, ...) ask(child, (struct order){__VA_ARGS__}).result

static void connect_to(struct room *room, struct child *child, uint8_t rnr_retry)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS, .timeout = 19, .retry_cnt = 7, .rnr_retry = rnr_retry, .max_rd_atomic = 4};
    EXPECT(ASK(child, CONNECT, room->qp->qp_num), ==, 0);
    local_initialize(room->qp);
    local_receive_from(room->qp, child->about.qp);
    EXPECT(ibv_modify_qp(room->qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC),
           ==, 0);
}

static struct room open_room(unsigned ends, uint8_t rnr_retry)
{
    char name[] = "/tmp/xrc-shared-XXXXXX";
    struct room room = {.context = local_open(), .count = ends, .file = mkstemp(name)};
    EXPECT_TRUE(room.file >= 0);
    unlink(name);
    struct ibv_pd *pd = ibv_alloc_pd(room.context);
    room.sent = ibv_create_cq(room.context, 2 * DEPTH, NULL, NULL, 0);
    room.memory = calloc(1, ROOM);
    room.mr = ibv_reg_mr(pd, room.memory, ROOM, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr init = {
        .send_cq = room.sent, .qp_type = IBV_QPT_XRC_SEND, .cap = {.max_send_wr = DEPTH, .max_send_sge = 1}};
    room.qp = ibv_create_qp(pd, &init);
    EXPECT_TRUE(room.qp);
    for (unsigned i = 0; i < ends; i++)
        room.ends[i] = start(room.file);
    connect_to(&room, &room.ends[0], rnr_retry);
    return room;
}

static void kill_end(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->socket);
    child->pid = 0;
}

/* Ends that live close everything and exit with 0, which sanitizers make of leaks something else. */
static void close_room(struct room *room)
{
    int status;
    EXPECT(ibv_close_device(room->context), ==, 0);
    free(room->memory);
    for (unsigned i = 0; i < room->count; i++) {
        if (!room->ends[i].pid)
            continue;
        close(room->ends[i].socket);
        EXPECT(waitpid(room->ends[i].pid, &status, 0), ==, room->ends[i].pid);
        EXPECT(status, ==, 0);
    }
    close(room->file);
}

static void post(struct room *room, struct ibv_send_wr wr, uint32_t srq, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)room->memory, length, room->mr->lkey};
    struct ibv_send_wr *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.qp_type.xrc.remote_srqn = srq;
    EXPECT(ibv_post_send(room->qp, &wr, &bad), ==, 0);
}

static void send_to(struct room *room, uint32_t srq, uint64_t id, uint32_t length)
{
    post(room, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .wr_id = id}, srq, length);
}

static void access_at(struct room *room, enum ibv_wr_opcode opcode, uint32_t srq, const struct about *memory,
                      uint32_t length)
{
    post(room,
         (struct ibv_send_wr){.opcode = opcode, .wr.rdma = {.remote_addr = memory->address, .rkey = memory->rkey}}, srq,
         length);
}

static enum ibv_wc_status status_of_next(struct room *room)
{
    struct ibv_wc wc;
    EXPECT(poll_for(room->sent, &wc, LONG), ==, 1);
    return wc.status;
}

static struct ibv_wc arrival(const struct child *child)
{
    struct answer answer = ask(child, (struct order){POLL, LONG});
    EXPECT(answer.result, ==, 1);
    return answer.wc;
}

static char byte_at(const struct child *child, uint64_t offset)
{
    return ask(child, (struct order){LOOK, offset}).bytes[0];
}

/* -- cases */

static void exchange(struct room *room, struct child *child, uint32_t length, char fill)
{
    memset(room->memory, fill, length);
    EXPECT(ASK(child, RECEIVE, (uint64_t)fill, ROOM), ==, 0);
    send_to(room, child->about.srq, 1, length);
    EXPECT(status_of_next(room), ==, IBV_WC_SUCCESS);
    struct ibv_wc wc = arrival(child);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wr_id, ==, (uint64_t)fill);
    EXPECT(wc.byte_len, ==, length);
    EXPECT(wc.qp_num, ==, room->ends[0].about.qp);
    EXPECT(byte_at(child, 0), ==, fill);
    EXPECT(byte_at(child, length - 8), ==, fill);
}

static void a_message_reaches_the_srq_of_any_process(const void *row)
{
    struct room room = open_room(3, 7);
    EXPECT_TRUE(room.ends[0].about.srq != room.ends[1].about.srq);
    for (int turn = 0; turn < 12; turn++)
        exchange(&room, &room.ends[turn % 3], turn % 2 ? 64 : LARGE, (char)('a' + turn));
    for (int turn = 0; turn < 4; turn++)
        exchange(&room, &room.ends[2], turn % 2 ? 64 : LARGE, (char)('A' + turn));
    close_room(&room);
}

/* Each process's arrive in the order of posting. */
static void many_under_way_arrive_in_order(const void *row)
{
    enum { EACH = 32 };
    struct room room = open_room(3, 7);
    for (int i = 0; i < 3 * EACH; i++)
        EXPECT(ASK(&room.ends[i % 3], RECEIVE, (uint64_t)i, ROOM), ==, 0);
    for (int i = 0; i < 3 * EACH; i++) /* runs of different lengths, of all three alternately */
        send_to(&room, room.ends[i % 3].about.srq, (uint64_t)i, i % 5 ? 8 + (uint32_t)i : 40000 + (uint32_t)i);
    for (int i = 0; i < 3 * EACH; i++)
        EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    for (int i = 0; i < 3 * EACH; i++) {
        struct ibv_wc wc = arrival(&room.ends[i % 3]);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        EXPECT(wc.wr_id, ==, i);
        EXPECT(wc.byte_len, ==, i % 5 ? 8 + i : 40000 + i);
    }
    close_room(&room);
}

static void no_receive_over_there_waits_for_one(const void *row)
{
    struct room room = open_room(2, 7);
    struct ibv_wc wc;
    send_to(&room, room.ends[1].about.srq, 1, 64);
    send_to(&room, room.ends[0].about.srq, 2, 64);
    EXPECT(ASK(&room.ends[0], RECEIVE, 8, ROOM), ==, 0);
    EXPECT(poll_for(room.sent, &wc, 50), ==, 0);
    EXPECT(ASK(&room.ends[1], RECEIVE, 7, ROOM), ==, 0);
    EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    EXPECT(arrival(&room.ends[1]).wr_id, ==, 7);
    EXPECT(arrival(&room.ends[0]).wr_id, ==, 8);
    close_room(&room);
}

static void no_receive_over_there_exceeds_the_retries(const void *row)
{
    struct room room = open_room(2, 0);
    send_to(&room, room.ends[1].about.srq, 1, 64);
    EXPECT(status_of_next(&room), ==, IBV_WC_RNR_RETRY_EXC_ERR);
    close_room(&room);
}

static void memory_is_of_the_srqs_process(const void *row)
{
    struct room room = open_room(2, 7);
    const struct about *there = &room.ends[1].about;
    memset(room.memory, 'w', LARGE);
    access_at(&room, IBV_WR_RDMA_WRITE, there->srq, there, LARGE);
    EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    EXPECT(byte_at(&room.ends[1], LARGE - 8), ==, 'w');
    EXPECT(ASK(&room.ends[1], FILL, 'r'), ==, 0);
    access_at(&room, IBV_WR_RDMA_READ, there->srq, there, LARGE);
    EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    EXPECT(room.memory[0], ==, 'r');
    EXPECT(room.memory[LARGE - 1], ==, 'r');
    for (int turn = 0; turn < 2; turn++) { /* with the position at home and away */
        post(&room,
             (struct ibv_send_wr){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                  .wr.atomic = {there->address, turn ? 0 : 1, 0, there->rkey}},
             there->srq, 8);
        EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
        EXPECT(room.memory[0], ==, 'r' + turn);
        access_at(&room, IBV_WR_RDMA_READ, room.ends[0].about.srq, &room.ends[0].about, 8);
        EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    }
    close_room(&room);
}

static void reads_and_sends_of_several_processes_mix(const void *row)
{
    struct room room = open_room(2, 7);
    for (int i = 0; i < 16; i++)
        EXPECT(ASK(&room.ends[i % 2], RECEIVE, (uint64_t)i, ROOM), ==, 0);
    for (int i = 0; i < 16; i++) {
        access_at(&room, IBV_WR_RDMA_READ, room.ends[i / 2 % 2].about.srq, &room.ends[i / 2 % 2].about, LARGE);
        send_to(&room, room.ends[i % 2].about.srq, (uint64_t)i, 64);
    }
    for (int i = 0; i < 32; i++)
        EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    for (int i = 0; i < 16; i++)
        EXPECT(arrival(&room.ends[i % 2]).wr_id, ==, i);
    close_room(&room);
}

/* The key is of the process that has the queue pair; the packet's SRQ is another's, whose keys count. */
static void a_key_of_another_process_is_refused(const void *row)
{
    struct room room = open_room(2, 7);
    struct about wrong = room.ends[1].about;
    wrong.rkey ^= 0x40;
    access_at(&room, IBV_WR_RDMA_WRITE, room.ends[1].about.srq, &wrong, 8);
    EXPECT(status_of_next(&room), ==, IBV_WC_REM_ACCESS_ERR);
    EXPECT(ASK(&room.ends[0], EVENT, LONG), ==, IBV_EVENT_COMM_EST);
    EXPECT(ASK(&room.ends[0], EVENT, LONG), ==, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT(ASK(&room.ends[0], STATE), ==, IBV_QPS_ERR);
    close_room(&room);
}

static void an_srq_of_another_domain_is_refused(const void *row)
{
    struct room room = open_room(2, 7);
    send_to(&room, room.ends[1].about.stranger, 1, 8);
    EXPECT(status_of_next(&room), ==, IBV_WC_REM_ACCESS_ERR);
    close_room(&room);
}

/* The queue pair fails without an event: the receive's completion has the error (IBA 9.9.3). */
static void what_is_wrong_with_the_receive_is_told_to_both(const void *argument)
{
    bool is_short = *(const bool *)argument;
    struct room room = open_room(2, 7);
    EXPECT(ASK(&room.ends[1], RECEIVE, 3, is_short ? 4 : 64, is_short ? 0 : 0x40), ==, 0);
    send_to(&room, room.ends[1].about.srq, 1, 64);
    EXPECT(status_of_next(&room), ==, is_short ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
    struct ibv_wc wc = arrival(&room.ends[1]);
    EXPECT(wc.status, ==, is_short ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
    EXPECT(wc.wr_id, ==, 3);
    EXPECT(ASK(&room.ends[0], EVENT, LONG), ==, IBV_EVENT_COMM_EST);
    EXPECT(ASK(&room.ends[0], EVENT, 20), ==, -1);
    EXPECT(ASK(&room.ends[0], STATE), ==, IBV_QPS_ERR);
    close_room(&room);
}

static void the_limit_is_told_where_the_srq_is(const void *row)
{
    struct room room = open_room(2, 7);
    EXPECT(ASK(&room.ends[1], RECEIVE, 1, ROOM), ==, 0);
    EXPECT(ASK(&room.ends[1], RECEIVE, 2, ROOM), ==, 0);
    EXPECT(ASK(&room.ends[1], LIMIT, 2), ==, 0);
    send_to(&room, room.ends[1].about.srq, 1, 8);
    EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    EXPECT(ASK(&room.ends[1], EVENT, LONG), ==, IBV_EVENT_SRQ_LIMIT_REACHED);
    close_room(&room);
}

static void a_destroyed_srq_is_unknown(const void *row)
{
    struct room room = open_room(2, 7);
    exchange(&room, &room.ends[1], 64, 'a');
    EXPECT(ASK(&room.ends[1], DESTROY), ==, 0);
    send_to(&room, room.ends[1].about.srq, 1, 8);
    EXPECT(status_of_next(&room), ==, IBV_WC_REM_INV_REQ_ERR);
    close_room(&room);
}

/* The queue pair works on (reason 217): others are still reached; a sender that names its SRQ gets the error of a
 * missing SRQ (reason 380). */
static void a_process_that_dies_takes_its_srq_along(const void *row)
{
    struct room room = open_room(3, 7);
    exchange(&room, &room.ends[1], LARGE, 'a');
    kill_end(&room.ends[1]);
    exchange(&room, &room.ends[0], LARGE, 'b');
    exchange(&room, &room.ends[2], LARGE, 'c');
    send_to(&room, room.ends[1].about.srq, 1, 8);
    EXPECT(status_of_next(&room), ==, IBV_WC_REM_INV_REQ_ERR);
    close_room(&room);
}

/* Killed while messages are under way: those that it had ended are acknowledged, the first other one is refused. */
static void death_amidst_messages_is_an_error_and_no_hang(const void *row)
{
    struct room room = open_room(2, 7);
    bool failed = false;
    exchange(&room, &room.ends[1], LARGE, 'a');
    for (uint64_t i = 0; i < 64; i++) {
        EXPECT(ASK(&room.ends[1], RECEIVE, i, ROOM), ==, 0);
        send_to(&room, room.ends[1].about.srq, i, LARGE);
    }
    for (uint64_t i = 64; i < 100; i++)
        send_to(&room, room.ends[1].about.srq, i, LARGE); /* these find no receive */
    kill_end(&room.ends[1]);
    for (uint64_t i = 0; i < 100; i++) {
        enum ibv_wc_status status = status_of_next(&room);
        if (failed)
            EXPECT(status, ==, IBV_WC_WR_FLUSH_ERR);
        else if (status != IBV_WC_SUCCESS)
            EXPECT(status, ==, IBV_WC_REM_INV_REQ_ERR);
        failed = status != IBV_WC_SUCCESS;
    }
    EXPECT_TRUE(failed);
    close_room(&room);
}

/* The queue pair is destroyed with its process; the others' SRQs stay and are reached by other queue pairs. */
static void death_of_the_queue_pairs_process_is_the_end_of_the_queue_pair(const void *row)
{
    struct room room = open_room(3, 7);
    exchange(&room, &room.ends[1], 64, 'a');
    kill_end(&room.ends[0]);
    room.ends[0] = room.ends[2];
    room.count = 2;
    EXPECT(ibv_modify_qp(room.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), ==, 0);
    connect_to(&room, &room.ends[0], 7);
    exchange(&room, &room.ends[1], LARGE, 'b');
    exchange(&room, &room.ends[0], LARGE, 'c');
    close_room(&room);
}

static void a_process_that_stands_still_is_waited_for(const void *row)
{
    struct room room = open_room(2, 7);
    struct ibv_wc wc;
    EXPECT(ASK(&room.ends[1], RECEIVE, 1, ROOM), ==, 0);
    kill(room.ends[1].pid, SIGSTOP);
    EXPECT(waitpid(room.ends[1].pid, NULL, WUNTRACED), ==, room.ends[1].pid);
    send_to(&room, room.ends[1].about.srq, 1, LARGE);
    EXPECT(poll_for(room.sent, &wc, 50), ==, 0);
    kill(room.ends[1].pid, SIGCONT);
    EXPECT(status_of_next(&room), ==, IBV_WC_SUCCESS);
    close_room(&room);
}

/* The process closes its device and ends, which the others need not care about. */
static void a_process_that_ends_well_gives_the_position_back(const void *row)
{
    struct room room = open_room(3, 7);
    int status;
    exchange(&room, &room.ends[1], LARGE, 'a');
    close(room.ends[1].socket);
    EXPECT(waitpid(room.ends[1].pid, &status, 0), ==, room.ends[1].pid);
    EXPECT(status, ==, 0);
    room.ends[1].pid = 0;
    exchange(&room, &room.ends[0], LARGE, 'b');
    exchange(&room, &room.ends[2], LARGE, 'c');
    close_room(&room);
}

static void a_reset_queue_pair_begins_anew(const void *row)
{
    struct room room = open_room(2, 7);
    for (int turn = 0; turn < 3; turn++) {
        exchange(&room, &room.ends[1], LARGE, (char)('a' + turn));
        EXPECT(ASK(&room.ends[0], DISCONNECT), ==, 0);
        EXPECT(ibv_modify_qp(room.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), ==, 0);
        connect_to(&room, &room.ends[0], 7);
    }
    close_room(&room);
}

/* Handles are of one process (reason 388). */
static void a_queue_pair_of_another_process_is_not_opened(const void *row)
{
    struct room room = open_room(2, 7);
    EXPECT(ASK(&room.ends[1], OPEN_QP, room.ends[0].about.qp), ==, EINVAL);
    EXPECT(ASK(&room.ends[0], OPEN_QP, room.ends[0].about.qp), ==, 0);
    close_room(&room);
}

static void all(void)
{
    static const bool wrong[] = {false, true};
    CASE(a_message_reaches_the_srq_of_any_process);
    CASE(many_under_way_arrive_in_order);
    CASE(no_receive_over_there_waits_for_one);
    CASE(no_receive_over_there_exceeds_the_retries);
    CASE(memory_is_of_the_srqs_process);
    CASE(reads_and_sends_of_several_processes_mix);
    CASE(a_key_of_another_process_is_refused);
    CASE(an_srq_of_another_domain_is_refused);
    harness_run("a receive with a wrong key is told to both", what_is_wrong_with_the_receive_is_told_to_both,
                &wrong[0]);
    harness_run("one that is too short is", what_is_wrong_with_the_receive_is_told_to_both, &wrong[1]);
    CASE(the_limit_is_told_where_the_srq_is);
    CASE(a_destroyed_srq_is_unknown);
    CASE(a_process_that_dies_takes_its_srq_along);
    CASE(death_amidst_messages_is_an_error_and_no_hang);
    CASE(death_of_the_queue_pairs_process_is_the_end_of_the_queue_pair);
    CASE(a_process_that_stands_still_is_waited_for);
    CASE(a_process_that_ends_well_gives_the_position_back);
    CASE(a_reset_queue_pair_begins_anew);
    CASE(a_queue_pair_of_another_process_is_not_opened);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--end"))
        return serve(atoi(argv[2]), atoi(argv[3]));
    return harness_main(argc, argv, all);
}
