#include "set_up.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/queue/cq.h"
#include "verbs/queue/cq_ring.h"

struct objects on;

#define MUST(condition) ((condition) ? (void)0 : must(#condition, __LINE__))

static void must(const char *condition, int line)
{
    fprintf(stderr, "set_up.c:%d: not %s: %s\n", line, condition, strerror(errno));
    exit(1);
}

void *allocate_nothing(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t resource)
{
    return NULL;
}

static void *allocate_odd(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t resource)
{
    return on.memory + 1;
}

void free_nothing(struct ibv_pd *pd, void *context, void *memory, uint64_t resource)
{
}

static void open_contexts(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    MUST(list && list[0]);
    on.context = ibv_open_device(list[0]);
    on.other = ibv_open_device(list[0]);
    MUST(on.context && on.other);
    ibv_free_device_list(list);
    MUST(!ibv_query_gid(on.context, 1, 0, &on.gid));
    memcpy(on.far.raw, (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [14] = 8, [15] = 7}, 16);
    memcpy(on.group.raw, (uint8_t[16]){0xff, 0x12, [15] = 1}, 16);
}

/* A file as a process makes for its context, of one that is not this. */
static int forge_context(void)
{
    static const char text[] = "softverbs context of process 1\n";
    int fd = memfd_create("forged", MFD_CLOEXEC);
    MUST(fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1);
    return fd;
}

static void make_files(void)
{
    on.file = memfd_create("file", MFD_CLOEXEC);
    on.xrcd_file = memfd_create("xrcd", MFD_CLOEXEC);
    on.third_file = memfd_create("third", MFD_CLOEXEC);
    on.forged = forge_context();
    MUST(on.file >= 0 && on.xrcd_file >= 0 && !ftruncate(on.file, 4096) && !pipe2(on.pipe, O_CLOEXEC));
}

static struct ibv_pd *make_domain(struct ibv_pd *pd, struct ibv_td *td,
                                  void *(*allocate)(struct ibv_pd *, void *, size_t, size_t, uint64_t))
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td, .alloc = allocate, .free = free_nothing};
    attr.comp_mask = allocate ? IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS : 0;
    struct ibv_pd *domain = ibv_alloc_parent_domain(pd->context, &attr);
    MUST(domain);
    return domain;
}

static void make_domains(void)
{
    MUST((on.pd = ibv_alloc_pd(on.context)) && (on.empty_pd = ibv_alloc_pd(on.context)));
    MUST((on.other_pd = ibv_alloc_pd(on.other)));
    MUST((on.td = ibv_alloc_td(on.context, &(struct ibv_td_init_attr){0})));
    MUST((on.other_td = ibv_alloc_td(on.other, &(struct ibv_td_init_attr){0})));
    on.used_domain = make_domain(on.pd, on.td, NULL);
    on.other_domain = make_domain(on.other_pd, NULL, NULL);
    on.poor_domain = make_domain(on.pd, NULL, allocate_nothing);
    on.odd_domain = make_domain(on.pd, NULL, allocate_odd);
    MUST((ibv_reg_mr)(on.used_domain, on.memory, 8, 0));
}

static void make_memory(void)
{
    enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND };
    MUST((on.mr = (ibv_reg_mr)(on.pd, on.memory, PAGES, ALL)));
    MUST((on.bound_mr = (ibv_reg_mr)(on.pd, on.memory, PAGES, ALL)));
    MUST((on.mr_elsewhere = (ibv_reg_mr)(on.other_pd, on.memory, PAGES, ALL)));
    MUST((on.null_mr = ibv_alloc_null_mr(on.pd)));
    MUST((on.odp = (ibv_reg_mr)(on.pd, on.memory, PAGES, IBV_ACCESS_ON_DEMAND)));
    MUST((on.odp_elsewhere = (ibv_reg_mr)(on.empty_pd, on.memory, PAGES, IBV_ACCESS_ON_DEMAND)));
    MUST((on.odp_all = (ibv_reg_mr)(on.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND)));
    MUST((on.mw = ibv_alloc_mw(on.pd, IBV_MW_TYPE_1)) && (on.mw2 = ibv_alloc_mw(on.pd, IBV_MW_TYPE_2)));
    MUST((on.dm = ibv_alloc_dm(on.context, &(struct ibv_alloc_dm_attr){.length = 64})));
    MUST((on.free_dm = ibv_alloc_dm(on.context, &(struct ibv_alloc_dm_attr){.length = 64})));
    MUST((on.dm_mr = ibv_reg_dm_mr(on.pd, on.dm, 0, 64, IBV_ACCESS_ZERO_BASED)));
    struct newer_dmah_init_attr hints = {.comp_mask = NEWER_DMAH_PH};
    on.dmah = newer_ibv_alloc_dmah(on.context, &hints);
    on.used_dmah = newer_ibv_alloc_dmah(on.context, &hints);
    on.other_dmah = newer_ibv_alloc_dmah(on.other, &hints);
    MUST(on.dmah && on.used_dmah && on.other_dmah);
    MUST(newer_ibv_reg_mr_ex(
        on.pd, &(struct newer_mr_init_attr){
                   .length = 8, .comp_mask = NEWER_MR_ADDR | NEWER_MR_DMAH, .addr = on.memory, .dmah = on.used_dmah}));
    MUST(newer_ibv_alloc_buf(on.pd, 64, &on.buffer) && newer_ibv_alloc_buf(on.other_pd, 64, &on.other_buffer));
}

