/* Mistakes in what is posted. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "public.h"

enum { HALF = LOOPBACK_MEMORY / 2, QKEY = 7 };

/* A request of the first queue pair for the second half of the memory. */
static struct ibv_send_wr request(const struct loopback *loopback, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)loopback->memory + HALF;
    wr.wr.rdma.rkey = loopback->mr->rkey;
    return wr;
}

/* -- 1 */

void read_into_own_memory_only(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    char *memory = aligned_alloc(4096, 4096);
    loopback_open(&loopback, &(struct loopback_options){.plain = true, .no_inline = true});
    int access = IBV_ACCESS_LOCAL_WRITE | (variant == TWIN ? IBV_ACCESS_REMOTE_WRITE : 0);
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, memory, 4096, access);
    MUST(mr);
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_READ, &sge);
    if (!ibv_post_send(loopback.qp[0], &wr, &bad)) /* 1 */
        loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
    free(memory);
}

/* -- posts that are refused, and whose result is not looked at: 2, 4, 11, 18 */

void read_inline(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge sge = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_READ, &sge);
    wr.send_flags |= variant == TWIN ? 0 : IBV_SEND_INLINE;
    ibv_post_send(loopback.qp[0], &wr, &bad); /* 2 */
    variant == TWIN ? (void)loopback_poll(&loopback, 1) : poll_in_vain(&loopback);
    loopback_close(&loopback);
}

void post_inline_too_long(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr granted, wanted = {.cap.max_inline_data = LOOPBACK_MEMORY};
    loopback_open(&loopback, &(struct loopback_options){0});
    MUST(!ibv_query_qp(loopback.qp[0], &attr, IBV_QP_CAP, &granted));
    uint32_t most = variant == TWIN ? granted.cap.max_inline_data : wanted.cap.max_inline_data;
    struct ibv_sge sge = loopback_piece(&loopback, 0, most < HALF ? most : HALF);
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, &sge);
    wr.send_flags |= IBV_SEND_INLINE;
    ibv_post_send(loopback.qp[0], &wr, &bad); /* 4 */
    variant == TWIN ? (void)loopback_poll(&loopback, 1) : poll_in_vain(&loopback);
    loopback_close(&loopback);
}

void post_too_many_elements(enum loopback_variant variant)
{
    enum { GRANTED = 2, PARTS = 4, PART = 64 };
    struct loopback loopback;
    struct ibv_send_wr *bad;
    struct ibv_sge sges[PARTS];
    loopback_open(&loopback, &(struct loopback_options){0});
    for (unsigned part = 0; part < PARTS; part++)
        sges[part] = loopback_piece(&loopback, 2 * part * PART, PART);
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, sges);
    wr.num_sge = variant == TWIN ? GRANTED : PARTS;
    ibv_post_send(loopback.qp[0], &wr, &bad); /* 11 */
    variant == TWIN ? (void)loopback_poll(&loopback, 1) : poll_in_vain(&loopback);
    loopback_close(&loopback);
}

/* One receive for each query, and no poll of what they bring. */
void receive_without_polls(enum loopback_variant variant)
{
    enum { QUERIES = LOOPBACK_DEPTH + 1 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge room = loopback_piece(&loopback, HALF, 64), sge = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr *unsent, send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    for (unsigned query = 0; query < QUERIES; query++, room.addr += 64) {
        struct ibv_recv_wr *bad, receive = {.wr_id = query, .sg_list = &room, .num_sge = 1};
        if (ibv_post_recv(loopback.qp[1], &receive, &bad)) /* 18 */
            continue;
        send.send_flags = query % 4 ? 0 : IBV_SEND_SIGNALED;
        ibv_post_send(loopback.qp[0], &send, &unsent); /* 18 */
        if (variant == TWIN)
            loopback_poll(&loopback, 1 + !(query % 4));
    }
    loopback_close(&loopback);
}

/* -- 7, 21, 25 */

void write_again_early(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge sge = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, &sge);
    for (int notification = 0; notification < 3; notification++) {
        if (variant == TWIN && notification)
            loopback_poll(&loopback, 1);
        memset(loopback.memory, notification, 64);
        MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* 7 */
    }
    loopback_poll(&loopback, variant == TWIN ? 1 : 3);
    loopback_close(&loopback);
}

void mix_regions(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    char *memory = aligned_alloc(4096, 4096);
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    struct ibv_sge sge = {(uintptr_t)memory, 64, variant == TWIN ? mr->lkey : loopback.mr->lkey};
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, &sge);
    MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* 21 */
    loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
    free(memory);
}

/* Each queue pair may have as many requests as the completion queue has entries. */
void overfill(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    struct loopback_options few = {.entries = LOOPBACK_DEPTH}, enough = {0};
    loopback_open(&loopback, variant == TWIN ? &enough : &few); /* 25: made in loopback.c */
    struct ibv_sge sge = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, &sge);
    for (int count = 0; count < LOOPBACK_DEPTH; count++)
        for (int end = 0; end < LOOPBACK_ENDS; end++)
            MUST(!ibv_post_send(loopback.qp[end], &wr, &bad)); /* 25 */
    if (variant == TWIN)
        loopback_poll(&loopback, LOOPBACK_DEPTH * LOOPBACK_ENDS);
    else
        poll_in_vain(&loopback);
    loopback_close(&loopback);
}

