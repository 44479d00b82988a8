/* The answers of a device with the calls of mlx5: run by mlx5_test.py under its profile. Prints TAP. */
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/mlx5.def"

enum { BYTES = 4096, ENTRIES = 3 };

static unsigned cases, failures;
static struct ibv_device *device;
static struct ibv_context *context;
static union ibv_gid gid;

static void report(bool holds, const char *what)
{
    printf("%s %u - %s\n", holds ? "ok" : "not ok", ++cases, what);
    failures += !holds;
}

/* True if the call answered NULL with this errno. */
static bool is_refused(const void *made, int error)
{
    bool refused = !made && errno == error;
    errno = 0;
    return refused;
}

/* --- the device */

static void ask_device(void)
{
    struct mlx5dv_context attr = {.version = 9, .comp_mask = 0x1ffff, .max_wr_memcpy_length = 1, .num_lag_ports = 7};
    report(mlx5dv_is_supported(device), "the device is one of mlx5");
    report(!mlx5dv_query_device(context, &attr) && !attr.version && attr.flags == 0x21 && attr.comp_mask == 0x17cef &&
               attr.max_wr_memcpy_length == 16 << 20 && !attr.cqe_comp_caps.max_num && attr.num_lag_ports == 7,
           "it says what it has, and which members it has filled in");
    report(attr.ooo_recv_wrs_caps.max_rc == 32768 && attr.ooo_recv_wrs_caps.max_ud == 32768 &&
               attr.ooo_recv_wrs_caps.max_dct == 32768,
           "and how many receives may be out of order");
    report(attr.dci_streams_caps.max_log_num_concurent == 3 && attr.dci_streams_caps.max_log_num_errored == 3 &&
               attr.max_dc_rd_atom == 16 && attr.max_dc_init_rd_atom == 16 && attr.dc_odp_caps,
           "and what dynamically connected queue pairs have");
    memset(&attr, 0xff, sizeof attr);
    attr.comp_mask = 0;
    report(!mlx5dv_query_device(context, &attr) && attr.max_dynamic_bfregs == UINT32_MAX &&
               attr.ooo_recv_wrs_caps.max_rc == UINT32_MAX && !attr.comp_mask,
           "a program that asks for nothing more gets no more");
}

static void open_devices(void)
{
    struct mlx5dv_context_attr attr = {0};
    struct ibv_context *other = mlx5dv_open_device(device, &attr);
    report(other && !ibv_close_device(other), "the device opens by its library, too");
    attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    report(is_refused(mlx5dv_open_device(device, &attr), EOPNOTSUPP), "but not with DevX");
    attr.flags = 2;
    report(is_refused(mlx5dv_open_device(device, &attr), EINVAL), "nor with unknown flags");
}

static void ask_others(void)
{
    struct mlx5dv_port port = {.flags = 7};
    struct mlx5dv_clock_info clock = {0};
    struct timespec now;
    uint32_t one = 0, other = 0;
    char path[64];
    clock_gettime(CLOCK_REALTIME, &now);
    report(!_mlx5dv_query_port(context, 1, &port, sizeof port) && !port.flags, "no member of a port is valid");
    report(_mlx5dv_query_port(context, 2, &port, sizeof port) == EINVAL, "there is one port");
    report(!mlx5dv_get_clock_info(context, &clock) && clock.mult == 1 && !clock.shift && clock.mask == UINT64_MAX &&
               clock.nsec / 1000000000 - (uint64_t)now.tv_sec < 60,
           "time stamps are nanoseconds, and their clock is told");
    report(mlx5dv_get_data_direct_sysfs_path(context, path, sizeof path) == ENODEV, "there is no data direct");
    report(!mlx5dv_set_context_attr(context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, NULL), "allocators are taken");
    report(mlx5dv_set_context_attr(context, 2, NULL) == ENOTSUP, "and nothing else");
    report(!mlx5dv_reserved_qpn_alloc(context, &one) && !mlx5dv_reserved_qpn_alloc(context, &other) && one != other,
           "numbers can be reserved");
    report(!mlx5dv_reserved_qpn_dealloc(context, one) && mlx5dv_reserved_qpn_dealloc(context, one) == EINVAL &&
               !mlx5dv_reserved_qpn_dealloc(context, other),
           "and given back once");
}

