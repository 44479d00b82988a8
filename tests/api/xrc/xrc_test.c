/* XRC in one process: domains by inode, SRQs named by packets, queue pairs shared by handles. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_process.h"
#include "xrc_make.h"

static int open_file(void)
{
    char name[] = "/tmp/xrc-test-XXXXXX";
    int fd = mkstemp(name);
    EXPECT_TRUE(fd >= 0);
    unlink(name);
    return fd;
}

/* -- domains */

static void a_domain_is_made_when_asked_for(const void *row)
{
    struct ibv_context *context = local_open();
    int fd = open_file();
    EXPECT_ERRNO(xrc_make_domain(context, fd, 0), EAGAIN);
    EXPECT_ERRNO(xrc_make_domain(context, fd, O_EXCL), EAGAIN);
    struct ibv_xrcd *first = xrc_make_domain(context, fd, O_CREAT | O_EXCL);
    EXPECT_TRUE(first);
    EXPECT_ERRNO(xrc_make_domain(context, fd, O_CREAT | O_EXCL), EINVAL);
    struct ibv_xrcd *second = xrc_make_domain(context, fd, 0), *third = xrc_make_domain(context, fd, O_CREAT);
    EXPECT_TRUE(second && third && second != first);
    EXPECT(ibv_close_xrcd(first), ==, 0);
    EXPECT(ibv_close_xrcd(third), ==, 0);
    EXPECT_ERRNO(xrc_make_domain(context, fd, O_CREAT | O_EXCL), EINVAL);
    EXPECT(ibv_close_xrcd(second), ==, 0);
    EXPECT_ERRNO(xrc_make_domain(context, fd, 0), EAGAIN);
    close(fd);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void an_anonymous_domain_is_nobody_elses(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_xrcd *first = xrc_make_domain(context, -1, O_CREAT),
                    *second = xrc_make_domain(context, -1, O_CREAT | O_EXCL);
    EXPECT_TRUE(first && second);
    EXPECT(ibv_close_xrcd(first), ==, 0);
    EXPECT(ibv_close_xrcd(second), ==, 0);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void bad_domain_attributes_are_refused(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT};
    EXPECT_ERRNO(ibv_open_xrcd(context, &attr), EINVAL);
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS | IBV_XRCD_INIT_ATTR_RESERVED;
    EXPECT_ERRNO(ibv_open_xrcd(context, &attr), EOPNOTSUPP);
    EXPECT_ERRNO(xrc_make_domain(context, -1, O_CREAT | O_TRUNC), EINVAL);
    EXPECT_ERRNO(xrc_make_domain(context, 9999, O_CREAT), EBADF);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* Another process, this program anew, tries a domain that its parent has, or the other way round; its exit status is
 * the result. */
static int open_elsewhere(int fd, int flags, int told)
{
    struct ibv_context *context = local_open();
    errno = 0;
    struct ibv_xrcd *xrcd = xrc_make_domain(context, fd, flags);
    int error = xrcd ? 0 : errno;
    ssize_t written = write(told, "x", 1);
    sleep(xrcd ? 60 : 0); /* it has the domain until its parent ends it */
    return written == 1 ? error : 99;
}

static int child_opens(int fd, int flags, int *told)
{
    char numbers[3][16], told_us;
    int values[] = {fd, flags, told[1]};
    for (size_t i = 0; i < COUNT(values); i++)
        snprintf(numbers[i], sizeof numbers[i], "%d", values[i]);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "opener", "--open", numbers[0], numbers[1], numbers[2], (char *)NULL);
        _exit(98);
    }
    EXPECT(read(told[0], &told_us, 1), ==, 1);
    return child;
}