/* -- work that fails: 12, 14, 24 */

void merge_too_much(enum loopback_variant variant)
{
    enum { PARTS = 2 };
    const size_t each = 1 + ((size_t)1 << 29);
    struct loopback loopback;
    struct ibv_send_wr *bad;
    struct ibv_sge sges[PARTS];
    char *memory = mmap(NULL, each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(memory != MAP_FAILED);
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, memory, each, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    for (int part = 0; part < PARTS; part++)
        sges[part] = (struct ibv_sge){(uintptr_t)memory, variant == TWIN ? 64 : (uint32_t)each, mr->lkey};
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, sges);
    wr.num_sge = PARTS;
    ibv_post_send(loopback.qp[0], &wr, &bad) ? poll_in_vain(&loopback) : (void)loopback_poll(&loopback, 1); /* 12 */
    MUST(!ibv_dereg_mr(mr) && !munmap(memory, each));
    loopback_close(&loopback);
}

void give_other_key(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_context *other = ibv_open_device(loopback.context->device);
    struct ibv_pd *pd = ibv_alloc_pd(other);
    struct ibv_mr *mr =
        ibv_reg_mr(pd, loopback.memory, LOOPBACK_MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    MUST(mr);
    struct ibv_sge sge = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma.rkey = variant == TWIN ? loopback.mr->rkey : mr->rkey;
    MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* 14 */
    loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(other));
    loopback_close(&loopback);
}

void give_longer_region(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_send_wr *bad;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge sge = loopback_piece(&loopback, 0, 64);
    struct ibv_send_wr wr = request(&loopback, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma.remote_addr += variant == TWIN ? 0 : HALF - 32;
    MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* 24 */
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* -- datagrams: 3, 13, 23 */

struct datagrams {
    struct loopback loopback;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    struct ibv_sge sge, room;
    struct ibv_send_wr send;
};

static void open_datagrams(struct datagrams *all)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_ah_attr address = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};
    struct loopback *loopback = &all->loopback;
    loopback_open(loopback, &(struct loopback_options){0});
    struct ibv_qp_init_attr init = {.send_cq = loopback->cq, .recv_cq = loopback->cq, .qp_type = IBV_QPT_UD};
    init.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
    MUST(all->qp = ibv_create_qp(loopback->pd, &init));
    MUST(!ibv_modify_qp(all->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(all->qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(all->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    address.grh.sgid_index = (uint8_t)loopback_first_gid(loopback->context);
    MUST(!ibv_query_gid(loopback->context, 1, address.grh.sgid_index, &address.grh.dgid));
    MUST(all->ah = ibv_create_ah(loopback->pd, &address));
    all->sge = loopback_piece(loopback, 0, 64);
    all->room = loopback_piece(loopback, HALF, 256);
    all->send = (struct ibv_send_wr){.sg_list = &all->sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    all->send.send_flags = IBV_SEND_SIGNALED;
    all->send.wr.ud.ah = all->ah;
    all->send.wr.ud.remote_qpn = all->qp->qp_num;
    all->send.wr.ud.remote_qkey = QKEY;
}

static void expect_datagram(struct datagrams *all)
{
    struct ibv_recv_wr *bad, receive = {.sg_list = &all->room, .num_sge = 1};
    MUST(!ibv_post_recv(all->qp, &receive, &bad));
}

static void close_datagrams(struct datagrams *all)
{
    MUST((!all->ah || !ibv_destroy_ah(all->ah)) && !ibv_destroy_qp(all->qp));
    loopback_close(&all->loopback);
}

void destroy_address_at_once(enum loopback_variant variant)
{
    struct datagrams all;
    struct ibv_send_wr *bad;
    open_datagrams(&all);
    expect_datagram(&all);
    MUST(!ibv_post_send(all.qp, &all.send, &bad)); /* 3 */
    if (variant == TWIN)
        loopback_poll(&all.loopback, 2);
    MUST(!ibv_destroy_ah(all.ah)); /* 3 */
    all.ah = NULL;
    if (variant != TWIN)
        loopback_poll(&all.loopback, 2);
    close_datagrams(&all);
}

void reuse_datagram_early(enum loopback_variant variant)
{
    struct datagrams all;
    struct ibv_send_wr *bad;
    open_datagrams(&all);
    expect_datagram(&all);
    MUST(!ibv_post_send(all.qp, &all.send, &bad)); /* 13 */
    if (variant == TWIN)
        loopback_poll(&all.loopback, 2);
    memset(all.loopback.memory, 3, 64); /* the peer's answer has come by another way */
    if (variant != TWIN)
        loopback_poll(&all.loopback, 2);
    close_datagrams(&all);
}

void shorten_number(enum loopback_variant variant)
{
    struct datagrams all;
    struct ibv_send_wr *bad;
    open_datagrams(&all);
    expect_datagram(&all);
    uint16_t kept = (uint16_t)all.qp->qp_num;
    all.send.wr.ud.remote_qpn = variant == TWIN ? all.qp->qp_num : kept;
    MUST(!ibv_post_send(all.qp, &all.send, &bad)); /* 23 */
    loopback_poll(&all.loopback, 1 + (variant == TWIN));
    if (variant != TWIN) {
        poll_in_vain(&all.loopback);
        MUST(!ibv_modify_qp(all.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
        loopback_poll(&all.loopback, 1);
    }
    close_datagrams(&all);
}
