/* Mistakes with queue pairs of SRD, which need a profile of EFA: mistakes_srd CASE VARIANT, as mistakes.c. A case
 * srd-RULE breaks a rule that other services have, too; each of those names the line of its faulty variant. */
#include <infiniband/efadv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mistakes.h"

struct ibv_qp *efadv_create_qp_ex(struct ibv_context *, struct ibv_qp_init_attr_ex *, struct efadv_qp_init_attr *,
                                  uint32_t inlen);

enum { QKEY = 0x1234, SIZE = 1 << 17, HALF = SIZE / 2, FOR_EVER = 7 };

/* One end of messages, with its protection domain. `handle` leads to this host. */
struct side {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;
    struct ibv_ah *handle;
    char *memory;
};

struct pair {
    struct ibv_context *context;
    union ibv_gid gid;
    struct side from, to;
};

static struct ibv_ah *make_handle(const struct pair *pair, struct ibv_pd *pd)
{
    struct ibv_ah *ah =
        ibv_create_ah(pd, &(struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.dgid = pair->gid}});
    MUST(ah);
    return ah;
}

static void run(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .rnr_retry = FOR_EVER};
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void open_side(const struct pair *pair, struct side *side, uint16_t flags)
{
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD, .flags = flags};
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_DRIVER,
        .cap = {LOOPBACK_DEPTH, LOOPBACK_DEPTH, 1, 1, 0},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    };
    side->memory = calloc(1, SIZE);
    side->pd = ibv_alloc_pd(pair->context);
    side->cq = ibv_create_cq(pair->context, 4 * LOOPBACK_DEPTH, NULL, NULL, 0);
    MUST(side->memory && side->pd && side->cq);
    side->mr = ibv_reg_mr(side->pd, side->memory, SIZE,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    attr.send_cq = attr.recv_cq = side->cq;
    attr.pd = side->pd;
    side->qp = efadv_create_qp_ex(pair->context, &attr, &efa, sizeof efa);
    MUST(side->mr && side->qp);
    side->ex = ibv_qp_to_qp_ex(side->qp);
    side->handle = make_handle(pair, side->pd);
    run(side->qp);
}

static void open_pair(struct pair *pair, uint16_t flags)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    MUST(list && *list);
    pair->context = ibv_open_device(*list);
    ibv_free_device_list(list);
    MUST(pair->context && !ibv_query_gid(pair->context, 1, 0, &pair->gid));
    open_side(pair, &pair->from, flags);
    open_side(pair, &pair->to, flags);
}

static void close_side(struct side *side)
{
    if (side->qp)
        MUST(!ibv_destroy_qp(side->qp));
    if (side->handle)
        MUST(!ibv_destroy_ah(side->handle));
    MUST(!ibv_dereg_mr(side->mr) && !ibv_destroy_cq(side->cq) && !ibv_dealloc_pd(side->pd));
    free(side->memory);
}

static void close_pair(struct pair *pair)
{
    close_side(&pair->from);
    close_side(&pair->to);
    MUST(!ibv_close_device(pair->context));
}

/* Polls until a completion is there, and must be of this work. */
static enum ibv_wc_status poll_one(const struct side *side, uint64_t id)
{
    struct ibv_wc wc;
    int found = 0;
    while (!found)
        found = ibv_poll_cq(side->cq, 1, &wc);
    MUST(found == 1 && wc.wr_id == id);
    return wc.status;
}

static struct ibv_sge piece(const struct side *side, unsigned at, unsigned length)
{
    return (struct ibv_sge){(uintptr_t)side->memory + at, length, side->mr->lkey};
}

/* Posts, as macros: the place of the post is in the case. */
#define SEND(pair, id, address, sge, flags)                                                                            \
    __extension__({                                                                                                    \
        struct ibv_sge one = sge;                                                                                      \
        struct ibv_send_wr *rest, wr = {.wr_id = id, .sg_list = &one, .num_sge = 1, .opcode = IBV_WR_SEND};            \
        wr.send_flags = flags;                                                                                         \
        wr.wr.ud.ah = address;                                                                                         \
        wr.wr.ud.remote_qpn = (pair)->to.qp->qp_num;                                                                   \
        wr.wr.ud.remote_qkey = QKEY;                                                                                   \
        ibv_post_send((pair)->from.qp, &wr, &rest);                                                                    \
    })

#define RECEIVE(side, id, sge)                                                                                         \
    __extension__({                                                                                                    \
        struct ibv_sge one = sge;                                                                                      \
        struct ibv_recv_wr *rest, wr = {.wr_id = id, .sg_list = &one, .num_sge = 1};                                   \
        ibv_post_recv((side)->qp, &wr, &rest);                                                                         \
    })

