/* How work of SRD ends in an error, each with its code of EFA (docs/reference/srd.md). Run by srd_errors_test.py, which
 * looks at the reasons in the log. Prints TAP. */
#include <errno.h>
#include <infiniband/efadv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

enum { QKEY = 0x11111111, SIZE = 64, WORKS = 8, RECEIVES = 4, LONGEST = 8928 };
enum {
    FLUSHED = 1,
    INTERNAL = 2,
    NO_LOCAL_ACCESS = 5,
    TOO_LONG = 6,
    NO_ACCESS = 7,
    FORGOT = 8,
    NO_QP = 9,
    NO_RECEIVE = 10,
    TOO_SHORT = 11,
    NO_ADDRESS = 14
};

static unsigned cases, failures;
static struct ibv_context *context;
static union ibv_gid gid;

static void report(bool holds, const char *what)
{
    printf("%s %u - %s\n", holds ? "ok" : "not ok", ++cases, what);
    failures += !holds;
}

/* --- memory that lacks on demand */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static bool starved;
enum { STARVES = false };
#else
static volatile bool starved;
enum { STARVES = true };
void *__libc_calloc(size_t count, size_t size);

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    return starved ? NULL : __libc_calloc(count, size);
}
#endif

/* --- two ends, each with its protection domain */

struct end {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_ah *ah; /* to this host */
    unsigned char memory[SIZE];
};

static struct end from, to;

static bool run(struct ibv_qp *qp, uint8_t rnr_retry)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .rnr_retry = rnr_retry};
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        return false;
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        return false;
    attr.qp_state = IBV_QPS_RTS;
    return !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY);
}

static struct ibv_ah *make_ah(struct ibv_pd *pd, const union ibv_gid *receiver)
{
    return ibv_create_ah(pd, &(struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.dgid = *receiver}});
}

static bool begin(struct end *end)
{
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
    end->pd = ibv_alloc_pd(context);
    end->cq = ibv_create_cq(context, WORKS + RECEIVES, NULL, NULL, 0);
    end->mr = ibv_reg_mr(end->pd, end->memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    struct ibv_qp_init_attr_ex init = {.send_cq = end->cq,
                                       .recv_cq = end->cq,
                                       .cap = {WORKS, RECEIVES, 1, 1, 0},
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = end->pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ};
    end->qp = efadv_create_qp_ex(context, &init, &efa, sizeof efa);
    return end->qp && run(end->qp, 1);
}

static bool post_receive(struct end *end, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, length, end->mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
    return !ibv_post_recv(end->qp, &receive, &bad);
}

static struct ibv_wc poll_one(struct ibv_cq *cq)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    while (!ibv_poll_cq(cq, 1, &wc))
        ;
    return wc;
}

static struct ibv_send_wr make_send(struct ibv_ah *ah, uint32_t receiver, uint32_t qkey, struct ibv_sge *sge)
{
    *sge = (struct ibv_sge){(uintptr_t)from.memory, SIZE, from.mr->lkey};
    return (struct ibv_send_wr){.sg_list = sge,
                                .num_sge = 1,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED,
                                .wr.ud = {.ah = ah, .remote_qpn = receiver, .remote_qkey = qkey}};
}

static struct ibv_wc send_to(struct ibv_ah *ah, uint32_t receiver, uint32_t qkey)
{
    struct ibv_sge sge;
    struct ibv_send_wr work = make_send(ah, receiver, qkey, &sge), *bad;
    if (ibv_post_send(from.qp, &work, &bad))
        return (struct ibv_wc){.status = IBV_WC_FATAL_ERR};
    return poll_one(from.cq);
}

static struct ibv_wc send_memory(struct ibv_sge sge)
{
    struct ibv_sge unused;
    struct ibv_send_wr work = make_send(from.ah, to.qp->qp_num, QKEY, &unused), *bad;
    work.sg_list = &sge;
    if (ibv_post_send(from.qp, &work, &bad))
        return (struct ibv_wc){.status = IBV_WC_FATAL_ERR};
    return poll_one(from.cq);
}

static struct ibv_wc read_from(uint32_t receiver, uint32_t rkey)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(from.qp);
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(qp, rkey, (uintptr_t)to.memory);
    ibv_wr_set_sge(qp, from.mr->lkey, (uintptr_t)from.memory, SIZE);
    ibv_wr_set_ud_addr(qp, from.ah, receiver, QKEY);
    return ibv_wr_complete(qp) ? (struct ibv_wc){.status = IBV_WC_FATAL_ERR} : poll_one(from.cq);
}

static bool ended(struct ibv_wc wc, enum ibv_wc_status status, uint32_t code)
{
    if (wc.status != status || wc.vendor_err != code)
        printf("# status %d, vendor_err %u\n", wc.status, wc.vendor_err);
    return wc.status == status && wc.vendor_err == code;
}

/* --- cases; after each of them the queue pair sends on */

static void lack_memory(void)
{
    if (!STARVES)
        return report(true, "no memory for the first flow # SKIP the sanitizer has calloc");
    starved = true;
    struct ibv_wc wc = send_to(from.ah, to.qp->qp_num, QKEY);
    starved = false;
    report(ended(wc, IBV_WC_LOC_QP_OP_ERR, INTERNAL), "no memory for the first flow");
}