static void allocate_registers(void)
{
    for (uint32_t flags = MLX5DV_UAR_ALLOC_TYPE_BF; flags <= MLX5DV_UAR_ALLOC_TYPE_NC; flags++) {
        struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(context, flags);
        bool made = uar && uar->reg_addr == (char *)uar->base_addr + 0x800;
        if (made)
            *(volatile uint64_t *)uar->reg_addr = 1;
        report(made, "a page of registers can be written to");
        mlx5dv_devx_free_uar(uar);
    }
    report(is_refused(mlx5dv_devx_alloc_uar(context, 5), EOPNOTSUPP), "pages of other kinds are refused");
}

/* --- objects */

static bool makes_cq(uint64_t mask, uint32_t flags, uint16_t size)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 8};
    struct mlx5dv_cq_init_attr mlx5 = {.comp_mask = mask, .flags = flags, .cqe_size = size, .cqe_comp_res_format = 1};
    struct ibv_cq_ex *cq = mlx5dv_create_cq(context, &attr, &mlx5);
    return cq && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

static void make_completion_queues(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 8};
    report(makes_cq(0, 0, 0) && makes_cq(4, 0, 64) && makes_cq(4, 0, 128) && makes_cq(6, 1, 128),
           "entries have 64 or 128 bytes, and the longer ones may be padded");
    report(!makes_cq(4, 0, 100) && errno == EINVAL && !makes_cq(6, 1, 64) && errno == EINVAL,
           "and no other number; short ones are not padded");
    report(!makes_cq(1, 0, 0) && errno == EINVAL && !makes_cq(8, 0, 0) && errno == EINVAL && !makes_cq(2, 2, 0) &&
               errno == EINVAL,
           "compression and unknown bits are refused");
    setenv("MLX5_CQE_SIZE", "100", 1);
    report(!mlx5dv_create_cq(context, &attr, NULL) && errno == EINVAL && makes_cq(4, 0, 64),
           "the variable of the distribution's library holds where the call says no size");
    unsetenv("MLX5_CQE_SIZE");
}

static void want_huge_pages(void)
{
    void *page = mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    setenv("MLX_CQ_ALLOC_TYPE", "HUGE", 1);
    report(makes_cq(0, 0, 0) == (page != MAP_FAILED),
           "with a variable a queue is made only where there are huge pages");
    setenv("MLX_CQ_ALLOC_TYPE", "PREFER_HUGE", 1);
    report(makes_cq(0, 0, 0), "or, with another value, everywhere");
    unsetenv("MLX_CQ_ALLOC_TYPE");
}

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct mlx5dv_qp_init_attr *mlx5)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {8, 8, 2, 2, 64},
                                       .qp_type = type,
                                       .sq_sig_all = 0,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND};
    if (mlx5 && mlx5->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT)
        attr.send_ops_flags = 0;
    return mlx5dv_create_qp(context, &attr, mlx5);
}

static bool makes_qp(enum ibv_qp_type type, uint64_t mask, uint32_t flags)
{
    struct mlx5dv_qp_init_attr mlx5 = {
        .comp_mask = mask, .create_flags = flags, .dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI};
    struct ibv_qp *qp = make_qp(type, mask == UINT64_MAX ? NULL : &mlx5);
    return qp && !ibv_destroy_qp(qp);
}

