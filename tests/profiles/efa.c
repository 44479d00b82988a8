/* The answers of an EFA to libefa, and its datagrams. Run by efa_test.py under each of the profiles of EFAs. Prints
 * TAP. */
#include <errno.h>
#include <infiniband/efadv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

/* A declaration of a release after 44. */
struct newer_comp_cntr_caps;
int _ibv_query_comp_cntr_caps(struct ibv_context *, struct newer_comp_cntr_caps *, size_t);

static uint32_t caps = 15; /* or an argument of the program */
enum { RDMA_CAPS = 9, RDMA_SIZE = 1 << 30, NUMBERS = 1 << 16, UNKNOWN = 0xffff, QKEY = 0x11111111 };
enum { GRH = 40, SHORT = 100, LONGEST = 8928 };

static unsigned cases, failures;
static struct ibv_context *context;
static struct ibv_port_attr port;
static union ibv_gid gid;

static void report(bool holds, const char *what)
{
    printf("%s %u - %s\n", holds ? "ok" : "not ok", ++cases, what);
    failures += !holds;
}

/* --- questions */

static void ask_device(void)
{
    struct efadv_device_attr attr;
    memset(&attr, 0xff, sizeof attr);
    report(!efadv_query_device(context, &attr, sizeof attr) && !attr.comp_mask && attr.max_sq_wr == 4096 &&
               attr.max_rq_wr == 32768 && attr.max_sq_sge == 2 && attr.max_rq_sge == 3 && attr.inline_buf_size == 32 &&
               attr.inline_buf_size_ex == 32,
           "the device has the sizes of the profile");
    report(attr.device_caps == caps && attr.max_rdma_size == RDMA_SIZE, "and its capabilities");
}

static bool is_untouched(const void *from, size_t length)
{
    const unsigned char *bytes = from;
    size_t i = 0;
    while (i < length && bytes[i] == 0xff)
        i++;
    return i == length;
}

/* Programs are compiled with structs of other releases. */
static void ask_device_with_other_lengths(void)
{
    union {
        struct efadv_device_attr attr;
        unsigned char bytes[64];
    } of;
    memset(&of, 0xff, sizeof of);
    report(efadv_query_device(context, &of.attr, 22) == EINVAL && errno == EINVAL && is_untouched(&of, sizeof of),
           "a struct without inline_buf_size_ex is refused");
    report(!efadv_query_device(context, &of.attr, 24) && of.attr.max_rq_wr == 32768 &&
               is_untouched(of.bytes + 24, sizeof of - 24),
           "a struct of release 26 gets its members alone");
    memset(&of, 0xff, sizeof of);
    report(!efadv_query_device(context, &of.attr, 28) && of.attr.device_caps == (caps & ~(uint32_t)RDMA_CAPS) &&
               is_untouched(of.bytes + 28, sizeof of - 28),
           "RDMA is no capability without room for max_rdma_size");
    memset(&of, 0xff, sizeof of);
    report(!efadv_query_device(context, &of.attr, 48) && of.attr.device_caps == caps && !of.bytes[32] &&
               !of.bytes[47] && is_untouched(of.bytes + 48, sizeof of - 48),
           "a longer struct of a later release gets zeroes");
}

static int sends(uint64_t mask, uint32_t flags, uint32_t sges, uint32_t rdma_sges, uint32_t bytes)
{
    struct efadv_sq_depth_attr attr = {mask, flags, sges, rdma_sges, bytes};
    return efadv_get_max_sq_depth(context, &attr, sizeof attr);
}

static int receives(uint64_t mask, uint32_t sges)
{
    struct efadv_rq_depth_attr attr = {.comp_mask = mask, .max_recv_sge = sges};
    return efadv_get_max_rq_depth(context, &attr, sizeof attr);
}

static void ask_region(void)
{
    static char memory[64];
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, 0);
    struct efadv_mr_attr attr;
    memset(&attr, 0xff, sizeof attr);
    report(efadv_query_mr(mr, &attr, 14) == EINVAL && is_untouched(&attr, sizeof attr),
           "a struct without rdma_recv_ic_id is refused");
    report(!efadv_query_mr(mr, &attr, sizeof attr) && !attr.comp_mask && !attr.ic_id_validity,
           "a region has no interconnect");
    report(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd), "the region ends");
}

