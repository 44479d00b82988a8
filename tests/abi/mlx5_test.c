/* libmlx5.so.1 on a device that has not the calls of mlx5, and the layouts that programs compiled in. Linked against
 * both libraries. */
#include <infiniband/mlx5dv.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/mlx5.def"

/* Of what is not built. */
int mlx5dv_devx_general_cmd(struct ibv_context *, const void *, size_t, void *, size_t);
void *mlx5dv_dr_action_create_drop(void);
ssize_t mlx5dv_devx_get_event(void *, void *, size_t);
void mlx5dv_pp_free(void *);

/* Release 65, on machines of 64 bits. */
/* clang-format off */
#define SIZE(structure, bytes) _Static_assert(sizeof(struct structure) == (bytes), #structure);
#define AT(structure, member, offset) _Static_assert(offsetof(struct structure, member) == (offset), #member);
SIZE(mlx5dv_context, 200)
AT(mlx5dv_context, flags, 8)
AT(mlx5dv_context, comp_mask, 16)
AT(mlx5dv_context, cqe_comp_caps, 24)
AT(mlx5dv_context, sw_parsing_caps, 32)
AT(mlx5dv_context, striding_rq_caps, 40)
AT(mlx5dv_context, tunnel_offloads_caps, 60)
AT(mlx5dv_context, max_dynamic_bfregs, 64)
AT(mlx5dv_context, max_clock_info_update_nsec, 72)
AT(mlx5dv_context, dc_odp_caps, 84)
AT(mlx5dv_context, hca_core_clock, 88)
AT(mlx5dv_context, num_lag_ports, 96)
AT(mlx5dv_context, sig_caps, 104)
AT(mlx5dv_context, dci_streams_caps, 120)
AT(mlx5dv_context, max_wr_memcpy_length, 128)
AT(mlx5dv_context, crypto_caps, 136)
AT(mlx5dv_context, max_dc_rd_atom, 152)
AT(mlx5dv_context, max_dc_init_rd_atom, 160)
AT(mlx5dv_context, reg_c0, 168)
AT(mlx5dv_context, ooo_recv_wrs_caps, 176)
SIZE(mlx5dv_context_attr, 24)
AT(mlx5dv_context_attr, comp_mask, 8)
SIZE(mlx5dv_cq_init_attr, 24)
AT(mlx5dv_cq_init_attr, flags, 12)
AT(mlx5dv_cq_init_attr, cqe_size, 16)
SIZE(mlx5dv_dc_init_attr, 16)
AT(mlx5dv_dc_init_attr, dct_access_key, 8)
AT(mlx5dv_dc_init_attr, dci_streams, 8)
SIZE(mlx5dv_qp_init_attr, 40)
AT(mlx5dv_qp_init_attr, create_flags, 8)
AT(mlx5dv_qp_init_attr, dc_init_attr, 16)
AT(mlx5dv_qp_init_attr, send_ops_flags, 32)
SIZE(mlx5dv_wq_init_attr, 24)
SIZE(mlx5dv_alloc_dm_attr, 16)
AT(mlx5dv_alloc_dm_attr, comp_mask, 8)
SIZE(mlx5dv_mkey_init_attr, 16)
AT(mlx5dv_mkey_init_attr, create_flags, 8)
AT(mlx5dv_mkey_init_attr, max_entries, 12)
SIZE(mlx5dv_mkey, 8)
SIZE(mlx5dv_mr_interleaved, 24)
AT(mlx5dv_mr_interleaved, bytes_skip, 12)
AT(mlx5dv_mr_interleaved, lkey, 16)
SIZE(mlx5dv_mkey_conf_attr, 16)
SIZE(mlx5dv_qp_ex, 104)
AT(mlx5dv_qp_ex, wr_raw_wqe, 72)
AT(mlx5dv_qp_ex, wr_memcpy, 88)
SIZE(mlx5dv_mkey_err, 32)
SIZE(mlx5dv_qp, 96)
AT(mlx5dv_qp, rq, 24)
AT(mlx5dv_qp, bf, 40)
AT(mlx5dv_qp, comp_mask, 56)
AT(mlx5dv_qp, uar_mmap_offset, 64)
AT(mlx5dv_qp, sqn, 84)
SIZE(mlx5_wqe_av, 48)
AT(mlx5_wqe_av, dqp_dct, 8)
AT(mlx5_wqe_av, rlid, 14)
AT(mlx5_wqe_av, rmac, 20)
AT(mlx5_wqe_av, grh_gid_fl, 28)
AT(mlx5_wqe_av, rgid, 32)
SIZE(mlx5dv_ah, 16)
SIZE(mlx5dv_pd, 16)
SIZE(mlx5dv_obj, 128)
AT(mlx5dv_obj, srq, 32)
AT(mlx5dv_obj, ah, 80)
AT(mlx5dv_obj, pd, 96)
AT(mlx5dv_obj, devx, 112)
SIZE(mlx5dv_clock_info, 40)
AT(mlx5dv_clock_info, mult, 24)
AT(mlx5dv_clock_info, mask, 32)
SIZE(mlx5dv_port, 40)
AT(mlx5dv_port, vport_steering_icm_rx, 16)
AT(mlx5dv_port, reg_c0, 32)
SIZE(mlx5dv_devx_uar, 40)
AT(mlx5dv_devx_uar, page_id, 16)
AT(mlx5dv_devx_uar, mmap_off, 24)
AT(mlx5dv_devx_uar, comp_mask, 32)
/* clang-format on */