static int exit_of(pid_t child)
{
    int status;
    EXPECT(waitpid(child, &status, 0), ==, child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void processes_agree_whether_a_domain_exists(const void *row)
{
    int fd = open_file(), told[2];
    EXPECT(pipe(told), ==, 0);
    struct ibv_context *context = local_open();
    EXPECT(exit_of(child_opens(fd, 0, told)), ==, EAGAIN);
    struct ibv_xrcd *ours = xrc_make_domain(context, fd, O_CREAT | O_EXCL);
    EXPECT_TRUE(ours);
    EXPECT(exit_of(child_opens(fd, O_CREAT | O_EXCL, told)), ==, EINVAL);
    pid_t child = child_opens(fd, 0, told);
    EXPECT(ibv_close_xrcd(ours), ==, 0);
    EXPECT_ERRNO(xrc_make_domain(context, fd, O_CREAT | O_EXCL), EINVAL); /* the child's */
    kill(child, SIGKILL);
    EXPECT(exit_of(child), ==, -1);
    EXPECT_ERRNO(xrc_make_domain(context, fd, 0), EAGAIN);
    EXPECT_TRUE(xrc_make_domain(context, fd, O_CREAT | O_EXCL));
    close(fd);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* -- a sender and two receivers, in two contexts */

struct room {
    struct ibv_context *context, *other; /* the sender's; the receivers' */
    struct ibv_xrcd *xrcd;
    struct ibv_pd *sender_pd, *pds[2];
    struct ibv_cq *sent, *received[2];
    struct ibv_srq *srqs[2];
    struct ibv_mr *from, *to[2];
    struct ibv_qp *sender, *receiver;
};

static struct ibv_srq *make_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
    struct ibv_srq *srq = xrc_make_srq(pd, xrcd, cq, 8);
    EXPECT_TRUE(srq);
    return srq;
}

static struct ibv_qp *make_receiver(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
    struct ibv_qp *qp = xrc_make_receiver(context, xrcd);
    EXPECT_TRUE(qp);
    return qp;
}

static struct ibv_qp *make_sender(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .qp_type = IBV_QPT_XRC_SEND, .cap = {.max_send_wr = 16, .max_send_sge = 1, .max_recv_wr = 7}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    EXPECT_TRUE(qp);
    EXPECT(init.cap.max_recv_wr, ==, 0);
    return qp;
}

static struct room open_room(void)
{
    struct room room = {.context = local_open(), .other = local_open()};
    room.xrcd = xrc_make_domain(room.other, -1, O_CREAT);
    room.sender_pd = ibv_alloc_pd(room.context);
    room.from = local_register(room.sender_pd);
    room.sent = ibv_create_cq(room.context, 16, NULL, NULL, 0);
    for (int i = 0; i < 2; i++) {
        room.pds[i] = ibv_alloc_pd(room.other);
        room.to[i] = local_register(room.pds[i]);
        room.received[i] = ibv_create_cq(room.other, 16, NULL, NULL, 0);
        room.srqs[i] = make_srq(room.pds[i], room.xrcd, room.received[i]);
    }
    room.sender = make_sender(room.sender_pd, room.sent);
    room.receiver = make_receiver(room.other, room.xrcd);
    local_connect(room.sender, room.receiver);
    return room;
}

static void close_room(struct room *room)
{
    void *memory[] = {room->from->addr, room->to[0]->addr, room->to[1]->addr};
    EXPECT(ibv_close_device(room->context), ==, 0);
    EXPECT(ibv_close_device(room->other), ==, 0);
    for (size_t i = 0; i < COUNT(memory); i++)
        free(memory[i]);
}

static uint32_t number_of(struct ibv_srq *srq)
{
    uint32_t number = 0;
    EXPECT(ibv_get_srq_num(srq, &number), ==, 0);
    return number;
}

static void post_receive(struct ibv_srq *srq, struct ibv_mr *mr, uint64_t id)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_srq_recv(srq, &wr, &bad), ==, 0);
}

static void post(struct room *room, struct ibv_send_wr wr, uint32_t srq, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)room->from->addr, length, room->from->lkey};
    struct ibv_send_wr *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.qp_type.xrc.remote_srqn = srq;
    EXPECT(ibv_post_send(room->sender, &wr, &bad), ==, 0);
}

static void send_to(struct room *room, uint32_t srq)
{
    post(room, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .wr_id = srq}, srq, 64);
}