static void make_queue_pairs(void)
{
    report(makes_qp(IBV_QPT_RC, UINT64_MAX, 0) && makes_qp(IBV_QPT_RC, 0, 0) && makes_qp(IBV_QPT_UC, 1, 8) &&
               makes_qp(IBV_QPT_UD, 1, 0x10 | 2 | 4 | 0x20),
           "queue pairs of the usual types, with flags");
    report(makes_qp(IBV_QPT_RC, 1, MLX5DV_QP_CREATE_OOO_DP) && makes_qp(IBV_QPT_UD, 1, MLX5DV_QP_CREATE_OOO_DP),
           "receives may be out of order");
    report(!makes_qp(IBV_QPT_RC, 0x10, 0) && errno == EINVAL && !makes_qp(IBV_QPT_RC, 1, 0x18) && errno == EINVAL &&
               !makes_qp(IBV_QPT_RC, 1, 0x100) && errno == EINVAL,
           "unknown bits, and flags that exclude each other");
    report(!makes_qp(IBV_QPT_RC, 1, MLX5DV_QP_CREATE_SIG_PIPELINING) && errno == EOPNOTSUPP, "no signatures");
    report(!makes_qp(IBV_QPT_RC, 2, 0) && errno == EINVAL && !makes_qp(IBV_QPT_DRIVER, 0, 0) && errno == EINVAL &&
               !makes_qp(IBV_QPT_DRIVER, UINT64_MAX, 0) && errno == EINVAL,
           "dynamic connections are of the type DRIVER, and that type has them");
    struct mlx5dv_qp_init_attr target = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                         .dc_init_attr.dc_type = MLX5DV_DCTYPE_DCT};
    report(makes_qp(IBV_QPT_DRIVER, MLX5DV_QP_INIT_ATTR_MASK_DC, 0), "an initiator of dynamic connections");
    errno = 0;
    report(is_refused(make_qp(IBV_QPT_DRIVER, &target), EINVAL), "a target needs a shared receive queue");
}

static void make_others(void)
{
    struct ibv_wq_init_attr wq_attr = {.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = cq};
    struct mlx5dv_wq_init_attr mlx5 = {.comp_mask = 0};
    struct ibv_wq *wq = mlx5dv_create_wq(context, &wq_attr, &mlx5);
    report(wq && !ibv_destroy_wq(wq), "a work queue");
    mlx5.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ;
    report(is_refused(mlx5dv_create_wq(context, &wq_attr, &mlx5), EOPNOTSUPP), "a striding one is refused");
    struct ibv_srq *srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_sge = 1}});
    report(srq && !ibv_destroy_srq(srq), "a shared receive queue of no receives, as adapters make it");
    struct mlx5dv_alloc_dm_attr dm_attr = {.type = 1};
    struct ibv_alloc_dm_attr size = {.length = 64};
    report(is_refused(mlx5dv_alloc_dm(context, &size, &dm_attr), EOPNOTSUPP), "device memory for steering is refused");
    report(is_refused(mlx5dv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0, 0), EOPNOTSUPP) &&
               is_refused(mlx5dv_reg_dmabuf_mr(pd, 0, 64, 0, 0, 0, 1), EOPNOTSUPP) &&
               is_refused(mlx5dv_reg_dmabuf_mr(pd, 0, 64, 0, 0, 0, 2), EINVAL),
           "regions of descriptors are as those of the verbs, without data direct");
}

static void describe_objects(void)
{
    struct ibv_ah *ah = ibv_create_ah(
        pd, &(struct ibv_ah_attr){.is_global = 1,
                                  .port_num = 1,
                                  .sl = 3,
                                  .grh = {.dgid = gid, .flow_label = 5, .hop_limit = 64, .traffic_class = 8}});
    struct ibv_qp *qp = make_qp(IBV_QPT_RC, NULL), *second = make_qp(IBV_QPT_RC, NULL);
    struct mlx5dv_qp qp_out = {.comp_mask = 7}, second_out;
    struct mlx5dv_pd pd_out;
    struct mlx5dv_ah ah_out;
    struct mlx5dv_obj obj = {.qp = {qp, &qp_out}, .ah = {ah, &ah_out}, .pd = {pd, &pd_out}};
    struct mlx5dv_obj other = {.qp = {second, &second_out}};
    bool described = !mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_AH | MLX5DV_OBJ_PD) &&
                     !mlx5dv_init_obj(&other, MLX5DV_OBJ_QP);
    report(described && (uintptr_t)qp_out.bf.reg % 512 == 0 && !qp_out.bf.size && !qp_out.comp_mask &&
               qp_out.bf.reg != second_out.bf.reg,
           "each queue pair has a doorbell register of its own");
    struct mlx5_wqe_av *av = described ? ah_out.av : NULL;
    report(av && be32toh(av->dqp_dct) == 1u << 31 && av->stat_rate_sl == 6 && av->hop_limit == 64 && av->tclass == 8 &&
               be32toh(av->grh_gid_fl) == (1u << 30 | 5) && be16toh(av->rlid) >= 0xc000 &&
               !memcmp(av->rgid, gid.raw, 16) && pd_out.pdn == pd->handle,
           "address handles and protection domains are described");
    report(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) == EOPNOTSUPP &&
               mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ) == EOPNOTSUPP && mlx5dv_init_obj(&obj, 0x100) == EINVAL,
           "queues in memory are not");
    report(!ibv_destroy_qp(qp) && !ibv_destroy_qp(second) && !ibv_destroy_ah(ah), "all of them end");
}

