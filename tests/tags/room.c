#include "room.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <endian.h>

#include "base/testing/patience.h"

enum { GID_INDEX = 0, CQ_SIZE = 8192 };

/* A wait that began then has lasted for too long. */
static bool is_too_long(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) > PATIENCE_MANY_SECONDS;
}

struct ibv_srq *room_make_srq(struct room *room, struct ibv_srq_init_attr_ex *attr)
{
    *attr = (struct ibv_srq_init_attr_ex){
        .attr = {.max_wr = ROOM_RECEIVES, .max_sge = 2},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM,
        .pd = room->pd,
        .cq = ibv_cq_ex_to_cq(room->cq),
        .tm_cap = {.max_num_tags = room->tags, .max_ops = room->operations},
    };
    return ibv_create_srq_ex(room->context, attr);
}

bool room_open(struct room *room, uint32_t tags, uint32_t operations)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    *room = (struct room){.tags = tags, .operations = operations};
    room->context = list && *list ? ibv_open_device(*list) : NULL;
    ibv_free_device_list(list);
    if (!room->context)
        return false;
    struct ibv_cq_init_attr_ex cq = {.cqe = CQ_SIZE, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct ibv_srq_init_attr_ex srq;
    room->memory = aligned_alloc(4096, ROOM_MEMORY);
    memset(room->memory, 0, ROOM_MEMORY);
    room->pd = ibv_alloc_pd(room->context);
    room->channel = ibv_create_comp_channel(room->context);
    cq.channel = room->channel;
    room->cq = ibv_create_cq_ex(room->context, &cq);
    room->sender_channel = ibv_create_comp_channel(room->context);
    room->sender_cq = ibv_create_cq(room->context, CQ_SIZE, NULL, room->sender_channel, 0);
    room->mr = ibv_reg_mr(room->pd, room->memory, ROOM_MEMORY,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    room->srq = room->cq ? room_make_srq(room, &srq) : NULL;
    return room->srq && room->mr && room->sender_cq;
}

void room_close(struct room *room)
{
    for (int i = 0; i < ROOM_SENDERS; i++)
        room_disconnect(room, i);
    ibv_destroy_srq(room->srq);
    ibv_destroy_cq(ibv_cq_ex_to_cq(room->cq));
    ibv_destroy_cq(room->sender_cq);
    ibv_destroy_comp_channel(room->channel);
    ibv_destroy_comp_channel(room->sender_channel);
    ibv_dereg_mr(room->mr);
    ibv_dealloc_pd(room->pd);
    ibv_close_device(room->context);
    free(room->memory);
}

struct ibv_qp *room_make_tm_qp(struct room *room, uint32_t max_send_wr)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(room->cq),
        .recv_cq = ibv_cq_ex_to_cq(room->cq),
        .srq = room->srq,
        .cap = {.max_send_wr = max_send_wr, .max_send_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = room->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    return ibv_create_qp_ex(room->context, &attr);
}

bool room_join(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .sgid_index = GID_INDEX, .hop_limit = 64}},
    };
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    return !ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC);
}