static void the_packet_names_the_srq(const void *row)
{
    struct room room = open_room();
    EXPECT_TRUE(number_of(room.srqs[0]) != number_of(room.srqs[1]));
    for (int turn = 0; turn < 4; turn++) {
        int i = turn % 2;
        memset(room.from->addr, 'a' + turn, 64);
        post_receive(room.srqs[i], room.to[i], (uint64_t)turn);
        send_to(&room, number_of(room.srqs[i]));
        EXPECT(local_poll(room.sent).status, ==, IBV_WC_SUCCESS);
        struct ibv_wc wc = local_poll(room.received[i]);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        EXPECT(wc.wr_id, ==, turn);
        EXPECT(wc.qp_num, ==, room.receiver->qp_num);
        EXPECT(wc.byte_len, ==, 64);
        EXPECT(((char *)room.to[i]->addr)[63], ==, 'a' + turn);
        local_poll_nothing(room.received[!i]);
    }
    close_room(&room);
}

static void no_receive_in_the_named_srq_waits_for_one(const void *row)
{
    struct room room = open_room();
    post_receive(room.srqs[1], room.to[1], 7);
    send_to(&room, number_of(room.srqs[0]));
    local_poll_nothing(room.sent);
    post_receive(room.srqs[0], room.to[0], 8);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_SUCCESS);
    EXPECT(local_poll(room.received[0]).wr_id, ==, 8);
    local_poll_nothing(room.received[1]);
    close_room(&room);
}

/* Memory that a peer names must be of the PD of the SRQ which the packet names (IBA A14.5.1). */
static void remote_memory_is_of_the_srqs_domain(const void *row)
{
    struct room room = open_room();
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = (uintptr_t)room.to[1]->addr;
    wr.wr.rdma.rkey = room.to[1]->rkey;
    strcpy(room.from->addr, "written");
    post(&room, wr, number_of(room.srqs[1]), 8);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_SUCCESS);
    EXPECT(strcmp(room.to[1]->addr, "written"), ==, 0);
    wr.opcode = IBV_WR_RDMA_READ;
    strcpy(room.to[1]->addr, "read");
    post(&room, wr, number_of(room.srqs[1]), 8);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_SUCCESS);
    EXPECT(strcmp(room.from->addr, "read"), ==, 0);
    post(&room, wr, number_of(room.srqs[0]), 8);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_REM_ACCESS_ERR);
    EXPECT(local_event(room.other).event_type, ==, IBV_EVENT_QP_ACCESS_ERR);
    close_room(&room);
}

static void an_unknown_srq_is_an_invalid_request(const void *row)
{
    struct room room = open_room();
    send_to(&room, 0xfffffe);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_REM_INV_REQ_ERR);
    EXPECT(local_state(room.sender), ==, IBV_QPS_ERR);
    EXPECT(local_state(room.receiver), ==, IBV_QPS_ERR);
    close_room(&room);
}

/* The facts that `softverbs show` prints of the queue pair with this number. */
static const char *shown(uint32_t number)
{
    static char text[1 << 16];
    char command[512], key[32];
    snprintf(command, sizeof command, "%s show qps --json", COMMAND);
    FILE *output = popen(command, "r");
    EXPECT_TRUE(output);
    text[fread(text, 1, sizeof text - 1, output)] = 0;
    EXPECT(pclose(output), ==, 0);
    snprintf(key, sizeof key, "\"number\": %u,", number);
    char *begin = strstr(text, key);
    EXPECT_TRUE(begin);
    char *end = strstr(begin + 1, "\"number\": ");
    if (end)
        *end = 0;
    return begin;
}

/* The domain may be gone by then. */
static void a_queue_pair_has_the_domain_of_the_srq_that_was_named_last(const void *row)
{
    struct room room = open_room();
    post_receive(room.srqs[0], room.to[0], 1);
    send_to(&room, number_of(room.srqs[0]));
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_SUCCESS);
    EXPECT_TRUE(strstr(shown(room.receiver->qp_num), "\"pd\": "));
    send_to(&room, 0xfffffe);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_TRUE(!strstr(shown(room.receiver->qp_num), "\"pd\": "));
    close_room(&room);
}

static void an_srq_of_another_domain_is_refused(const void *row)
{
    struct room room = open_room();
    struct ibv_xrcd *stranger = xrc_make_domain(room.other, -1, O_CREAT);
    struct ibv_srq *srq = make_srq(room.pds[0], stranger, room.received[0]);
    post_receive(srq, room.to[0], 1);
    send_to(&room, number_of(srq));
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_REM_ACCESS_ERR);
    local_poll_nothing(room.received[0]);
    close_room(&room);
}