static void ask_depths(void)
{
    struct efadv_sq_depth_attr sq = {0};
    struct efadv_rq_depth_attr rq = {.max_recv_sge = 1};
    report(sends(0, 0, 2, 1, 32) == 4096 && sends(0, EFADV_SQ_DEPTH_ATTR_INLINE_WRITE, 2, 1, 32) == 2048,
           "the depth of a send queue is half with wide work requests");
    report(sends(1, 0, 1, 1, 0) == -EINVAL && sends(0, 0, 3, 1, 0) == -EINVAL && sends(0, 0, 1, 2, 0) == -EINVAL &&
               sends(0, 0, 1, 1, 33) == -EINVAL && errno == EINVAL,
           "a send queue that the device can't have has no depth");
    report(receives(0, 1) == 32768 && receives(0, 3) == 10922, "receives share the elements of their queue");
    report(receives(0, 0) == -EINVAL && receives(0, 4) == -EINVAL && receives(2, 1) == -EINVAL,
           "a receive queue that the device can't have has no depth");
    report(efadv_get_max_sq_depth(context, &sq, 20) == -EINVAL && efadv_get_max_rq_depth(context, &rq, 8) == -EINVAL,
           "structs that are too short have none");
}

/* --- address handles */

static struct ibv_ah *make_ah(struct ibv_pd *pd, const union ibv_gid *to)
{
    return ibv_create_ah(pd, &(struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.dgid = *to}});
}

static int number_of(struct ibv_ah *ah)
{
    struct efadv_ah_attr attr;
    memset(&attr, 0xff, sizeof attr);
    int error = ah ? efadv_query_ah(ah, &attr, sizeof attr) : ENOMEM;
    return error || attr.comp_mask || attr.reserved[5] ? -1 : attr.ahn;
}

static void number_addresses(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(context), *other = ibv_alloc_pd(context);
    union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};
    struct efadv_ah_attr attr;
    struct ibv_ah *first = make_ah(pd, &gid), *again = make_ah(pd, &gid), *second = make_ah(pd, &group);
    struct ibv_ah *elsewhere = make_ah(other, &group);
    report(number_of(first) == 0 && number_of(again) == 0 && number_of(second) == 1,
           "handles of one GID have one number");
    report(number_of(elsewhere) == 0, "each protection domain counts from 0");
    report(efadv_query_ah(first, &attr, 8) == EINVAL, "a struct without ahn is refused");
    ibv_destroy_ah(first);
    report(number_of(again) == 0, "a number stays while a handle has it");
    ibv_destroy_ah(again);
    first = make_ah(pd, &group);
    report(number_of(first) == 1, "a GID that has a number gets no other");
    report(!ibv_destroy_ah(first) && !ibv_destroy_ah(second) && !ibv_destroy_ah(elsewhere) && !ibv_dealloc_pd(pd) &&
               !ibv_dealloc_pd(other),
           "all of them end");
}

/* --- calls that no device of softverbs has, and programs do without */

static void lack_calls(void)
{
    struct efadv_cq_attr attr = {0};
    struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    report(_ibv_query_comp_cntr_caps(context, NULL, 0) == EOPNOTSUPP, "it says that it has no counters of completions");
    errno = 0;
    report(!efadv_create_comp_cntr(context, NULL, NULL, 0) && errno == EOPNOTSUPP, "it has no counters of completions");
    report(efadv_query_cq(cq, &attr, sizeof attr) == EOPNOTSUPP, "no program writes its queues");
    ibv_destroy_cq(cq);
}

/* --- datagrams */

struct end {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    unsigned char memory[GRH + LONGEST];
};

static bool begin(struct end *end)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    end->pd = ibv_alloc_pd(context);
    end->cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    end->mr = ibv_reg_mr(end->pd, end->memory, sizeof end->memory, IBV_ACCESS_LOCAL_WRITE);
    end->qp = ibv_create_qp(end->pd, &(struct ibv_qp_init_attr){.send_cq = end->cq,
                                                                .recv_cq = end->cq,
                                                                .qp_type = IBV_QPT_UD,
                                                                .sq_sig_all = 1,
                                                                .cap = {4, 8192, 1, 3, 32}});
    if (!end->qp || ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        return false;
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE))
        return false;
    attr.qp_state = IBV_QPS_RTS;
    return !ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static void finish(struct end *end)
{
    report(!ibv_destroy_qp(end->qp) && !ibv_dereg_mr(end->mr) && !ibv_destroy_cq(end->cq) && !ibv_dealloc_pd(end->pd),
           "an end is destroyed");
}

static struct ibv_wc poll_one(struct end *end)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    int count;
    while (!(count = ibv_poll_cq(end->cq, 1, &wc)))
        ;
    return wc;
}

