/* One object of each kind, in states that facts_test.py knows: objects. It prints its process, and ends with its input.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop.h"

enum { ROOM = 4096, LIMIT = 2, TAGS = 8, OPERATIONS = 16 };

static char memory[ROOM];
static struct ibv_context *device;
static struct ibv_pd *pd;

static void *need(void *made, const char *what)
{
    if (made)
        return made;
    perror(what);
    exit(2);
}

static void demand(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "objects: %s fails: %d\n", what, error);
    exit(2);
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {.qp_type = type, .cap = {8, 4, 1, 1, 0}, .send_cq = cq, .recv_cq = cq, .srq = srq};
    return need(ibv_create_qp(pd, &init), "ibv_create_qp");
}

static void add_tag(struct ibv_srq *srq, struct ibv_mr *mr, uint64_t id, uint64_t mask)
{
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_ops_wr *bad, add = {.wr_id = id, .opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC};
    add.tm.add.recv_wr_id = id;
    add.tm.add.sg_list = &sge;
    add.tm.add.num_sge = 1;
    add.tm.add.tag = id;
    add.tm.add.mask = mask;
    demand(ibv_post_srq_ops(srq, &add, &bad), "ibv_post_srq_ops");
}

static void make_tags(struct ibv_cq *cq, struct ibv_mr *mr)
{
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 8, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = pd,
                                        .cq = cq,
                                        .tm_cap = {.max_num_tags = TAGS, .max_ops = OPERATIONS}};
    struct ibv_srq *srq = need(ibv_create_srq_ex(device, &init), "ibv_create_srq_ex");
    add_tag(srq, mr, 1, ~0ull);
    add_tag(srq, mr, 2, 0xff);
}

int main(void)
{
    char ignored;
    struct ibv_device **list = need(ibv_get_device_list(NULL), "ibv_get_device_list");
    device = need(ibv_open_device(*list), "ibv_open_device");
    pd = need(ibv_alloc_pd(device), "ibv_alloc_pd");
    struct ibv_mr *mr = need(ibv_reg_mr(pd, memory, ROOM, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
    struct ibv_comp_channel *channel = need(ibv_create_comp_channel(device), "ibv_create_comp_channel");
    struct ibv_cq *plain = need(ibv_create_cq(device, 8, NULL, NULL, 0), "ibv_create_cq");
    struct ibv_cq *armed = need(ibv_create_cq(device, 16, NULL, channel, 0), "ibv_create_cq");
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq *srq = need(ibv_create_srq(pd, &shared), "ibv_create_srq");
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_recv_wr *bad_receive, receive = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad, send = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    for (int i = 0; i < LIMIT + 2; i++)
        demand(ibv_post_srq_recv(srq, &receive, &bad_receive), "ibv_post_srq_recv");
    demand(ibv_modify_srq(srq, &(struct ibv_srq_attr){.srq_limit = LIMIT}, IBV_SRQ_LIMIT), "ibv_modify_srq");
    demand(ibv_req_notify_cq(armed, 1), "ibv_req_notify_cq");
    make_qp(IBV_QPT_UD, plain, NULL);
    struct ibv_qp *loop = make_qp(IBV_QPT_RC, plain, NULL), *sharing = make_qp(IBV_QPT_RC, armed, srq);
    loop_connect(loop, 14, 3, 6);
    loop_connect(sharing, 14, 3, 6);
    demand(ibv_post_recv(loop, &receive, &bad_receive), "ibv_post_recv");
    demand(ibv_post_recv(loop, &receive, &bad_receive), "ibv_post_recv");
    demand(ibv_post_send(loop, &send, &bad), "ibv_post_send");
    struct ibv_wc done;
    while (!ibv_poll_cq(plain, 1, &done))
        ;
    make_tags(armed, mr);
    printf("%d %u %u\n", (int)getpid(), loop->qp_num, sharing->qp_num);
    fflush(stdout);
    return read(0, &ignored, 1) < 0;
}