static void send_one(const char *what)
{
    report(post_receive(&to, SIZE) && ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_SUCCESS, 0) &&
               ended(poll_one(to.cq), IBV_WC_SUCCESS, 0),
           what);
}

static void be_refused(void)
{
    report(ended(send_to(from.ah, 1 << 15 | 1, QKEY), IBV_WC_REM_INV_RD_REQ_ERR, NO_QP),
           "a queue pair that is not there");
    report(ended(send_to(from.ah, to.qp->qp_num, QKEY + 1), IBV_WC_REM_INV_RD_REQ_ERR, NO_QP), "another Q_Key");
    report(ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_RNR_RETRY_EXC_ERR, NO_RECEIVE), "no receive");
    report(post_receive(&to, SIZE - 1) &&
               ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_REM_INV_REQ_ERR, TOO_SHORT),
           "a receive that is too short");
    report(ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_REM_INV_REQ_ERR, TOO_SHORT), "which stays posted");
}

static void fail_locally(void)
{
    struct ibv_sge wrong_key = {(uintptr_t)from.memory, SIZE, from.mr->lkey + 1};
    struct ibv_sge too_long = {(uintptr_t)from.memory, LONGEST + 1, from.mr->lkey};
    report(ended(send_memory(wrong_key), IBV_WC_LOC_PROT_ERR, NO_LOCAL_ACCESS), "a send with another key");
    report(ended(send_memory(too_long), IBV_WC_LOC_LEN_ERR, TOO_LONG), "a send that is too long");
}

/* The receive ends, and the queue pair goes on. */
static void receive_with_another_key(void)
{
    struct ibv_sge sge = {(uintptr_t)to.memory, SIZE, to.mr->lkey + 1};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
    report(!ibv_post_recv(to.qp, &receive, &bad) &&
               ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_REM_INV_REQ_ERR, TOO_SHORT) &&
               ended(poll_one(to.cq), IBV_WC_LOC_PROT_ERR, NO_LOCAL_ACCESS),
           "a receive with another key");
}

static void read_some(void)
{
    report(ended(read_from(to.qp->qp_num, to.mr->rkey), IBV_WC_REM_OP_ERR, NO_ADDRESS),
           "a READ without an address handle");
    to.ah = make_ah(to.pd, &gid);
    report(ended(read_from(to.qp->qp_num, to.mr->rkey + 1), IBV_WC_REM_ACCESS_ERR, NO_ACCESS),
           "a READ with another key");
    report(ended(read_from(to.qp->qp_num, to.mr->rkey), IBV_WC_SUCCESS, 0), "a READ with an address handle");
}

/* All receives of the receiver are gone, too. */
static void be_forgotten(void)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET}, failed = {.qp_state = IBV_QPS_ERR};
    report(!ibv_modify_qp(to.qp, &failed, IBV_QP_STATE) &&
               ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_REM_INV_RD_REQ_ERR, NO_QP),
           "a queue pair in the error state");
    report(ended(poll_one(to.cq), IBV_WC_WR_FLUSH_ERR, FLUSHED), "its receive is flushed");
    report(!ibv_modify_qp(to.qp, &reset, IBV_QP_STATE) &&
               ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_REM_INV_RD_REQ_ERR, NO_QP),
           "a queue pair that was reset");
    report(run(to.qp, 1), "the receiver begins anew");
    report(ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_REM_ABORT_ERR, FORGOT), "and has forgotten the flow");
}

static void signal_nothing(void)
{
    struct ibv_sge sge;
    struct ibv_send_wr work = make_send(from.ah, to.qp->qp_num, QKEY, &sge), *bad;
    work.send_flags = 0;
    report(ibv_post_send(from.qp, &work, &bad) == EINVAL && bad == &work, "work that signals nothing");
}

static void send_some(void)
{
    lack_memory();
    send_one("a message");
    fail_locally();
    receive_with_another_key();
    be_refused();
    read_some();
    be_forgotten();
    send_one("a message to the receiver that began anew");
    signal_nothing();
}

/* An argument is the code that a SEND ends with under the faults of the caller. */
/* A rule of the user ends the first message, and it alone. */
static void be_scripted(enum ibv_wc_status status, uint32_t code)
{
    report(ended(send_to(from.ah, to.qp->qp_num, QKEY), status, code), "a message that a script ends");
    send_one("the next message arrives");
}

int main(int count, char *arguments[])
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    if (!context || ibv_query_gid(context, 1, 0, &gid) || !begin(&from) || !begin(&to)) {
        printf("Bail out! no device\n");
        return 1;
    }
    from.ah = make_ah(from.pd, &gid);
    if (count > 2)
        be_scripted((enum ibv_wc_status)atoi(arguments[2]), (uint32_t)atoi(arguments[1]));
    else if (count > 1)
        report(ended(send_to(from.ah, to.qp->qp_num, QKEY), IBV_WC_RESP_TIMEOUT_ERR, (uint32_t)atoi(arguments[1])),
               "silence");
    else
        send_some();
    report(!ibv_close_device(context), "the device is closed with all that is there");
    printf("1..%u\n", cases);
    return failures ? 1 : 0;
}
