/* The program of `softverbs around --selftest`: softverbs-selftest CAUSE [DEVICE]. Two queue pairs of a device,
 * connected with each other over its first port, one piece of work that is right or wrong as the cause says, and how it
 * ended, in a line. It uses verbs alone. `facts` prints what the device says of itself.
 *
 * Exit status: 0: the work has ended; 1 with a sentence on stderr. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 1024, TIMEOUT = 14, RETRIES = 2, SECONDS_MOST = 60, NOBODY = 0xabcdef };

static const struct cause {
    const char *name;
    enum ibv_wr_opcode opcode;
    unsigned length;
    uint32_t key;     /* added to the server's */
    long offset;      /* from the server's region */
    unsigned receive; /* bytes; 0: no receive is posted */
    uint32_t psn;     /* sq_psn of the client; the server expects 0 */
    bool forbidden;   /* the server's region allows no WRITE */
    bool nobody;      /* no queue pair has the number of the server */
    bool flushed;     /* the client's queue pair is in ERR before it posts */
} causes[] = {
#define SELFTEST(name, ...) {name, __VA_ARGS__},
#include "selftest.def"
};

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "softverbs-selftest: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL), **each = list;
    need(list, "ibv_get_device_list");
    while (*each && name && strcmp(ibv_get_device_name(*each), name) != 0)
        each++;
    errno = ENODEV;
    need(*each, name ? name : "no device");
    struct ibv_context *context = ibv_open_device(*each);
    need(context, "ibv_open_device");
    ibv_free_device_list(list);
    return context;
}

static void print_facts(struct ibv_context *context)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    need(!(errno = ibv_query_device(context, &attr)) && !(errno = ibv_query_port(context, 1, &port)), "ibv_query");
    printf("device %s: vendor 0x%x, part %u, hardware %u, firmware %s; port 1: %s, %s, MTU %d\n",
           ibv_get_device_name(context->device), attr.vendor_id, attr.vendor_part_id, attr.hw_ver, attr.fw_ver,
           ibv_port_state_str(port.state), port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand",
           128 << port.active_mtu);
}

/* -- two ends */

struct end {
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static char memory[2][ROOM];

static struct end make_end(struct ibv_pd *pd, char *room, int access)
{
    struct end end = {.mr = ibv_reg_mr(pd, room, ROOM, access), .cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0)};
    need(end.mr && end.cq, "ibv_reg_mr or ibv_create_cq");
    struct ibv_qp_init_attr init = {.send_cq = end.cq,
                                    .recv_cq = end.cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
    need((end.qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
    return end;
}

/* The first GID of RoCE v2, or of the port. */
static int find_gid(struct ibv_context *context, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    struct ibv_port_attr port;
    need(!(errno = ibv_query_port(context, 1, &port)), "ibv_query_port");
    for (unsigned index = 0; index < (unsigned)port.gid_tbl_len; index++)
        if (!ibv_query_gid_ex(context, 1, index, &entry, 0) && entry.gid_type == IBV_GID_TYPE_ROCE_V2) {
            *gid = entry.gid;
            return (int)index;
        }
    need(!ibv_query_gid(context, 1, 0, gid), "ibv_query_gid");
    return 0;
}

static struct ibv_ah_attr address_of(struct ibv_context *context, enum ibv_mtu *mtu)
{
    struct ibv_port_attr port;
    need(!(errno = ibv_query_port(context, 1, &port)), "ibv_query_port");
    *mtu = port.active_mtu;
    struct ibv_ah_attr address = {
        .port_num = 1, .dlid = port.lid, .is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET};
    if (address.is_global)
        address.grh.sgid_index = (uint8_t)find_gid(context, &address.grh.dgid);
    address.grh.hop_limit = 1;
    return address;
}

static void connect_end(const struct end *end, uint32_t peer, uint32_t psn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    need(!(errno = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)),
         "ibv_modify_qp to INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .dest_qp_num = peer, .min_rnr_timer = 1};
    attr.ah_attr = address_of(end->qp->context, &attr.path_mtu);
    need(!(errno = ibv_modify_qp(end->qp, &attr,
                                 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)),
         "ibv_modify_qp to RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = RETRIES, .rnr_retry = RETRIES, .sq_psn = psn};
    need(!(errno = ibv_modify_qp(end->qp, &attr,
                                 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                     IBV_QP_MAX_QP_RD_ATOMIC)),
         "ibv_modify_qp to RTS");
}

/* -- the work */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void post_receive(const struct end *end, unsigned length)
{
    struct ibv_sge sge = {(uintptr_t)end->mr->addr, length, end->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
    need(!(errno = ibv_post_recv(end->qp, &wr, &bad)), "ibv_post_recv");
}

static void post(const struct end *client, const struct end *server, const struct cause *cause)
{
    struct ibv_sge sge = {(uintptr_t)client->mr->addr, cause->length, client->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = cause->opcode};
    wr.wr.rdma.remote_addr = (uintptr_t)server->mr->addr + (uint64_t)cause->offset;
    wr.wr.rdma.rkey = server->mr->rkey + cause->key;
    need(!(errno = ibv_post_send(client->qp, &wr, &bad)), "ibv_post_send");
}

static struct ibv_wc await(struct ibv_cq *cq)
{
    struct ibv_wc wc = {0};
    int found = 0;
    for (double end = seconds() + SECONDS_MOST; !found && seconds() < end;)
        found = ibv_poll_cq(cq, 1, &wc);
    errno = ETIMEDOUT;
    need(found > 0, "no completion");
    return wc;
}

/* A receive of the other end may have failed, too. */
static void poll_for_a_while(struct ibv_cq *cq)
{
    const double a_while = 0.05;
    struct ibv_wc wc;
    for (double end = seconds() + a_while; seconds() < end;)
        ibv_poll_cq(cq, 1, &wc);
}

static void run(struct ibv_context *context, const struct cause *cause)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    need(pd, "ibv_alloc_pd");
    struct end client = make_end(pd, memory[0], IBV_ACCESS_LOCAL_WRITE),
               server =
                   make_end(pd, memory[1], IBV_ACCESS_LOCAL_WRITE | (cause->forbidden ? 0 : IBV_ACCESS_REMOTE_WRITE));
    connect_end(&client, cause->nobody ? NOBODY : server.qp->qp_num, cause->psn);
    connect_end(&server, client.qp->qp_num, 0);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    need(!cause->flushed || !(errno = ibv_modify_qp(client.qp, &error, IBV_QP_STATE)), "ibv_modify_qp to ERR");
    if (cause->receive)
        post_receive(&server, cause->receive);
    post(&client, &server, cause);
    struct ibv_wc wc = await(client.cq);
    printf("%s: %s, vendor_err %u (0x%x)\n", cause->name, ibv_wc_status_str(wc.status), wc.vendor_err, wc.vendor_err);
    poll_for_a_while(server.cq);
    ibv_destroy_qp(client.qp);
    ibv_destroy_qp(server.qp);
    ibv_destroy_cq(client.cq);
    ibv_destroy_cq(server.cq);
    ibv_dereg_mr(client.mr);
    ibv_dereg_mr(server.mr);
    ibv_dealloc_pd(pd);
}

int main(int argc, char **argv)
{
    struct ibv_context *context = open_device(argc > 2 ? argv[2] : NULL);
    if (argc > 1 && !strcmp(argv[1], "facts"))
        print_facts(context);
    for (const struct cause *cause = causes; argc > 1 && cause < causes + sizeof causes / sizeof *causes; cause++)
        if (!strcmp(cause->name, argv[1]))
            run(context, cause);
    return ibv_close_device(context) ? 1 : 0;
}