static struct ibv_device *device;
static struct ibv_context *context;
static struct ibv_pd *pd;

static int begin(void **unused)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    device = list ? *list : NULL;
    context = device ? ibv_open_device(device) : NULL;
    pd = context ? ibv_alloc_pd(context) : NULL;
    return !pd;
}

static int end(void **unused)
{
    return ibv_dealloc_pd(pd) || ibv_close_device(context);
}

/* NULL, and EOPNOTSUPP. */
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        assert_null(call);                                                                                             \
        assert_int_equal(errno, EOPNOTSUPP);                                                                           \
    } while (0)

static void the_device_is_none_of_mlx5(void **unused)
{
    struct mlx5dv_context attr = {.version = 77};
    struct mlx5dv_context_attr open = {0};
    struct mlx5dv_clock_info clock;
    struct mlx5dv_obj object = {0};
    char path[64];
    assert_false(mlx5dv_is_supported(device));
    errno = 0;
    assert_int_equal(mlx5dv_query_device(context, &attr), EOPNOTSUPP);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(attr.version, 77);
    REFUSED(mlx5dv_open_device(device, &open));
    assert_int_equal(mlx5dv_get_clock_info(context, &clock), EOPNOTSUPP);
    assert_int_equal(mlx5dv_get_data_direct_sysfs_path(context, path, sizeof path), EOPNOTSUPP);
    assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), EOPNOTSUPP);
}

static void objects_of_it_are_refused(void **unused)
{
    struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr_ex qp = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1}, .qp_type = IBV_QPT_RC, .pd = pd, .comp_mask = 1};
    struct ibv_cq_init_attr_ex queue = {.cqe = 1};
    struct mlx5dv_mkey_init_attr mkey = {pd, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 1};
    uint32_t number;
    REFUSED(mlx5dv_create_qp(context, &qp, NULL));
    REFUSED(mlx5dv_create_cq(context, &queue, NULL));
    REFUSED(mlx5dv_create_mkey(&mkey));
    REFUSED(mlx5dv_devx_alloc_uar(context, 0));
    REFUSED(mlx5dv_reg_dmabuf_mr(pd, 0, 1, 0, -1, 0, 0));
    assert_int_equal(mlx5dv_reserved_qpn_alloc(context, &number), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* A program that is linked to them starts, and learns that they are not there. */
static void what_is_not_built_is_refused_in_the_way_of_each(void **unused)
{
    errno = 0;
    assert_int_equal(mlx5dv_devx_general_cmd(context, NULL, 0, NULL, 0), EOPNOTSUPP);
    assert_int_equal(errno, EOPNOTSUPP);
    REFUSED(mlx5dv_dr_action_create_drop());
    errno = 0;
    assert_true(mlx5dv_devx_get_event(NULL, NULL, 0) == -1);
    assert_int_equal(errno, EOPNOTSUPP);
    mlx5dv_pp_free(NULL);
    mlx5dv_devx_free_uar(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_is_none_of_mlx5),
        cmocka_unit_test(objects_of_it_are_refused),
        cmocka_unit_test(what_is_not_built_is_refused_in_the_way_of_each),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