#define START(pair, id)                                                                                                \
    do {                                                                                                               \
        ibv_wr_start((pair)->from.ex);                                                                                 \
        (pair)->from.ex->wr_id = id;                                                                                   \
        (pair)->from.ex->wr_flags = IBV_SEND_SIGNALED;                                                                 \
    } while (0)

static uint64_t remote(const struct pair *pair, unsigned at)
{
    return (uintptr_t)pair->to.memory + at;
}

/* Gives the begun work 64 bytes from `at` and its receiver, and posts the batch. */
static void finish(struct pair *pair, unsigned at)
{
    ibv_wr_set_sge(pair->from.ex, pair->from.mr->lkey, (uintptr_t)pair->from.memory + at, 64);
    ibv_wr_set_ud_addr(pair->from.ex, pair->from.handle, pair->to.qp->qp_num, QKEY);
    MUST(!ibv_wr_complete(pair->from.ex));
}

static void write_plainly(struct pair *pair, uint64_t id, unsigned at)
{
    START(pair, id);
    ibv_wr_rdma_write(pair->from.ex, pair->to.mr->rkey, remote(pair, at));
    finish(pair, at);
}

/* --- rules of SRD */

/* No handle; one of another protection domain, at the target of a WRITE. */
static void lack_address(enum loopback_variant variant)
{
    struct pair pair;
    struct ibv_pd *other;
    struct ibv_ah *handle = NULL;
    open_pair(&pair, 0);
    other = ibv_alloc_pd(pair.context);
    MUST(other);
    if (variant != TWIN) {
        MUST(!ibv_destroy_ah(pair.to.handle));
        pair.to.handle = NULL;
    }
    if (variant == NEIGHBOUR)
        handle = make_handle(&pair, other);
    START(&pair, 1);
    if (variant == NEIGHBOUR)
        ibv_wr_rdma_write(pair.from.ex, pair.to.mr->rkey, remote(&pair, 0));
    else
        ibv_wr_rdma_read(pair.from.ex, pair.to.mr->rkey, remote(&pair, 0));
    finish(&pair, 0);
    MUST(poll_one(&pair.from, 1) == (variant == TWIN ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR));
    if (variant == NEIGHBOUR)
        MUST(!ibv_destroy_qp(pair.to.qp)); /* address-missing neighbour */
    else
        MUST(!ibv_destroy_qp(pair.to.qp)); /* address-missing faulty */
    pair.to.qp = NULL;
    if (handle)
        MUST(!ibv_destroy_ah(handle));
    MUST(!ibv_dealloc_pd(other));
    close_pair(&pair);
}

/* A datagram of UD of 64 bytes, to a receive with or without room for the header. */
static void send_datagram(struct pair *pair, unsigned room)
{
    struct ibv_qp_init_attr attr = {.send_cq = pair->from.cq, .recv_cq = pair->from.cq, .qp_type = IBV_QPT_UD};
    attr.cap = (struct ibv_qp_cap){2, 2, 1, 1, 0};
    struct side ends[2] = {pair->from, pair->from};
    for (int end = 0; end < 2; end++) {
        MUST(ends[end].qp = ibv_create_qp(pair->from.pd, &attr));
        run(ends[end].qp);
    }
    struct pair ud = {.from = ends[0], .to = ends[1]};
    MUST(!RECEIVE(&ud.to, 5, piece(&ud.to, HALF, room))); /* receive-short neighbour */
    MUST(!SEND(&ud, 1, ud.from.handle, piece(&ud.from, 0, 64), IBV_SEND_SIGNALED));
    MUST(poll_one(&ud.from, 1) == IBV_WC_SUCCESS);
    MUST(!ibv_destroy_qp(ud.from.qp) && !ibv_destroy_qp(ud.to.qp));
}

static void receive_too_little_of_srd(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    if (variant == NEIGHBOUR) {
        send_datagram(&pair, 64);
    } else {
        MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, variant == TWIN ? 64 : 63))); /* receive-short faulty */
        MUST(!SEND(&pair, 1, pair.from.handle, piece(&pair.from, 0, 64), IBV_SEND_SIGNALED));
        MUST(poll_one(&pair.from, 1) == (variant == TWIN ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR));
        if (variant == TWIN)
            MUST(poll_one(&pair.to, 5) == IBV_WC_SUCCESS);
    }
    close_pair(&pair);
}

/* 65536 bytes; one more. */
static void receive_too_much(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    if (variant == NEIGHBOUR)
        MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, UINT16_MAX + 2))); /* receive-wrapped neighbour */
    else
        MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, UINT16_MAX + (variant != TWIN)))); /* receive-wrapped faulty */
    close_pair(&pair);
}