static void a_destroyed_srq_is_unknown(const void *row)
{
    struct room room = open_room();
    uint32_t number = number_of(room.srqs[0]);
    post_receive(room.srqs[0], room.to[0], 1);
    send_to(&room, number);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_SUCCESS);
    EXPECT(ibv_destroy_srq(room.srqs[0]), ==, 0);
    send_to(&room, number);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_REM_INV_REQ_ERR);
    close_room(&room);
}

static void builders_name_the_srq(const void *row)
{
    struct room room = open_room();
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_SEND,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = room.sender_pd,
                                       .send_cq = room.sent,
                                       .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM};
    struct ibv_qp *sender = ibv_create_qp_ex(room.context, &init), *receiver = make_receiver(room.other, room.xrcd);
    EXPECT_TRUE(sender);
    local_connect(sender, receiver);
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(sender);
    post_receive(room.srqs[1], room.to[1], 5);
    ibv_wr_start(qpx);
    qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(qpx, 0x1234);
    ibv_wr_set_xrc_srqn(qpx, number_of(room.srqs[1]));
    ibv_wr_set_sge(qpx, room.from->lkey, (uintptr_t)room.from->addr, 16);
    EXPECT(ibv_wr_complete(qpx), ==, 0);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_SUCCESS);
    struct ibv_wc wc = local_poll(room.received[1]);
    EXPECT(wc.imm_data, ==, 0x1234);
    EXPECT(wc.wc_flags & IBV_WC_WITH_IMM, !=, 0);
    close_room(&room);
}

/* -- handles */

static void an_opened_queue_pair_outlives_its_maker(const void *row)
{
    struct room room = open_room();
    int fd = open_file();
    struct ibv_xrcd *theirs = xrc_make_domain(room.other, fd, O_CREAT), *ours = xrc_make_domain(room.context, fd, 0);
    struct ibv_qp *made = make_receiver(room.other, theirs);
    struct ibv_qp *opened = xrc_make_handle(room.context, ours, made->qp_num);
    EXPECT_TRUE(opened && opened != made);
    EXPECT(opened->qp_num, ==, made->qp_num);
    EXPECT_TRUE(opened->qp_context == room.context);
    local_initialize(made);
    EXPECT(local_state(opened), ==, IBV_QPS_INIT);
    EXPECT(ibv_close_xrcd(theirs), ==, EBUSY);
    EXPECT(ibv_destroy_qp(made), ==, 0);
    EXPECT(ibv_close_xrcd(theirs), ==, 0);
    EXPECT(local_state(opened), ==, IBV_QPS_INIT);
    local_receive_from(opened, room.sender->qp_num);
    EXPECT(ibv_close_xrcd(ours), ==, EBUSY);
    uint32_t number = opened->qp_num;
    EXPECT(ibv_destroy_qp(opened), ==, 0);
    EXPECT_ERRNO(xrc_make_handle(room.context, ours, number), EINVAL);
    EXPECT(ibv_close_xrcd(ours), ==, 0);
    close(fd);
    close_room(&room);
}

static void every_handle_hears_of_events(const void *row)
{
    struct room room = open_room();
    struct ibv_qp *second = xrc_make_handle(room.other, room.xrcd, room.receiver->qp_num);
    struct ibv_async_event events[2];
    EXPECT_TRUE(second);
    send_to(&room, 0xfffffe);
    EXPECT(local_poll(room.sent).status, ==, IBV_WC_REM_INV_REQ_ERR);
    for (int i = 0; i < 2; i++) {
        events[i] = local_event(room.other);
        EXPECT(events[i].event_type, ==, IBV_EVENT_QP_REQ_ERR);
        EXPECT_TRUE(events[i].element.qp == second || events[i].element.qp == room.receiver);
    }
    EXPECT_TRUE(events[0].element.qp != events[1].element.qp);
    local_no_event(room.other);
    close_room(&room);
}