static struct newer_comp_cntr *make_counter(struct ibv_context *context)
{
    struct newer_comp_cntr *counter = newer_ibv_create_comp_cntr(context, &(struct newer_comp_cntr_init_attr){0});
    MUST(counter);
    return counter;
}

static void make_queues(void)
{
    MUST((on.channel = ibv_create_comp_channel(on.context)) && (on.other_channel = ibv_create_comp_channel(on.other)));
    MUST((on.cq = ibv_create_cq(on.context, 64, NULL, on.channel, 0)));
    MUST((on.full_ex = ibv_create_cq_ex(on.context, &(struct ibv_cq_init_attr_ex){.cqe = 8})));
    on.full_cq = ibv_cq_ex_to_cq(on.full_ex);
    MUST((on.other_cq = ibv_create_cq(on.other, 8, NULL, NULL, 0)));
    on.counter = make_counter(on.context);
    on.used_counter = make_counter(on.context);
    on.other_counter = make_counter(on.other);
}

static struct ibv_srq *make_srq(enum ibv_srq_type type, uint32_t mask)
{
    struct ibv_srq_init_attr_ex attr = {.attr = {2, 1},
                                        .comp_mask =
                                            IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ | mask,
                                        .srq_type = type,
                                        .pd = on.pd,
                                        .cq = on.cq,
                                        .xrcd = on.xrcd,
                                        .tm_cap = {1, 1}};
    struct ibv_srq *srq = ibv_create_srq_ex(on.context, &attr);
    MUST(srq);
    return srq;
}

static struct ibv_xrcd *make_xrcd(struct ibv_context *context, int file)
{
    struct ibv_xrcd_init_attr attr = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, file, O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &attr);
    MUST(xrcd);
    return xrcd;
}

static void make_srqs(void)
{
    on.xrcd = make_xrcd(on.context, on.xrcd_file);
    on.other_xrcd = make_xrcd(on.other, -1);
    on.tm_srq = make_srq(IBV_SRQT_TM, IBV_SRQ_INIT_ATTR_TM);
    on.xrc_srq = make_srq(IBV_SRQT_XRC, IBV_SRQ_INIT_ATTR_XRCD);
    MUST((on.srq = ibv_create_srq(on.pd, &(struct ibv_srq_init_attr){.attr = {2, 1}})));
    on.long_receive = (struct ibv_recv_wr){.wr_id = 6, .num_sge = 100};
    on.receive = (struct ibv_recv_wr){.wr_id = 7};
    MUST(!ibv_post_srq_recv(on.srq, &on.receive, &on.bad_receive));
    MUST(!ibv_post_srq_recv(on.srq, &on.receive, &on.bad_receive));
}

/* The matching list is full, and the one operation that completes was not polled. */
static void fill_tags(void)
{
    struct ibv_ops_wr *bad, add = {.opcode = IBV_WR_TAG_ADD},
                            sync = {.opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED};
    add.tm.add.mask = UINT64_MAX;
    MUST(!ibv_post_srq_ops(on.tm_srq, &add, &bad) && !ibv_post_srq_ops(on.tm_srq, &sync, &bad));
}

struct ibv_qp *create_qp(struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp_cap *cap = &attr->cap;
    bool empty = attr->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH);
    if (!cap->max_send_wr && !empty)
        *cap = (struct ibv_qp_cap){.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    return verbs_get_ctx(on.context)->create_qp_ex(on.context, attr); /* the header may call another verb */
}

struct ibv_qp *create_plain_qp(struct ibv_qp_cap cap)
{
    return ibv_create_qp(
        on.pd, &(struct ibv_qp_init_attr){.send_cq = on.cq, .recv_cq = on.cq, .cap = cap, .qp_type = IBV_QPT_RC});
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, uint64_t builders)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = type,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | (builders ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
                                       .pd = on.pd,
                                       .send_cq = on.cq,
                                       .recv_cq = on.cq,
                                       .send_ops_flags = builders};
    struct ibv_qp *qp = create_qp(&attr);
    MUST(qp);
    return qp;
}