/* A SEND after a WRITE; a WRITE with immediate. */
static void assume_order(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, HALF, 64)));
    write_plainly(&pair, 1, 0);
    if (variant == TWIN)
        MUST(poll_one(&pair.from, 1) == IBV_WC_SUCCESS);
    if (variant == NEIGHBOUR) {
        START(&pair, 2);
        ibv_wr_rdma_write_imm(pair.from.ex, pair.to.mr->rkey, remote(&pair, 64), 0); /* order-assumed neighbour */
        finish(&pair, 64);
    } else {
        MUST(!SEND(&pair, 2, pair.from.handle, piece(&pair.from, 0, 64), IBV_SEND_SIGNALED)); /* order-assumed faulty */
    }
    struct ibv_wc wc;
    for (int left = variant == TWIN ? 1 : 2; left;)
        left -= ibv_poll_cq(pair.from.cq, 1, &wc);
    MUST(poll_one(&pair.to, 5) == IBV_WC_SUCCESS);
    close_pair(&pair);
}

/* Two WRITEs; a READ of the last byte of a WRITE. */
static void overlap_targets(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    uint64_t at = remote(&pair, variant == TWIN ? 64 : 63);
    write_plainly(&pair, 1, 0);
    START(&pair, 2);
    if (variant == NEIGHBOUR)
        ibv_wr_rdma_read(pair.from.ex, pair.to.mr->rkey, at); /* targets-overlap neighbour */
    else
        ibv_wr_rdma_write(pair.from.ex, pair.to.mr->rkey, at); /* targets-overlap faulty */
    finish(&pair, 64);
    struct ibv_wc wc;
    for (int left = 2; left;)
        left -= ibv_poll_cq(pair.from.cq, 1, &wc);
    close_pair(&pair);
}

/* --- rules of all services */

/* The completion of a later WRITE ends no earlier SEND, which waits for a receive. */
static void change_after_another(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    struct ibv_sge from = piece(&pair.from, 0, 64);
    MUST(!SEND(&pair, 1, pair.from.handle, from, IBV_SEND_SIGNALED)); /* srd-send-buffer-changed faulty */
    write_plainly(&pair, 2, HALF);
    MUST(poll_one(&pair.from, 2) == IBV_WC_SUCCESS);
    if (variant != TWIN)
        pair.from.memory[8]++;
    MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, 64)));
    MUST(poll_one(&pair.from, 1) == IBV_WC_SUCCESS && poll_one(&pair.to, 5) == IBV_WC_SUCCESS);
    close_pair(&pair);
}

/* Where work requests share a wr_id, a completion does not say which one has ended. */
static void share_id_in_any_order(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    MUST(!SEND(&pair, 7, pair.from.handle, piece(&pair.from, 0, 64), IBV_SEND_SIGNALED));
    write_plainly(&pair, 7, HALF);
    MUST(poll_one(&pair.from, 7) == IBV_WC_SUCCESS);
    pair.from.memory[HALF]++;
    MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, 64)));
    MUST(poll_one(&pair.from, 7) == IBV_WC_SUCCESS && poll_one(&pair.to, 5) == IBV_WC_SUCCESS);
    close_pair(&pair);
}

static void destroy_handle(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    struct ibv_ah *handle = make_handle(&pair, pair.from.pd);
    if (variant == TWIN)
        MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, 64)));
    MUST(!SEND(&pair, 1, handle, piece(&pair.from, 0, 64), IBV_SEND_SIGNALED)); /* srd-ah-in-use faulty */
    if (variant == TWIN)
        MUST(poll_one(&pair.from, 1) == IBV_WC_SUCCESS && poll_one(&pair.to, 5) == IBV_WC_SUCCESS);
    MUST(!ibv_destroy_ah(handle));
    if (variant != TWIN)
        MUST(poll_one(&pair.from, 1) == IBV_WC_WR_FLUSH_ERR);
    close_pair(&pair);
}

static void name_other_region(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    struct ibv_sge from = piece(variant == TWIN ? &pair.from : &pair.to, 0, 64);
    if (variant == TWIN)
        MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, 64)));
    MUST(!SEND(&pair, 1, pair.from.handle, from, IBV_SEND_SIGNALED)); /* srd-wrong-key faulty */
    MUST(poll_one(&pair.from, 1) == (variant == TWIN ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR));
    if (variant == TWIN)
        MUST(poll_one(&pair.to, 5) == IBV_WC_SUCCESS);
    close_pair(&pair);
}