/* Sends so many bytes, and returns the completion of the receive. */
static struct ibv_wc pass(struct end *from, struct end *to, struct ibv_ah *ah, uint32_t length)
{
    struct ibv_sge out = {(uintptr_t)from->memory, length, from->mr->lkey};
    struct ibv_sge in = {(uintptr_t)to->memory, sizeof to->memory, to->mr->lkey};
    struct ibv_send_wr send = {.sg_list = &out,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .wr.ud = {.ah = ah, .remote_qpn = to->qp->qp_num, .remote_qkey = QKEY}},
                       *bad_send;
    struct ibv_recv_wr receive = {.sg_list = &in, .num_sge = 1}, *bad_receive;
    for (uint32_t i = 0; i < length; i++)
        from->memory[i] = (unsigned char)(i * 7 + i / 251);
    memset(to->memory, 0, sizeof to->memory);
    if (ibv_post_recv(to->qp, &receive, &bad_receive) || ibv_post_send(from->qp, &send, &bad_send) ||
        poll_one(from).status != IBV_WC_SUCCESS)
        return (struct ibv_wc){.status = IBV_WC_GENERAL_ERR};
    return poll_one(to);
}

static bool arrived(const struct end *from, const struct end *to, const struct ibv_wc *wc, uint32_t length)
{
    return wc->status == IBV_WC_SUCCESS && wc->byte_len == GRH + length && wc->src_qp == from->qp->qp_num &&
           !memcmp(to->memory + GRH, from->memory, length);
}

static void show_senders(struct end *from, struct end *to)
{
    struct ibv_ah *ah = make_ah(from->pd, &gid);
    struct ibv_wc wc = pass(from, to, ah, SHORT);
    report(arrived(from, to, &wc, SHORT) && wc.slid == UNKNOWN && !wc.sl && !wc.wc_flags && !wc.dlid_path_bits,
           "a sender without a handle at the receiver has the number 0xffff");
    union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};
    struct ibv_ah *before = make_ah(to->pd, &group), *back = make_ah(to->pd, &gid);
    wc = pass(from, to, ah, SHORT);
    report(arrived(from, to, &wc, SHORT) && wc.slid == number_of(back) && wc.slid == 1,
           "a sender with a handle has its number");
    ibv_destroy_ah(back);
    wc = pass(from, to, ah, SHORT);
    report(arrived(from, to, &wc, SHORT) && wc.slid == UNKNOWN, "and none after that");
    ibv_destroy_ah(before);
    ibv_destroy_ah(ah);
}

/* A message is one packet, longer than the MTU; and one byte more is too much. */
static void send_long(struct end *from, struct end *to)
{
    struct ibv_ah *ah = make_ah(from->pd, &gid);
    struct ibv_wc wc = pass(from, to, ah, LONGEST);
    report(port.max_msg_sz == LONGEST && arrived(from, to, &wc, LONGEST),
           "a datagram as long as the port's max_msg_sz");
    struct ibv_sge out = {(uintptr_t)from->memory, LONGEST + 1, from->mr->lkey};
    struct ibv_send_wr send = {.sg_list = &out,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .wr.ud = {.ah = ah, .remote_qpn = to->qp->qp_num, .remote_qkey = QKEY}},
                       *bad;
    report(!ibv_post_send(from->qp, &send, &bad) && poll_one(from).status == IBV_WC_LOC_LEN_ERR, "and a longer one");
    ibv_destroy_ah(ah);
}

static void exchange(void)
{
    static struct end from, to;
    bool ready = begin(&from) && begin(&to);
    report(ready, "queue pairs with 8192 receives of 3 elements");
    if (!ready)
        return;
    report(from.qp->qp_num < NUMBERS && to.qp->qp_num < NUMBERS, "numbers of queue pairs have 16 bits");
    show_senders(&from, &to);
    send_long(&from, &to);
    finish(&from);
    finish(&to);
}

int main(int argc, char **argv)
{
    caps = argc > 1 ? (uint32_t)atoi(argv[1]) : caps;
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    ibv_free_device_list(list);
    if (!context || ibv_query_port(context, 1, &port) || ibv_query_gid(context, 1, 0, &gid)) {
        printf("Bail out! no device\n");
        return 1;
    }
    ask_device();
    ask_device_with_other_lengths();
    ask_region();
    ask_depths();
    number_addresses();
    lack_calls();
    exchange();
    report(!ibv_close_device(context), "the device is closed");
    printf("1..%u\n", cases);
    return failures ? 1 : 0;
}
