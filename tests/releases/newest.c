/* A program compiled against the headers of release 65, with their layouts and inline functions: it uses what was added
 * after release 44, as such programs do, and must get an answer for each from whatever library it is given, built with
 * whatever headers. clients.py runs it where the headers are that new. Prints the number of checks. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, CANARY = 0xa5 };

static unsigned checks;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        checks++;                                                                                                      \
        if (!(condition)) {                                                                                            \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno);                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_OPERATION(name) CHECK(!verbs_get_ctx_op(context, name) || (uintptr_t)verbs->name > PAGE)

/* A verbs_context grows at its front, and says its size: the bytes before that are not looked at. */
static void check_operations(struct ibv_context *context)
{
    const struct verbs_context *verbs = verbs_get_ctx(context);
    CHECK(verbs && verbs->sz);
    CHECK_OPERATION(alloc_buf);
    CHECK_OPERATION(free_buf);
    CHECK_OPERATION(dm_export_dmabuf_fd);
    CHECK_OPERATION(reg_mr_ex);
    CHECK_OPERATION(alloc_dmah);
    CHECK_OPERATION(dealloc_dmah);
}

static void check_port(struct ibv_context *context)
{
    struct {
        struct ibv_port_attr attr;
        unsigned char behind[64];
    } port;
    uint64_t speed = 0;
    memset(&port, CANARY, sizeof port);
    CHECK(!ibv_query_port(context, 1, &port.attr));
    CHECK(port.attr.state == IBV_PORT_ACTIVE && port.attr.active_speed_ex != 0xa5a5a5a5);
    for (size_t i = 0; i < sizeof port.behind; i++)
        CHECK(port.behind[i] == CANARY);
    CHECK(!ibv_query_port_speed(context, 1, &speed) && speed);
}

static void check_memory(struct ibv_context *context, struct ibv_pd *pd)
{
    struct ibv_dmah_init_attr hints = {.comp_mask = IBV_DMAH_INIT_ATTR_MASK_PH, .ph = 1};
    struct ibv_dmah *dmah = ibv_alloc_dmah(context, &hints);
    struct ibv_buf *buf = NULL;
    char *memory = ibv_alloc_buf(pd, PAGE, &buf);
    CHECK(dmah && memory && buf);
    struct ibv_mr_init_attr attr = {.length = PAGE,
                                    .access = IBV_ACCESS_LOCAL_WRITE,
                                    .comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH | IBV_REG_MR_MASK_BUF,
                                    .addr = memory,
                                    .fd = -1,
                                    .dmah = dmah,
                                    .buf = buf};
    struct ibv_mr *whole = ibv_reg_mr_ex(pd, &attr),
                  *part = ibv_reg_buf_mr(pd, buf, memory + 8, 64, IBV_ACCESS_LOCAL_WRITE);
    CHECK(whole && part);
    CHECK(ibv_dealloc_dmah(dmah) == EBUSY);
    CHECK(!ibv_dereg_mr(whole) && !ibv_dereg_mr(part) && !ibv_dealloc_dmah(dmah));
    CHECK(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);
    ibv_free_buf(buf);
}

/* A descriptor, or the errno that rdma-core's own tests skip on. */
static void check_device_memory(struct ibv_context *context)
{
    struct ibv_alloc_dm_attr attr = {.length = PAGE};
    struct ibv_dm *dm = ibv_alloc_dm(context, &attr);
    CHECK(dm);
    CHECK(ibv_dm_export_dmabuf_fd(dm) >= 0 || errno == EOPNOTSUPP);
    CHECK(!ibv_free_dm(dm));
}

static struct ibv_qp_ex *create_qp(struct ibv_pd *pd, struct ibv_cq *cq, uint64_t operations)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = operations};
    struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &attr);
    CHECK(qp);
    return ibv_qp_to_qp_ex(qp);
}

static void connect_to_itself(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = qp->qp_num,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer = 12,
                                .ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1}};
    CHECK(!ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid));
    CHECK(!ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    CHECK(!ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC));
}

static void flush(struct ibv_qp_ex *qp, const struct ibv_mr *mr)
{
    ibv_wr_start(qp);
    qp->wr_id = 1;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_flush(qp, mr->rkey, (uintptr_t)mr->addr, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

static struct ibv_wc poll_one(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int got;
    while (!(got = ibv_poll_cq(cq, 1, &wc)))
        ;
    CHECK(got == 1);
    return wc;
}

/* FLUSH is the last operation of the largest ibv_qp_ex; counters count it. */
static void check_flush_and_counters(struct ibv_context *context, struct ibv_pd *pd)
{
    static char memory[PAGE];
    struct ibv_comp_cntr_caps caps;
    struct ibv_comp_cntr_init_attr what = {.type = IBV_COMP_CNTR_TYPE_WRS};
    struct ibv_qp_attach_comp_cntr_attr attach = {.op_mask = IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE};
    struct ibv_sge piece;
    uint64_t counted = 77;
    struct ibv_wc wc;
    struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL);
    CHECK(cq && mr);
    struct ibv_qp_ex *qp = create_qp(pd, cq, IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE),
                     *without = create_qp(pd, cq, IBV_QP_EX_WITH_SEND);
    CHECK(qp->wr_flush && without->wr_flush);
    CHECK(!ibv_query_comp_cntr_caps(context, &caps) && caps.max_counters);
    struct ibv_comp_cntr *counter = ibv_create_comp_cntr(context, &what);
    CHECK(counter && !ibv_qp_attach_comp_cntr(&qp->qp_base, counter, &attach));
    connect_to_itself(&qp->qp_base);
    connect_to_itself(&without->qp_base);

    flush(without, mr);
    if (!ibv_wr_complete(without)) /* which was made for other operations: done or refused */
        CHECK(poll_one(cq).status == IBV_WC_SUCCESS);

    flush(qp, mr);
    CHECK(!ibv_wr_complete(qp));
    wc = poll_one(cq);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_FLUSH);
    CHECK(!strcmp(ibv_wr_opcode_str(IBV_WR_FLUSH), "flush"));

    piece = (struct ibv_sge){(uintptr_t)memory, 64, mr->lkey};
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory + 128);
    ibv_wr_set_sge_list(qp, 1, &piece);
    CHECK(!ibv_wr_complete(qp));
    CHECK(poll_one(cq).status == IBV_WC_SUCCESS);
    CHECK(!ibv_read_comp_cntr(counter, &counted) && counted == 1);
    CHECK(ibv_query_qp_data_in_order(&qp->qp_base, IBV_WR_FLUSH, IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS) >= 0);

    CHECK(!ibv_destroy_qp(&qp->qp_base) && !ibv_destroy_qp(&without->qp_base));
    CHECK(!ibv_destroy_comp_cntr(counter) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
}

static void check_parent_domain(struct ibv_context *context, struct ibv_pd *pd)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd,
                                               .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC};
    struct ibv_pd *parent = ibv_alloc_parent_domain(context, &attr);
    CHECK(parent && !ibv_dealloc_pd(parent));
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    CHECK(list && list[0]);
    struct ibv_context *context = ibv_open_device(list[0]);
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    CHECK(pd);
    check_operations(context);
    check_port(context);
    check_memory(context, pd);
    check_device_memory(context);
    check_flush_and_counters(context, pd);
    check_parent_domain(context, pd);
    CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
    ibv_free_device_list(list);
    printf("%u answers\n", checks);
    return 0;
}
