/* Work that ends in an error. */
#include "mistakes.h"

static struct ibv_send_wr make_write(const struct loopback *loopback, struct ibv_sge *sge)
{
    struct ibv_send_wr wr = {.wr_id = 9, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback->mr->rkey;
    return wr;
}

/* A key that no region of the peer has; an lkey that no region has, seen by the iterator. The twin's receive is flushed,
 * as it moves the queue pair to ERR. */
void fail_work(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.wc_flags = variant == NEIGHBOUR ? IBV_WC_EX_WITH_BYTE_LEN : 0});
    struct ibv_sge sge = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr *bad, write = make_write(&loopback, &sge);
    struct ibv_recv_wr *unreceived, receive = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
    if (variant == FAULTY) {
        write.wr.rdma.rkey ^= 0xff00;
        MUST(!ibv_post_send(loopback.qp[0], &write, &bad)); /* failed-work faulty */
        MUST(loopback_poll(&loopback, 1) == IBV_WC_REM_ACCESS_ERR);
    } else if (variant == NEIGHBOUR) {
        sge.lkey ^= 0xff00;
        MUST(!ibv_post_send(loopback.qp[0], &write, &bad)); /* failed-work neighbour */
        begin_poll(&loopback);
        MUST(loopback.cq_ex->status == IBV_WC_LOC_PROT_ERR);
        ibv_end_poll(loopback.cq_ex);
    } else {
        MUST(!ibv_post_recv(loopback.qp[0], &receive, &unreceived));
        MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
        MUST(loopback_poll(&loopback, 1) == IBV_WC_WR_FLUSH_ERR);
    }
    loopback_close(&loopback);
}

/* A message that is longer than its receive: both queue pairs fail. */
void receive_too_little(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge sge = loopback_piece(&loopback, 0, 64), little = loopback_piece(&loopback, 128, 8);
    struct ibv_recv_wr *unreceived, receive = {.wr_id = 9, .sg_list = &little, .num_sge = 1};
    struct ibv_send_wr *bad, send = make_write(&loopback, &sge);
    send.opcode = IBV_WR_SEND;
    MUST(!ibv_post_recv(loopback.qp[1], &receive, &unreceived));
    MUST(!ibv_post_send(loopback.qp[0], &send, &bad));
    loopback_poll(&loopback, 2);
    loopback_close(&loopback);
}

static void post_write(struct loopback *loopback, struct ibv_send_wr *write, unsigned flags)
{
    struct ibv_send_wr *bad;
    write->send_flags = flags;
    MUST(!ibv_post_send(loopback->qp[0], write, &bad));
}

/* Two WRITEs of one wr_id from two places. The first is unsignalled, and the second fails; the neighbour's are both
 * signalled, and the first fails. */
void fail_one_of_two(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge sge = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr right = make_write(&loopback, &sge), wrong = right;
    wrong.wr.rdma.rkey ^= 0xff00;
    if (variant == NEIGHBOUR) {
        post_write(&loopback, &wrong, IBV_SEND_SIGNALED);
        struct ibv_send_wr *bad;
        MUST(!ibv_post_send(loopback.qp[0], &right, &bad));
    } else {
        post_write(&loopback, &right, 0);
        struct ibv_send_wr *bad;
        MUST(!ibv_post_send(loopback.qp[0], &wrong, &bad));
    }
    MUST(loopback_poll(&loopback, 1) != IBV_WC_SUCCESS);
    loopback_close(&loopback);
}