static struct ibv_qp *to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int mask = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    if (qp->qp_type == IBV_QPT_RAW_PACKET)
        MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
    else
        MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | mask));
    return qp;
}

static struct ibv_qp *to_rtr(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = qp->qp_num,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = on.gid}}};
    bool connected = qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND;
    int mask = connected ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                               IBV_QP_MIN_RNR_TIMER
                         : 0;
    MUST(!ibv_modify_qp(to_init(qp), &attr, IBV_QP_STATE | mask));
    return qp;
}

static struct ibv_qp *to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};
    int mask = qp->qp_type == IBV_QPT_RC
                   ? IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
               : qp->qp_type == IBV_QPT_UD ? IBV_QP_SQ_PSN
                                           : 0;
    MUST(!ibv_modify_qp(to_rtr(qp), &attr, IBV_QP_STATE | mask));
    return qp;
}

/* Two WRITEs of no bytes, signalled, whose completions are never polled. */
static void fill_sends(struct ibv_qp *qp)
{
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    MUST(!ibv_post_send(qp, &wr, &bad) && !ibv_post_send(qp, &wr, &bad));
}

/* The queue pair's sends complete in the CQ that is never polled. */
static struct ibv_qp *make_full(void)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = on.full_cq, .recv_cq = on.cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 2, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(on.pd, &attr);
    MUST(qp);
    fill_sends(to_rts(qp));
    return qp;
}

static void make_xrc_qps(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = on.xrcd};
    MUST((on.xrc_recv = ibv_create_qp_ex(on.context, &attr)));
    on.xrc_send = to_init(make_qp(IBV_QPT_XRC_SEND, 0));
}

static void make_srq_qp(void)
{
    struct ibv_qp_init_attr attr = {.send_cq = on.cq,
                                    .recv_cq = on.cq,
                                    .srq = on.srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_send_sge = 1}};
    MUST((on.with_srq = ibv_create_qp(on.pd, &attr)));
}

static void make_qps(void)
{
    enum { BUILDERS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE };
    struct newer_qp_attach_comp_cntr_attr sends = {.op_mask = NEWER_COUNT_SEND};
    on.reset = make_qp(IBV_QPT_RC, 0);
    on.init = to_init(make_qp(IBV_QPT_RC, BUILDERS));
    on.rtr = to_rtr(make_qp(IBV_QPT_RC, 0));
    on.rts = to_rts(make_qp(IBV_QPT_RC, BUILDERS));
    on.full = make_full();
    on.ud = to_rts(make_qp(IBV_QPT_UD, IBV_QP_EX_WITH_SEND));
    on.member = to_init(make_qp(IBV_QPT_UD, 0));
    on.raw = to_init(make_qp(IBV_QPT_RAW_PACKET, 0));
    on.raw_rts = to_rts(make_qp(IBV_QPT_RAW_PACKET, 0));
    on.counted = to_init(make_qp(IBV_QPT_RC, 0));
    on.init_ex = ibv_qp_to_qp_ex(on.init);
    on.ud_ex = ibv_qp_to_qp_ex(on.ud);
    on.builder_ex = ibv_qp_to_qp_ex(on.rts);
    MUST(!ibv_post_recv(on.init, &on.receive, &on.bad_receive));
    MUST(!ibv_attach_mcast(on.member, &on.group, 0));
    MUST(!newer_ibv_qp_attach_comp_cntr(on.counted, on.used_counter, &sends));
    make_xrc_qps();
    make_srq_qp();
}

/* A window of type 1 is bound to it when the bind's completion has arrived. */
static void bind_region(void)
{
    struct ibv_mw *window = ibv_alloc_mw(on.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {on.bound_mr, (uintptr_t)on.memory, 64, IBV_ACCESS_REMOTE_READ}};
    struct ibv_wc wc;
    int found;
    MUST(window && !ibv_bind_mw(on.rts, window, &bind));
    while (!(found = ibv_poll_cq(on.cq, 1, &wc))) {
    }
    while (found == 1 && wc.opcode != IBV_WC_BIND_MW)
        found = ibv_poll_cq(on.cq, 1, &wc);
    MUST(wc.status == IBV_WC_SUCCESS);
    while (cq_ring_count(&((struct cq *)on.full_cq)->ring) < 2)
        ibv_poll_cq(on.cq, 1, &wc); /* a polling thread makes the others' progress, too */
}