/* The entry of a WRITE with immediate that takes no receive has the wr_id of one that is still posted. */
static void deregister_unsolicited(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV);
    struct ibv_mr *mr = ibv_reg_mr(pair.to.pd, pair.to.memory, 64, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    struct ibv_sge target = {(uintptr_t)pair.to.memory, 64, mr->lkey};
    MUST(!RECEIVE(&pair.to, 0, target)); /* srd-region-in-use faulty */
    START(&pair, 1);
    ibv_wr_rdma_write_imm(pair.from.ex, pair.to.mr->rkey, remote(&pair, HALF), 0);
    finish(&pair, 0);
    MUST(poll_one(&pair.from, 1) == IBV_WC_SUCCESS && poll_one(&pair.to, 0) == IBV_WC_SUCCESS);
    if (variant == TWIN)
        MUST(!ibv_destroy_qp(pair.to.qp));
    pair.to.qp = variant == TWIN ? NULL : pair.to.qp;
    MUST(!ibv_dereg_mr(mr));
    close_pair(&pair);
}

static void post_too_late(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    if (variant == TWIN)
        MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, 64)));
    MUST(!SEND(&pair, 1, pair.from.handle, piece(&pair.from, 0, 64), IBV_SEND_SIGNALED));
    wait_longer_than_the_checker();
    struct ibv_wc wc;
    MUST(ibv_poll_cq(pair.to.cq, 1, &wc) == (variant == TWIN));
    MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, 64))); /* srd-receives-ran-out faulty */
    MUST(poll_one(&pair.from, 1) == IBV_WC_SUCCESS && (variant == TWIN || poll_one(&pair.to, 5) == IBV_WC_SUCCESS));
    close_pair(&pair);
}

/* An error ends one message, so the second one is reported, too. The iterator reads the opcode of failed work, which
 * EFA sets. */
static void fail_twice(enum loopback_variant variant)
{
    struct pair pair;
    open_pair(&pair, 0);
    START(&pair, 1);
    ibv_wr_rdma_read(pair.from.ex, pair.to.mr->rkey ^ 0xff00, remote(&pair, 0));
    finish(&pair, 0);
    MUST(poll_one(&pair.from, 1) == IBV_WC_REM_ACCESS_ERR);
    START(&pair, 2);
    ibv_wr_rdma_write(pair.from.ex, pair.to.mr->rkey ^ 0xff00, remote(&pair, 0));
    finish(&pair, 0);
    struct ibv_wc wc;
    while (!ibv_poll_cq(pair.from.cq, 1, &wc)) {
    }
    MUST(wc.wr_id == 2 && wc.status == IBV_WC_REM_ACCESS_ERR && wc.opcode == IBV_WC_RDMA_WRITE);
    close_pair(&pair);
}

/* Work without IBV_SEND_SIGNALED is refused, and the program waits for its end. */
static void post_unsignalled(enum loopback_variant variant)
{
    enum { ROUNDS = 600 };
    struct pair pair;
    struct ibv_wc wc;
    open_pair(&pair, 0);
    unsigned flags = variant == TWIN ? IBV_SEND_SIGNALED : 0;
    struct ibv_sge from = piece(&pair.from, 0, 64);
    if (variant == TWIN)
        MUST(!RECEIVE(&pair.to, 5, piece(&pair.to, 0, 64)));
    SEND(&pair, 1, pair.from.handle, from, flags); /* srd-post-refused faulty */
    for (int round = 0; round < ROUNDS && !ibv_poll_cq(pair.from.cq, 1, &wc); round++)
        usleep(1000);
    close_pair(&pair);
}

static const struct {
    const char *name;
    void (*run)(enum loopback_variant);
} cases[] = {
    {"address-missing", lack_address},       {"receive-short", receive_too_little_of_srd},
    {"receive-wrapped", receive_too_much},   {"order-assumed", assume_order},
    {"targets-overlap", overlap_targets},    {"srd-send-buffer-changed", change_after_another},
    {"srd-one-id", share_id_in_any_order},   {"srd-ah-in-use", destroy_handle},
    {"srd-wrong-key", name_other_region},    {"srd-region-in-use", deregister_unsolicited},
    {"srd-receives-ran-out", post_too_late}, {"srd-failed-work", fail_twice},
    {"srd-post-refused", post_unsignalled},
};

int main(int argc, char **argv)
{
    static const char *const variants[] = {[FAULTY] = "faulty", [TWIN] = "twin", [NEIGHBOUR] = "neighbour"};
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
        for (enum loopback_variant variant = FAULTY; variant <= NEIGHBOUR; variant++)
            if (!strcmp(cases[i].name, argv[1]) && !strcmp(variants[variant], argv[2])) {
                cases[i].run(variant);
                return 0;
            }
    fprintf(stderr, "mistakes_srd CASE faulty|twin|neighbour\n");
    return 2;
}