/* --- work */

struct end {
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct mlx5dv_mkey *mkey;
    unsigned char memory[BYTES];
};

static bool begin(struct end *end)
{
    struct mlx5dv_qp_init_attr mlx5 = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS, .send_ops_flags = 0x1f};
    struct mlx5dv_mkey_init_attr mkey = {
        pd, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE, ENTRIES};
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    end->qp = make_qp(IBV_QPT_RC, &mlx5);
    end->mr = ibv_reg_mr(pd, end->memory, sizeof end->memory, access);
    end->mkey = mlx5dv_create_mkey(&mkey);
    return end->qp && end->mr && end->mkey;
}

static bool connect_to(struct end *end, const struct end *peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags =
                                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = peer->qp->qp_num,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 1,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}},
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .max_rd_atomic = 1};
    if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(end->qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    attr.qp_state = IBV_QPS_RTS;
    return !ibv_modify_qp(end->qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_wc poll_one(void)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    while (!ibv_poll_cq(cq, 1, &wc))
        ;
    return wc;
}

static struct mlx5dv_qp_ex *start(struct end *end, unsigned flags)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
    ibv_wr_start(qp);
    qp->wr_id = 7;
    qp->wr_flags = flags;
    return mlx5dv_qp_ex_from_ibv_qp_ex(qp);
}

/* Posts the batch, and returns what its one completion says. */
static struct ibv_wc complete(struct end *end)
{
    if (ibv_wr_complete(ibv_qp_to_qp_ex(end->qp)))
        return (struct ibv_wc){.status = IBV_WC_GENERAL_ERR};
    return poll_one();
}

enum { OF_LAYOUT = IBV_SEND_SIGNALED | IBV_SEND_INLINE };

/* Two pieces of eight bytes, at 0 and 64. */
static struct ibv_wc configure_list(struct end *end, unsigned access)
{
    struct ibv_sge list[] = {{(uintptr_t)end->memory, 8, end->mr->lkey},
                             {(uintptr_t)end->memory + 64, 8, end->mr->lkey}};
    struct mlx5dv_qp_ex *build = start(end, OF_LAYOUT);
    build->wr_mr_list(build, end->mkey, access, 2, list);
    return complete(end);
}

static bool is(struct ibv_wc wc, enum ibv_wc_opcode opcode)
{
    return wc.status == IBV_WC_SUCCESS && wc.opcode == opcode && wc.wr_id == 7;
}

static struct ibv_wc send_list(struct end *from, struct ibv_sge sge, enum ibv_wr_opcode opcode, uint64_t remote,
                               uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = 7,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {remote, rkey}},
                       *bad;
    return ibv_post_send(from->qp, &wr, &bad) ? (struct ibv_wc){.status = IBV_WC_GENERAL_ERR} : poll_one();
}

static void fill_ends(struct end *one, struct end *two)
{
    for (unsigned i = 0; i < BYTES; i++) {
        one->memory[i] = (unsigned char)(i % 251);
        two->memory[i] = 0xee;
    }
}