static void make_raw(void)
{
    struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = on.pd, .cq = on.cq};
    MUST((on.wq = ibv_create_wq(on.context, &attr)) && (on.ready_wq = ibv_create_wq(on.context, &attr)));
    MUST(!ibv_modify_wq(on.ready_wq, &(struct ibv_wq_attr){IBV_WQ_ATTR_STATE, IBV_WQS_RDY}));
    MUST((on.table = ibv_create_rwq_ind_table(on.context, &(struct ibv_rwq_ind_table_init_attr){.ind_tbl = &on.wq})));
    MUST((on.counters = ibv_create_counters(on.context, &(struct ibv_counters_init_attr){0})));
    MUST((on.used_counters = ibv_create_counters(on.context, &(struct ibv_counters_init_attr){0})));
    struct __attribute__((packed, aligned(8))) {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_counter_action count;
    } rule = {{.size = sizeof rule, .num_of_specs = 1, .port = 1},
              {IBV_FLOW_SPEC_ACTION_COUNT, sizeof rule.count, on.used_counters}};
    MUST((on.flow = ibv_create_flow(on.raw, &rule.attr)));
    on.odd_rule.attr = (struct ibv_flow_attr){.size = sizeof on.odd_rule, .num_of_specs = 1, .port = 1};
    on.odd_rule.spec = (struct ibv_flow_spec_eth){.type = 0x7f, .size = sizeof on.odd_rule.spec};
}

static void make_arguments(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = on.gid}};
    MUST((on.ah = ibv_create_ah(on.pd, &attr)));
    on.long_sge = (struct ibv_sge){(uintptr_t)on.memory, PAGES, on.mr->lkey};
    on.gone_sge = (struct ibv_sge){4096, 8, on.mr->lkey};
    on.with_grh = (struct ibv_wc){.wc_flags = IBV_WC_GRH};
    on.foreign_grh = (struct ibv_grh){.version_tclass_flow = htobe32(6u << 28), .dgid = {{0xfe, 0x80, [15] = 0x77}}};
}

void make_objects(void)
{
    on.memory = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(on.memory != MAP_FAILED);
    open_contexts();
    make_files();
    make_domains();
    make_memory();
    make_queues();
    make_srqs();
    make_qps();
    bind_region();
    fill_tags();
    make_raw();
    make_arguments();
}

int in_batch(int (*call)(void))
{
    ibv_wr_start(on.builder_ex);
    int answer = call();
    ibv_wr_abort(on.builder_ex);
    return answer;
}

int post_in_batch(void)
{
    struct ibv_send_wr *bad, wr = {.wr_id = 8, .opcode = IBV_WR_SEND};
    return ibv_post_send(on.rts, &wr, &bad);
}

int in_poll(int (*call)(void))
{
    MUST(!ibv_start_poll(on.full_ex, &(struct ibv_poll_cq_attr){0}));
    int answer = call();
    ibv_end_poll(on.full_ex);
    return answer;
}

int start_in_poll(void)
{
    return ibv_start_poll(on.full_ex, &(struct ibv_poll_cq_attr){0});
}

static union ibv_gid group_number(unsigned number)
{
    union ibv_gid gid = on.group;
    gid.raw[12] = 1;
    gid.raw[13] = (uint8_t)(number >> 8);
    gid.raw[14] = (uint8_t)number;
    return gid;
}

int attach_until_refused(void)
{
    enum { MORE_THAN_THERE_ARE = 4096 };
    int error = 0;
    unsigned joined = 0;
    for (; !error && joined < MORE_THAN_THERE_ARE; joined += !error) {
        union ibv_gid gid = group_number(joined);
        error = ibv_attach_mcast(on.ud, &gid, 0);
    }
    while (joined) {
        union ibv_gid gid = group_number(--joined);
        MUST(!ibv_detach_mcast(on.ud, &gid, 0));
    }
    return errno = error;
}

/* All but the byte of the domain that exists in this process, which another description of the file holds. */
static bool lock_all_others(int fd)
{
    struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &held) || held.l_type == F_UNLCK || !held.l_start)
        return false;
    struct flock before = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = held.l_start};
    struct flock behind = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = held.l_start + 1};
    return !fcntl(fd, F_OFD_SETLK, &before) && !fcntl(fd, F_OFD_SETLK, &behind);
}

bool with_lock(bool (*refused)(void))
{
    char path[128];
    snprintf(path, sizeof path, "%s/xrc-domains", getenv("SOFTVERBS_DIR"));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    MUST(fd >= 0 && lock_all_others(fd));
    bool answer = refused();
    int error = errno;
    close(fd);
    errno = error;
    return answer;
}

bool open_third_xrcd(void)
{
    struct ibv_xrcd_init_attr attr = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, on.third_file, O_CREAT};
    return !ibv_open_xrcd(on.context, &attr);
}
