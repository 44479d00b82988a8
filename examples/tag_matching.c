/* MPI's receive by tag matching in the device, in one sitting: two ranks, eager and rendezvous messages, and what to do
 * with a message that nobody expected. Run it with: softverbs run -- tag_matching
 *
 * A rank has an SRQ with a matching list (IBV_SRQT_TM). post_receive() puts a buffer with its tag on the list, the
 * device does the rest: it finds the buffer for each message, and fetches the data of large ones by itself. Only
 * messages that come before their buffer reach the program (unexpected()), which must then say how many it has seen,
 * since until it has, the device may not use newer buffers: a message would overtake an older one.
 *
 * docs/reference/tag-matching.md has the rules. Errors end the program; a real one would be kinder. */
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GID_INDEX = 0, EAGER_MOST = 4096, HEAD = sizeof(struct ibv_tmh), UNEXPECTED_MOST = 16, LARGE = 1 << 20 };

#define check(what) ((what) ? (void)0 : (perror(#what), exit(1)))

struct rank {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq_ex *cq; /* of the SRQ: buffers that were filled, operations, unexpected messages */
    struct ibv_srq *srq;
    struct ibv_qp *in;      /* from the other rank: its send queue is the device's own */
    struct ibv_cq *send_cq; /* of `out`: our messages, and the ends of our rendezvous */
    struct ibv_qp *out;     /* to the other rank: an ordinary queue pair */
    struct ibv_mr *mr;      /* all of the memory below */
    struct {
        char unexpected[UNEXPECTED_MOST][HEAD + EAGER_MOST];
        char message[HEAD + EAGER_MOST], finish[64];
        char data[2][LARGE];
    } memory;
    uint32_t seen; /* unexpected messages, which we report to the device */
};

static struct rank rank;

/* -- setting up */

static struct ibv_sge piece(void *at, size_t length)
{
    return (struct ibv_sge){.addr = (uintptr_t)at, .length = (uint32_t)length, .lkey = rank.mr->lkey};
}

/* Somewhere to put a message that comes before its buffer. */
static void post_unexpected(uint64_t slot)
{
    struct ibv_sge sge = piece(rank.memory.unexpected[slot], sizeof rank.memory.unexpected[slot]);
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    check(!ibv_post_srq_recv(rank.srq, &wr, &bad));
}

static void make_rank(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    check(devices && *devices);
    check((rank.context = ibv_open_device(*devices)));
    check((rank.pd = ibv_alloc_pd(rank.context)));
    check((rank.mr =
               ibv_reg_mr(rank.pd, &rank.memory, sizeof rank.memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)));
    struct ibv_cq_init_attr_ex cq = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    check((rank.cq = ibv_create_cq_ex(rank.context, &cq)));
    check((rank.send_cq = ibv_create_cq(rank.context, 64, NULL, NULL, 0)));
    struct ibv_srq_init_attr_ex srq = {
        .attr = {.max_wr = UNEXPECTED_MOST, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM,
        .pd = rank.pd,
        .cq = ibv_cq_ex_to_cq(rank.cq),
        .tm_cap = {.max_num_tags = 1024, .max_ops = 32},
    };
    check((rank.srq = ibv_create_srq_ex(rank.context, &srq)));
    for (uint64_t slot = 0; slot < UNEXPECTED_MOST; slot++)
        post_unexpected(slot);
    struct ibv_qp_init_attr in = {.send_cq = ibv_cq_ex_to_cq(rank.cq),
                                  .recv_cq = ibv_cq_ex_to_cq(rank.cq),
                                  .srq = rank.srq,
                                  .qp_type = IBV_QPT_RC}; /* with no send queue that is ours */
    check((rank.in = ibv_create_qp(rank.pd, &in)));
    struct ibv_qp_init_attr out = {.send_cq = rank.send_cq,
                                   .recv_cq = rank.send_cq,
                                   .qp_type = IBV_QPT_RC,
                                   .sq_sig_all = 1,
                                   .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    check((rank.out = ibv_create_qp(rank.pd, &out)));
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer, union ibv_gid gid)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = GID_INDEX, .hop_limit = 64}},
    };
    check(!ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    check(!ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC));
}

static void meet(int fd)
{
    struct {
        uint32_t in, out;
        union ibv_gid gid;
    } mine = {.in = rank.in->qp_num, .out = rank.out->qp_num}, peer;
    check(!ibv_query_gid(rank.context, 1, GID_INDEX, &mine.gid));
    check(write(fd, &mine, sizeof mine) == sizeof mine && read(fd, &peer, sizeof peer) == sizeof peer);
    connect_qp(rank.in, peer.out, peer.gid);
    connect_qp(rank.out, peer.in, peer.gid);
    check(write(fd, "", 1) == 1 && read(fd, &mine, 1) == 1); /* both are ready */
}

/* -- sending: nothing but SENDs */

static void wait_for(enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;
    do
        while (!ibv_poll_cq(rank.send_cq, 1, &wc))
            ;
    while (wc.status == IBV_WC_SUCCESS && wc.opcode != opcode);
    check(wc.status == IBV_WC_SUCCESS);
}