/* True if the pieces of `to` have the bytes of the pieces of `from`, and nothing around them was written. */
static bool passed(const struct end *from, const struct end *to)
{
    return !memcmp(from->memory, to->memory, 8) && !memcmp(from->memory + 64, to->memory + 64, 8) &&
           to->memory[8] == 0xee && to->memory[63] == 0xee && to->memory[72] == 0xee;
}

static void use_lists(struct end *one, struct end *two)
{
    const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    fill_ends(one, two);
    report(is(configure_list(one, all), IBV_WC_DRIVER1) && is(configure_list(two, all), IBV_WC_DRIVER1),
           "keys are configured by work");
    struct ibv_sge pieces = {0, 16, two->mkey->lkey};
    struct ibv_recv_wr receive = {.wr_id = 7, .sg_list = &pieces, .num_sge = 1}, *bad;
    bool posted = !ibv_post_recv(two->qp, &receive, &bad);
    struct ibv_wc sent = send_list(one, (struct ibv_sge){0, 16, one->mkey->lkey}, IBV_WR_SEND, 0, 0);
    struct ibv_wc other = poll_one();
    report(posted && sent.status == IBV_WC_SUCCESS && other.status == IBV_WC_SUCCESS && passed(one, two),
           "pieces are gathered and scattered");
    fill_ends(one, two);
    report(is(send_list(one, (struct ibv_sge){0, 16, one->mkey->lkey}, IBV_WR_RDMA_WRITE, 0, two->mkey->rkey),
              IBV_WC_RDMA_WRITE) &&
               passed(one, two),
           "a WRITE meets the pieces of the peer");
    fill_ends(two, one);
    report(is(send_list(one, (struct ibv_sge){0, 16, one->mkey->lkey}, IBV_WR_RDMA_READ, 0, two->mkey->rkey),
              IBV_WC_RDMA_READ) &&
               passed(two, one),
           "and a READ");
}

