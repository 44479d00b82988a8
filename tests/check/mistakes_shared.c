/* Programs that break no rule: queue pairs of one shared receive queue. */
#include <string.h>

#include "mistakes.h"

enum { SIZE = 256, SMALL = 16 };

static void send_from(const struct loopback *loopback, struct ibv_qp *qp, struct ibv_cq *cq, unsigned bytes)
{
    struct ibv_sge piece = loopback_piece(loopback, 0, bytes);
    struct ibv_send_wr *rest, wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct loopback sender = {.cq = cq};
    wr.send_flags = IBV_SEND_SIGNALED;
    MUST(!ibv_post_send(qp, &wr, &rest));
    MUST(!loopback_poll(&sender, 1));
}

/* A queue pair with a separate CQ that takes its receives from the SRQ, and its peer, whose CQ is the loopback's. */
static void make_receiver(const struct loopback *loopback, struct ibv_qp *qps[2], struct ibv_cq *cq)
{
    const struct loopback_options usual = {0};
    struct loopback end = *loopback;
    end.srq = NULL;
    qps[0] = loopback_make_qp(&end, &usual);
    end.srq = loopback->srq;
    end.cq = cq;
    qps[1] = loopback_make_qp(&end, &usual);
    loopback_connect(loopback, qps[0], qps[1]->qp_num, &usual);
    loopback_connect(loopback, qps[1], qps[0]->qp_num, &usual);
}

/* All receives have wr_id 0, and the completion of the second is polled first: its buffer is the program's then, which
 * writes and deregisters it. */
void share_with_one_id(enum loopback_variant variant)
{
    struct loopback loopback, ends[2] = {{0}};
    struct ibv_qp *qps[2][2];
    struct ibv_mr *mr[2];
    loopback_open(&loopback, &(struct loopback_options){.srq = true});
    for (int at = 0; at < 2; at++) {
        char *memory = loopback.memory + LOOPBACK_MEMORY / 2 + at * SIZE;
        MUST(ends[at].cq = ibv_create_cq(loopback.context, LOOPBACK_DEPTH, NULL, NULL, 0));
        make_receiver(&loopback, qps[at], ends[at].cq);
        MUST(mr[at] = ibv_reg_mr(loopback.pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE));
        struct ibv_sge piece = {(uintptr_t)memory, SIZE, mr[at]->lkey};
        struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
        MUST(!ibv_post_srq_recv(loopback.srq, &receive, &bad));
    }
    send_from(&loopback, qps[0][0], loopback.cq, SIZE);
    send_from(&loopback, qps[1][0], loopback.cq, SMALL);
    MUST(!loopback_poll(&ends[1], 1));
    memset(loopback.memory + LOOPBACK_MEMORY / 2 + SIZE, 9, SIZE);
    MUST(!ibv_dereg_mr(mr[1]));
    MUST(!loopback_poll(&ends[0], 1));
    for (int at = 0; at < 2; at++)
        MUST(!ibv_destroy_qp(qps[at][0]) && !ibv_destroy_qp(qps[at][1]) && !ibv_destroy_cq(ends[at].cq));
    MUST(!ibv_dereg_mr(mr[0]));
    loopback_close(&loopback);
}