static void send_message(size_t length)
{
    struct ibv_sge sge = piece(rank.memory.message, length);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;
    check(!ibv_post_send(rank.out, &wr, &bad));
}

static void send_eager(uint64_t tag, const char *text)
{
    struct ibv_tmh head = {.opcode = IBV_TMH_EAGER, .tag = htobe64(tag)};
    memcpy(rank.memory.message, &head, sizeof head);
    strcpy(rank.memory.message + sizeof head, text);
    send_message(sizeof head + strlen(text) + 1);
    wait_for(IBV_WC_SEND);
}

/* Only says where the data are. They may change again when the FIN has come, for which we post a receive. */
static void send_rendezvous(uint64_t tag, void *data, uint32_t length)
{
    struct ibv_tmh head = {.opcode = IBV_TMH_RNDV, .tag = htobe64(tag)};
    struct ibv_rvh where = {.va = htobe64((uintptr_t)data), .rkey = htobe32(rank.mr->rkey), .len = htobe32(length)};
    struct ibv_sge sge = piece(rank.memory.finish, sizeof rank.memory.finish);
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    check(!ibv_post_recv(rank.out, &wr, &bad));
    memcpy(rank.memory.message, &head, sizeof head);
    memcpy(rank.memory.message + sizeof head, &where, sizeof where);
    send_message(sizeof head + sizeof where);
    wait_for(IBV_WC_RECV);
}

/* -- receiving */

/* Like MPI_Irecv; bits of the tag that are not in the mask are wild. */
static void post_receive(uint64_t id, uint64_t tag, uint64_t mask, void *buffer, uint32_t length)
{
    struct ibv_sge sge = piece(buffer, length);
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC}, *bad;
    wr.tm.unexpected_cnt = rank.seen; /* with it the device knows whether a message is on its way to us */
    wr.tm.add.recv_wr_id = id;
    wr.tm.add.tag = tag;
    wr.tm.add.mask = mask;
    wr.tm.add.sg_list = &sge;
    wr.tm.add.num_sge = 1;
    check(!ibv_post_srq_ops(rank.srq, &wr, &bad));
}

/* A real MPI keeps the message until its receive is posted, and takes back, with IBV_WR_TAG_DEL, buffers that would
 * have matched. (A rendezvous request that nobody expected would be answered with a READ and a FIN of our own.) */
static void unexpected(uint64_t slot)
{
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_TM_SYNC}, *bad;
    printf("unexpected: \"%s\"\n", rank.memory.unexpected[slot] + HEAD);
    post_unexpected(slot);
    wr.tm.unexpected_cnt = ++rank.seen;
    check(!ibv_post_srq_ops(rank.srq, &wr, &bad));
}

/* One completion; returns how many buffers it finished. */
static int progress(void)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info;
    if (ibv_start_poll(rank.cq, &attr))
        return 0;
    check(rank.cq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(rank.cq) == IBV_WC_TM_RECV);
    unsigned flags = ibv_wc_read_wc_flags(rank.cq);
    uint64_t id = rank.cq->wr_id;
    uint32_t length = ibv_wc_read_byte_len(rank.cq);
    ibv_wc_read_tm_info(rank.cq, &info);
    ibv_end_poll(rank.cq);
    if (flags & IBV_WC_TM_MATCH)
        printf("receive %lu: matched by tag 0x%lx\n", (unsigned long)id, (unsigned long)info.tag);
    if (flags & IBV_WC_TM_DATA_VALID)
        printf("receive %lu: has its %u bytes\n", (unsigned long)id, length);
    if (!(flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)))
        unexpected(id);
    return flags & IBV_WC_TM_DATA_VALID ? 1 : 0;
}

static void receiver(int fd)
{
    char *small = rank.memory.data[0], *large = rank.memory.data[1];
    post_receive(1, 0x100, 0xff00, small, EAGER_MOST); /* anything from 0x100 to 0x1ff */
    post_receive(2, 0x205, UINT64_MAX, large, LARGE);
    check(write(fd, "", 1) == 1);
    for (int done = 0; done < 2 || rank.seen < 1;)
        done += progress();
    printf("small: \"%s\", large: %s\n", small, large[0] == 'x' && large[LARGE - 1] == 'x' ? "complete" : "wrong");
    check(!strcmp(small, "hello by tag") && large[0] == 'x' && large[LARGE - 1] == 'x');
}

static void sender(int fd)
{
    char go;
    check(read(fd, &go, 1) == 1);
    send_eager(0x123, "hello by tag");
    send_eager(0x999, "nobody waits for me");
    memset(rank.memory.data[0], 'x', LARGE);
    send_rendezvous(0x205, rank.memory.data[0], LARGE);
}

int main(void)
{
    int fds[2], status = 0;
    check(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    pid_t child = fork();
    int fd = fds[child != 0];
    make_rank();
    meet(fd);
    if (!child) {
        sender(fd);
        return 0;
    }
    receiver(fd);
    check(wait(&status) == child && !status);
    return 0;
}