static void use_interleaved(struct end *one, struct end *two)
{
    struct mlx5dv_mr_interleaved list[] = {{(uintptr_t)two->memory, 4, 2, two->mr->lkey},
                                           {(uintptr_t)two->memory + 64, 2, 1, two->mr->lkey}};
    struct mlx5dv_mkey_conf_attr conf = {0};
    struct mlx5dv_qp_ex *build = start(two, OF_LAYOUT);
    build->wr_mkey_configure(build, two->mkey, 2, &conf);
    build->wr_set_mkey_access_flags(build, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    build->wr_set_mkey_layout_interleaved(build, 3, 2, list);
    report(is(complete(two), IBV_WC_DRIVER1), "a layout of rounds");
    memset(two->memory, 0, BYTES);
    memcpy(one->memory, "abcdABefghCDijklEF", 18);
    report(is(send_list(one, (struct ibv_sge){(uintptr_t)one->memory, 18, one->mr->lkey}, IBV_WR_RDMA_WRITE, 0,
                        two->mkey->rkey),
              IBV_WC_RDMA_WRITE) &&
               !memcmp(two->memory, "abcd\0\0efgh\0\0ijkl\0", 17) && !memcmp(two->memory + 64, "AB\0CD\0EF\0", 9),
           "is written to round by round");
}

static void refuse_layouts(struct end *one)
{
    struct ibv_sge list[40] = {{(uintptr_t)one->memory, 8, one->mr->lkey}};
    struct mlx5dv_mkey unknown = {1, 1};
    struct mlx5dv_qp_ex *build = start(one, IBV_SEND_SIGNALED);
    build->wr_mr_list(build, one->mkey, 0, 1, list);
    report(ibv_wr_complete(ibv_qp_to_qp_ex(one->qp)) == EOPNOTSUPP, "a layout must be inline");
    build = start(one, OF_LAYOUT);
    build->wr_mr_list(build, one->mkey, 0, 40, list);
    report(ibv_wr_complete(ibv_qp_to_qp_ex(one->qp)) == ENOMEM, "and have room");
    build = start(one, OF_LAYOUT);
    build->wr_set_mkey_sig_block(build, NULL);
    report(ibv_wr_complete(ibv_qp_to_qp_ex(one->qp)) == EOPNOTSUPP, "there are no signatures");
    build = start(one, OF_LAYOUT);
    build->wr_set_dc_addr(build, NULL, 0, 0);
    report(ibv_wr_complete(ibv_qp_to_qp_ex(one->qp)) == EOPNOTSUPP, "nor addresses of dynamic connections");
    build = start(one, OF_LAYOUT);
    build->wr_set_mkey_access_flags(build, 0);
    report(ibv_wr_complete(ibv_qp_to_qp_ex(one->qp)) == ENOMEM, "a setter belongs to a key");
    build = start(one, OF_LAYOUT);
    build->wr_mr_list(build, &unknown, 0, 1, list);
    report(complete(one).status == IBV_WC_MW_BIND_ERR, "work for an unknown key fails");
}

static struct ibv_wc copy(struct end *end, uint32_t lkey, size_t length)
{
    struct mlx5dv_qp_ex *build = start(end, IBV_SEND_SIGNALED);
    build->wr_memcpy(build, lkey, (uintptr_t)end->memory + 1024, end->mr->lkey, (uintptr_t)end->memory, length);
    return complete(end);
}

static void copy_memory(struct end *one)
{
    memset(one->memory, 'x', 1024);
    memset(one->memory + 1024, 'y', 1024);
    report(is(copy(one, one->mr->lkey, 100), IBV_WC_DRIVER3) && one->memory[1024 + 99] == 'x' &&
               one->memory[1024 + 100] == 'y',
           "memory is copied by work");
    struct mlx5dv_qp_ex *build = start(one, IBV_SEND_SIGNALED);
    build->wr_memcpy(build, one->mr->lkey, 0, one->mr->lkey, 0, (16 << 20) + 1);
    report(ibv_wr_complete(ibv_qp_to_qp_ex(one->qp)) == EINVAL, "not more than the device says");
}

/* --- work in the adapter's form */

static void put(unsigned char *to, uint64_t value, unsigned bytes)
{
    while (bytes--) {
        to[bytes] = (unsigned char)value;
        value >>= 8;
    }
}

static struct ibv_wc send_raw(struct end *end, unsigned char opcode, unsigned units, const unsigned char *rest)
{
    unsigned char wqe[1024] = {0};
    struct mlx5dv_qp_ex *build = start(end, 0);
    put(wqe, opcode, 4);
    put(wqe + 4, (uint64_t)end->qp->qp_num << 8 | units, 4);
    put(wqe + 11, 8, 1); /* a completion */
    if (units > 1)
        memcpy(wqe + 16, rest, (units - 1) * 16);
    build->wr_raw_wqe(build, wqe);
    return complete(end);
}

static void use_forms(struct end *one, struct end *two)
{
    unsigned char rest[64] = {0};
    fill_ends(one, two);
    put(rest, (uintptr_t)two->memory, 8);
    put(rest + 8, two->mr->rkey, 4);
    put(rest + 16, 100, 4);
    put(rest + 20, one->mr->lkey, 4);
    put(rest + 24, (uintptr_t)one->memory, 8);
    report(is(send_raw(one, 8, 3, rest), IBV_WC_DRIVER2) && !memcmp(one->memory, two->memory, 100) &&
               two->memory[100] == 0xee,
           "a WRITE in the adapter's form");
    put(rest + 16, 1u << 31 | 5, 4);
    memcpy(rest + 20, "12345", 5);
    report(is(send_raw(one, 8, 3, rest), IBV_WC_DRIVER2) && !memcmp(two->memory, "12345", 5), "with data in the form");
    put(rest + 16, 1u << 31 | 500, 4);
    report(send_raw(one, 8, 3, rest).status == IBV_WC_GENERAL_ERR && errno == EINVAL, "that end before the form does");
    report(send_raw(one, 0x20, 1, rest).status == IBV_WC_GENERAL_ERR && errno == EINVAL &&
               send_raw(one, 8, 1, rest).status == IBV_WC_GENERAL_ERR && errno == EINVAL &&
               send_raw(one, 8, 0, rest).status == IBV_WC_GENERAL_ERR && errno == EINVAL,
           "what is malformed is refused");
}

/* --- keys end */

static void invalidate_keys(struct end *one, struct end *two)
{
    struct ibv_send_wr wr = {.wr_id = 7,
                             .opcode = IBV_WR_LOCAL_INV,
                             .send_flags = IBV_SEND_SIGNALED,
                             .invalidate_rkey = one->mkey->rkey},
                       *bad;
    bool ended = !ibv_post_send(one->qp, &wr, &bad) && poll_one().status == IBV_WC_SUCCESS;
    struct ibv_recv_wr receive = {.wr_id = 7}, *bad_receive;
    ended &= !ibv_post_recv(two->qp, &receive, &bad_receive);
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = two->mkey->rkey;
    ended &= !ibv_post_send(one->qp, &wr, &bad) && poll_one().status == IBV_WC_SUCCESS &&
             poll_one().status == IBV_WC_SUCCESS;
    report(ended, "keys are invalidated by their own end and by a peer");
    struct mlx5dv_mkey_err err = {.err_type = 5};
    report(!_mlx5dv_mkey_check(one->mkey, &err, sizeof err) && err.err_type == MLX5DV_MKEY_NO_ERR, "no key has errors");
    struct ibv_wc wc = send_list(one, (struct ibv_sge){0, 8, one->mkey->lkey}, IBV_WR_SEND, 0, 0);
    report(wc.status == IBV_WC_LOC_PROT_ERR, "what was invalidated has no bytes");
}

static void ask_queue_pairs(struct end *one)
{
    struct ibv_qp *fresh = make_qp(IBV_QPT_RC, NULL), *datagrams = make_qp(IBV_QPT_UD, NULL);
    uint8_t port = 0, active = 0;
    report(!mlx5dv_modify_qp_udp_sport(one->qp, 55555) && mlx5dv_modify_qp_udp_sport(fresh, 55555) == EOPNOTSUPP &&
               mlx5dv_modify_qp_udp_sport(datagrams, 55555) == EOPNOTSUPP,
           "connections in RTS have a source port");
    report(mlx5dv_query_qp_lag_port(one->qp, &port, &active) == EOPNOTSUPP &&
               mlx5dv_modify_qp_lag_port(one->qp, 1) == EOPNOTSUPP,
           "there is no group of ports");
    report(mlx5dv_dci_stream_id_reset(one->qp, 1) == EINVAL, "nor an initiator of dynamic connections");
    ibv_destroy_qp(fresh);
    ibv_destroy_qp(datagrams);
}

static void work(void)
{
    static struct end one, two;
    bool ready = begin(&one) && begin(&two) && connect_to(&one, &two) && connect_to(&two, &one);
    report(ready, "two ends with builders and indirect keys");
    if (!ready)
        return;
    ask_queue_pairs(&one);
    use_lists(&one, &two);
    use_interleaved(&one, &two);
    copy_memory(&one);
    use_forms(&one, &two);
    invalidate_keys(&one, &two);
    refuse_layouts(&two);
    report(!ibv_destroy_qp(one.qp) && !ibv_destroy_qp(two.qp) && !mlx5dv_destroy_mkey(one.mkey) &&
               !mlx5dv_destroy_mkey(two.mkey) && !ibv_dereg_mr(one.mr) && !ibv_dereg_mr(two.mr),
           "the ends are destroyed");
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    device = list ? *list : NULL;
    context = device ? ibv_open_device(device) : NULL;
    if (!context || ibv_query_gid(context, 1, 0, &gid)) {
        printf("Bail out! no device\n");
        return 1;
    }
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    ask_device();
    open_devices();
    ask_others();
    allocate_registers();
    make_completion_queues();
    want_huge_pages();
    make_queue_pairs();
    make_others();
    describe_objects();
    work();
    report(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(context), "the device is closed");
    printf("1..%u\n", cases);
    return failures ? 1 : 0;
}