bool room_connect(struct room *room, int sender)
{
    struct room_sender *to = &room->senders[sender];
    union ibv_gid gid;
    struct ibv_qp_init_attr attr = {
        .send_cq = room->sender_cq,
        .recv_cq = room->sender_cq,
        .cap = {.max_send_wr = 256, .max_recv_wr = 256, .max_send_sge = 2, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    if (ibv_query_gid(room->context, 1, GID_INDEX, &gid))
        return false;
    to->qp = ibv_create_qp(room->pd, &attr);
    to->tm_qp = room_make_tm_qp(room, 0);
    return to->qp && to->tm_qp && room_join(to->qp, to->tm_qp->qp_num, &gid) &&
           room_join(to->tm_qp, to->qp->qp_num, &gid);
}

void room_disconnect(struct room *room, int sender)
{
    struct room_sender *to = &room->senders[sender];
    if (to->qp)
        ibv_destroy_qp(to->qp);
    if (to->tm_qp)
        ibv_destroy_qp(to->tm_qp);
    to->qp = to->tm_qp = NULL;
}

static struct ibv_sge sge_at(struct room *room, uint32_t offset, uint32_t length)
{
    return (struct ibv_sge){.addr = (uintptr_t)(room->memory + offset), .length = length, .lkey = room->mr->lkey};
}

int room_add(struct room *room, uint64_t tag, uint64_t mask, uint64_t id, uint32_t offset, uint32_t length, int flags,
             uint32_t count, uint32_t *handle)
{
    struct ibv_sge sge = sge_at(room, offset, length);
    struct ibv_ops_wr wr = {.wr_id = id, .opcode = IBV_WR_TAG_ADD, .flags = flags}, *bad = NULL;
    wr.tm.unexpected_cnt = count;
    wr.tm.add.recv_wr_id = id;
    wr.tm.add.sg_list = &sge;
    wr.tm.add.num_sge = length > 0;
    wr.tm.add.tag = tag;
    wr.tm.add.mask = mask;
    int error = ibv_post_srq_ops(room->srq, &wr, &bad);
    if (handle)
        *handle = wr.tm.handle;
    return error;
}

int room_operate(struct room *room, enum ibv_ops_wr_opcode opcode, uint64_t id, uint32_t handle, int flags,
                 uint32_t count)
{
    struct ibv_ops_wr wr = {.wr_id = id, .opcode = opcode, .flags = flags}, *bad = NULL;
    wr.tm.unexpected_cnt = count;
    wr.tm.handle = handle;
    return ibv_post_srq_ops(room->srq, &wr, &bad);
}

int room_post(struct room *room, uint64_t id, uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = sge_at(room, offset, length);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_srq_recv(room->srq, &wr, &bad);
}

bool room_poll(struct room *room, struct room_event *event)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info;
    if (ibv_start_poll(room->cq, &attr))
        return false;
    ibv_wc_read_tm_info(room->cq, &info);
    *event = (struct room_event){
        .id = room->cq->wr_id,
        .status = room->cq->status,
        .opcode = ibv_wc_read_opcode(room->cq),
        .flags = ibv_wc_read_wc_flags(room->cq),
        .length = ibv_wc_read_byte_len(room->cq),
        .vendor = ibv_wc_read_vendor_err(room->cq),
        .qp_number = ibv_wc_read_qp_num(room->cq),
        .immediate = ibv_wc_read_imm_data(room->cq),
        .tag = info.tag,
        .application = info.priv,
    };
    ibv_end_poll(room->cq);
    return true;
}

void room_let_come(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* the time in which a forbidden message would arrive */
}

bool room_wait(struct room *room, struct room_event *event)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    *event = (struct room_event){.status = IBV_WC_GENERAL_ERR};
    while (!room_poll(room, event))
        if (is_too_long(&start))
            return false;
    return true;
}

uint8_t *room_upper(struct room *room, uint32_t offset)
{
    return room->memory + ROOM_HALF + offset;
}

void room_head(uint8_t *to, uint8_t opcode, uint32_t application, uint64_t tag)
{
    struct ibv_tmh head = {.opcode = opcode, .app_ctx = htobe32(application), .tag = htobe64(tag)};
    memcpy(to, &head, sizeof head);
}

void room_rendezvous_head(struct room *room, uint8_t *to, uint32_t application, uint64_t tag, uint32_t data,
                          uint32_t length)
{
    struct ibv_rvh rendezvous = {
        .va = htobe64((uintptr_t)room_upper(room, data)), .rkey = htobe32(room->mr->rkey), .len = htobe32(length)};
    room_head(to, IBV_TMH_RNDV, application, tag);
    memcpy(to + TMH, &rendezvous, sizeof rendezvous);
}

int room_send(struct room *room, int sender, uint64_t id, uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = sge_at(room, ROOM_HALF + offset, length);
    struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_send(room->senders[sender].qp, &wr, &bad);
}

int room_post_finish(struct room *room, int sender, uint64_t id, uint32_t offset)
{
    struct ibv_sge sge = sge_at(room, ROOM_HALF + offset, HEAD);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(room->senders[sender].qp, &wr, &bad);
}

bool room_sender_wait(struct room *room, struct ibv_wc *wc)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (!ibv_poll_cq(room->sender_cq, 1, wc))
        if (is_too_long(&start))
            return false;
    return true;
}
