/* Datagrams that are lost by a program's fault: datagrams NAME. Each NAME sends some datagrams from one queue pair to
 * another of this process; the right ones arrive. It prints how many arrived. The exit status is 0: what the screen
 * says besides is for datagrams_test.py. */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SENDS = 3, BYTES = 64, GRH = 40, QKEY = 8, NO_SHORT_NUMBER = 3 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *sent, *received;
static struct ibv_mr *mr;
static char memory[4096];
static union ibv_gid gid, group = {.raw = {0xff, 0x0e, [15] = 7}};

static void need(bool fine, const char *what)
{
    if (fine)
        return;
    perror(what);
    exit(2);
}

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0] && (context = ibv_open_device(list[0])), "ibv_open_device");
    pd = ibv_alloc_pd(context);
    sent = ibv_create_cq(context, 64, NULL, NULL, 0);
    received = ibv_create_cq(context, 64, NULL, NULL, 0);
    need(pd && sent && received && !ibv_query_gid(context, 1, 0, &gid), "the device's objects");
    mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    need(mr, "ibv_reg_mr");
}

static struct ibv_qp *make(enum ibv_qp_type type, uint32_t qkey)
{
    struct ibv_qp_init_attr init = {.send_cq = sent, .recv_cq = received, .qp_type = type, .cap = {8, 8, 1, 1, 0}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    need(qp, "ibv_create_qp");
    int last = type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last), "INIT");
    return qp;
}

static struct ibv_qp *begin(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
    attr.qp_state = IBV_QPS_RTS;
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
    return qp;
}

static struct ibv_qp *make_ud(void)
{
    return begin(make(IBV_QPT_UD, QKEY));
}

static struct ibv_qp *receive(struct ibv_qp *qp, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)memory, bytes, mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    for (int i = 0; i < SENDS; i++)
        need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
    return qp;
}

static void send_to(const union ibv_gid *to, uint32_t number, uint32_t qkey)
{
    struct ibv_ah_attr way = {.is_global = 1, .grh.dgid = *to, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(pd, &way);
    struct ibv_sge sge = {(uintptr_t)memory + 2048, BYTES, mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp *sender = make_ud();
    struct ibv_wc wc;
    need(ah, "ibv_create_ah");
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = number;
    wr.wr.ud.remote_qkey = qkey;
    for (int i = 0; i < SENDS; i++) {
        need(!ibv_post_send(sender, &wr, &bad), "ibv_post_send");
        while (!ibv_poll_cq(sent, 1, &wc))
            ;
        need(wc.status == IBV_WC_SUCCESS, "a send");
    }
}

static void send(const struct ibv_qp *to, uint32_t qkey)
{
    send_to(&gid, to->qp_num, qkey);
}

static void right(void)
{
    send(receive(make_ud(), GRH + BYTES), QKEY);
}

static void no_receive(void)
{
    send(make_ud(), QKEY);
}

static void no_room(void)
{
    send(receive(make_ud(), BYTES), QKEY);
}

static void wrong_qkey(void)
{
    send(receive(make_ud(), GRH + BYTES), QKEY - 1);
}

/* Two senders are two pairs. */
static void two_senders(void)
{
    struct ibv_qp *receiver = make_ud();
    send(receiver, QKEY - 1);
    send(receiver, QKEY - 1);
}

static void no_rtr(void)
{
    send(receive(make(IBV_QPT_UD, QKEY), GRH + BYTES), QKEY);
}

/* A program that ends moves its queue pairs to ERR while its peers still send. */
static void in_err(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp *receiver = make_ud();
    need(!ibv_modify_qp(receiver, &attr, IBV_QP_STATE), "ERR");
    send(receiver, QKEY);
}

static void to_rc(void)
{
    struct ibv_qp *receiver = make(IBV_QPT_RC, 0), *peer = make(IBV_QPT_RC, 0);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = peer->qp_num,
                               .ah_attr = {.is_global = 1, .grh.dgid = gid, .port_num = 1}};
    need(!ibv_modify_qp(receiver, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    send(receiver, QKEY);
}

static void nobody(void)
{
    send_to(&gid, make_ud()->qp_num ^ 0x400000, QKEY);
}

static void short_number(void)
{
    uint32_t number = make_ud()->qp_num;
    if (number <= UINT16_MAX)
        exit(NO_SHORT_NUMBER);
    send_to(&gid, (uint16_t)number, QKEY);
}

static void swapped_number(void)
{
    send_to(&gid, __builtin_bswap32(make_ud()->qp_num), QKEY);
}

static void destroyed(void)
{
    struct ibv_qp *receiver = make_ud();
    uint32_t number = receiver->qp_num;
    need(!ibv_destroy_qp(receiver), "ibv_destroy_qp");
    send_to(&gid, number, QKEY);
}

/* The parent sends once more to a process that had the number. */
static void ended(void)
{
    int up[2];
    uint32_t number;
    need(!pipe(up), "pipe");
    pid_t child = fork();
    if (!child) {
        open_device();
        number = receive(make_ud(), GRH + BYTES)->qp_num;
        need(write(up[1], &number, sizeof number) == sizeof number, "write");
        struct ibv_wc wc;
        for (int i = 0; i < SENDS;)
            i += ibv_poll_cq(received, 1, &wc);
        _exit(0);
    }
    open_device();
    need(read(up[0], &number, sizeof number) == sizeof number, "read");
    send_to(&gid, number, QKEY);
    waitpid(child, NULL, 0);
    /* A later process takes the dead one's place in the table. */
    pid_t next = fork();
    if (!next) {
        open_device();
        _exit(0);
    }
    waitpid(next, NULL, 0);
    send_to(&gid, number, QKEY);
}

static void empty_group(void)
{
    send_to(&group, 0xffffff, QKEY);
}

static void joined_group(void)
{
    need(!ibv_attach_mcast(receive(make_ud(), GRH + BYTES), &group, 0), "ibv_attach_mcast");
    send_to(&group, 0xffffff, QKEY);
}

static const struct {
    const char *name;
    void (*run)(void);
    bool opens; /* it opens the device itself */
    int arrives;
} cases[] = {
    {"right", right, .arrives = SENDS},
    {"no-receive", no_receive},
    {"no-room", no_room},
    {"wrong-qkey", wrong_qkey},
    {"two-senders", two_senders},
    {"no-rtr", no_rtr},
    {"in-err", in_err},
    {"to-rc", to_rc},
    {"nobody", nobody},
    {"short-number", short_number},
    {"swapped-number", swapped_number},
    {"destroyed", destroyed},
    {"ended", ended, true},
    {"empty-group", empty_group},
    {"joined-group", joined_group, .arrives = SENDS},
};

int main(int argc, char **argv)
{
    struct ibv_wc wc[16];
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            if (!cases[i].opens)
                open_device();
            cases[i].run();
            int arrived = ibv_poll_cq(received, 16, wc);
            while (arrived < cases[i].arrives)
                arrived += ibv_poll_cq(received, 16, wc);
            printf("%d arrived\n", arrived);
            return 0;
        }
    return 2;
}