static void only_what_is_there_is_opened(const void *row)
{
    struct room room = open_room();
    struct ibv_xrcd *stranger = xrc_make_domain(room.other, -1, O_CREAT);
    EXPECT_ERRNO(xrc_make_handle(room.other, stranger, room.receiver->qp_num), EINVAL);
    EXPECT_ERRNO(xrc_make_handle(room.other, room.xrcd, room.sender->qp_num), EINVAL);
    EXPECT_ERRNO(xrc_make_handle(room.other, room.xrcd, 0xfffffe), EINVAL);
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM, .qp_num = room.receiver->qp_num};
    EXPECT_ERRNO(ibv_open_qp(room.other, &attr), EINVAL);
    attr.comp_mask = IBV_QP_OPEN_ATTR_RESERVED;
    EXPECT_ERRNO(ibv_open_qp(room.other, &attr), EOPNOTSUPP);
    close_room(&room);
}

/* -- rules */

static void users_keep_a_domain_open(const void *row)
{
    struct room room = open_room();
    EXPECT(ibv_close_xrcd(room.xrcd), ==, EBUSY);
    EXPECT(ibv_destroy_cq(room.received[0]), ==, EBUSY);
    EXPECT(ibv_destroy_qp(room.receiver), ==, 0);
    EXPECT(ibv_close_xrcd(room.xrcd), ==, EBUSY);
    for (int i = 0; i < 2; i++)
        EXPECT(ibv_destroy_srq(room.srqs[i]), ==, 0);
    EXPECT(ibv_close_xrcd(room.xrcd), ==, 0);
    EXPECT(ibv_destroy_cq(room.received[0]), ==, 0);
    close_room(&room);
}

static void what_makes_no_sense_is_refused(const void *row)
{
    struct room room = open_room();
    struct ibv_qp_init_attr_ex receiver = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = room.pds[0]};
    EXPECT_TRUE(!ibv_create_qp_ex(room.other, &receiver));
    struct ibv_qp_init_attr sender = {.qp_type = IBV_QPT_XRC_SEND, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
    EXPECT_ERRNO(ibv_create_qp(room.sender_pd, &sender), EINVAL);
    sender.send_cq = room.sent;
    sender.srq = room.srqs[0];
    EXPECT_ERRNO(ibv_create_qp(room.sender_pd, &sender), EINVAL);
    struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 1},
                                       .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                       .srq_type = IBV_SRQT_XRC,
                                       .pd = room.pds[0]};
    EXPECT_ERRNO(ibv_create_srq_ex(room.other, &srq), EINVAL);
    uint32_t number;
    struct ibv_srq *basic = ibv_create_srq(room.pds[0], &(struct ibv_srq_init_attr){.attr = {.max_wr = 1}});
    EXPECT(ibv_get_srq_num(basic, &number), ==, EINVAL);
    struct ibv_recv_wr wr = {0}, *bad;
    EXPECT(ibv_post_recv(room.sender, &wr, &bad), ==, EINVAL);
    EXPECT(ibv_post_recv(room.receiver, &wr, &bad), ==, EINVAL);
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
    EXPECT(ibv_post_send(room.receiver, &send, &bad_send), ==, EINVAL);
    close_room(&room);
}

static void all(void)
{
    CASE(a_domain_is_made_when_asked_for);
    CASE(an_anonymous_domain_is_nobody_elses);
    CASE(bad_domain_attributes_are_refused);
    CASE(processes_agree_whether_a_domain_exists);
    CASE(the_packet_names_the_srq);
    CASE(no_receive_in_the_named_srq_waits_for_one);
    CASE(remote_memory_is_of_the_srqs_domain);
    CASE(an_unknown_srq_is_an_invalid_request);
    CASE(a_queue_pair_has_the_domain_of_the_srq_that_was_named_last);
    CASE(an_srq_of_another_domain_is_refused);
    CASE(a_destroyed_srq_is_unknown);
    CASE(builders_name_the_srq);
    CASE(an_opened_queue_pair_outlives_its_maker);
    CASE(every_handle_hears_of_events);
    CASE(only_what_is_there_is_opened);
    CASE(users_keep_a_domain_open);
    CASE(what_makes_no_sense_is_refused);
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "--open"))
        return open_elsewhere(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    return harness_main(argc, argv, all);
}
