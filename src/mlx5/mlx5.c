/* Devices and their answers. */
#include "mlx5/mlx5.h"

#include <errno.h>
#include <string.h>

#include "base/read_clock.h"
#include "config/settings.h"
#include "events/refusal.h"
#include "mlx5/answers.h"
#include "profile/profile.h"
#include "verbs/context/device.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/life/qp_create.h"

/* Programs ask each device by mlx5dv_is_supported, or by the first call, whether it is one. */
int mlx5_check(void)
{
    const struct profile *profile = setting_profile();
    if (profile_is_mlx5(profile))
        return 0;
    return refuse_offer(EOPNOTSUPP, REASON_NOT_MLX5, "profile %s", profile ? profile->name : "none");
}

int mlx5_lacks(const char *part)
{
    return refuse(EOPNOTSUPP, REASON_MLX5_LACKED, "%s", part);
}

int mlx5_refuse_bits(const char *name, uint64_t bits)
{
    return refuse(EINVAL, REASON_UNKNOWN_BITS, "%s is 0x%llx", name, (unsigned long long)bits);
}

int mlx5_refuse_together(const char *what)
{
    return refuse(EINVAL, REASON_MLX5_EXCLUDED, "%s", what);
}

uint32_t mlx5_ooo_most(void)
{
    return (uint32_t)profile_value(setting_profile(), PROFILE_mlx5_ooo_recv_wr, 0);
}

/* --- devices */

bool own_mlx5dv_is_supported(struct ibv_device *device)
{
    return profile_is_mlx5(setting_profile());
}

/* Programs ask for DevX to see whether they can have it, and do without (UCX). */
int mlx5_check_open(const struct mlx5dv_context_attr *attr)
{
    int error = mlx5_check();
    if (error)
        return error;
    if (attr->flags & ~(uint32_t)MLX5DV_CONTEXT_FLAGS_DEVX)
        return mlx5_refuse_bits("flags", attr->flags);
    if (attr->flags)
        return refuse_offer(EOPNOTSUPP, REASON_MLX5_LACKED, "DevX");
    if (attr->comp_mask & MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY)
        return mlx5_lacks("fds");
    return attr->comp_mask ? mlx5_refuse_bits("comp_mask", attr->comp_mask) : 0;
}

/* Members that a device of software does not have, or has none of, are 0. */
static void fill_older(struct mlx5dv_context *attr, uint64_t asked)
{
    enum { NEVER = 62 }; /* a clock of nanoseconds needs no update, in so many doublings of one */
    if (asked & MLX5DV_CONTEXT_MASK_CQE_COMPRESION)
        memset(&attr->cqe_comp_caps, 0, sizeof attr->cqe_comp_caps);
    if (asked & MLX5DV_CONTEXT_MASK_SWP)
        memset(&attr->sw_parsing_caps, 0, sizeof attr->sw_parsing_caps);
    if (asked & MLX5DV_CONTEXT_MASK_STRIDING_RQ)
        memset(&attr->striding_rq_caps, 0, sizeof attr->striding_rq_caps);
    if (asked & MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS)
        attr->tunnel_offloads_caps = 0;
    if (asked & MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE)
        attr->max_clock_info_update_nsec = UINT64_C(1) << NEVER;
    if (asked & MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS)
        attr->flow_action_flags = 0;
    if (asked & MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD)
        memset(&attr->sig_caps, 0, sizeof attr->sig_caps);
}

/* Dynamically connected queue pairs do what those of XRC do. */
static void fill_dynamic(struct ibv_context *context, struct mlx5dv_context *attr, uint64_t asked)
{
    struct ibv_device_attr_ex device;
    if (asked & MLX5DV_CONTEXT_MASK_DC_ODP_CAPS) {
        device_query_ex(context, NULL, &device, sizeof device);
        attr->dc_odp_caps = device.xrc_odp_caps;
    }
    if (asked & MLX5DV_CONTEXT_MASK_DCI_STREAMS)
        attr->dci_streams_caps.max_log_num_concurent = attr->dci_streams_caps.max_log_num_errored = DC_STREAMS_LOG;
    if (asked & MLX5DV_CONTEXT_MASK_MAX_DC_RD_ATOM)
        attr->max_dc_rd_atom = attr->max_dc_init_rd_atom = DC_READS_MOST;
}

static void fill_newer(struct mlx5dv_context *attr, uint64_t asked)
{
    uint32_t most = mlx5_ooo_most();
    if (asked & MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH)
        attr->max_wr_memcpy_length = MLX5_MEMCPY_MOST;
    if (asked & MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD)
        memset(&attr->crypto_caps, 0, sizeof attr->crypto_caps);
    if (asked & MLX5DV_CONTEXT_MASK_OOO_RECV_WRS) {
        attr->ooo_recv_wrs_caps.max_rc = attr->ooo_recv_wrs_caps.max_xrc = attr->ooo_recv_wrs_caps.max_dct = most;
        attr->ooo_recv_wrs_caps.max_ud = attr->ooo_recv_wrs_caps.max_uc = most;
    }
}

/* Only what the program asks for is written, as older programs have a shorter struct. No bit stays set of what is not
 * filled: the page of the clock, the ports of a group, and register C0. */
int own_mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attr)
{
    const uint64_t filled =
        MLX5DV_CONTEXT_MASK_CQE_COMPRESION | MLX5DV_CONTEXT_MASK_SWP | MLX5DV_CONTEXT_MASK_STRIDING_RQ |
        MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS | MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE |
        MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS | MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD |
        MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH | MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD | MLX5DV_CONTEXT_MASK_OOO_RECV_WRS |
        MLX5DV_CONTEXT_MASK_DC_ODP_CAPS | MLX5DV_CONTEXT_MASK_DCI_STREAMS | MLX5DV_CONTEXT_MASK_MAX_DC_RD_ATOM;
    int error = mlx5_check();
    if (error)
        return error;
    attr->version = 0;
    attr->flags = MLX5DV_CONTEXT_FLAGS_CQE_V1 | MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD;
    attr->comp_mask &= filled;
    fill_older(attr, attr->comp_mask);
    fill_dynamic(context, attr, attr->comp_mask);
    fill_newer(attr, attr->comp_mask);
    return 0;
}

/* No member is valid: there is no switch inside of the adapter. */
int own__mlx5dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *info, size_t info_len)
{
    int error = mlx5_check();
    if (!error && port_num != 1)
        error = refuse(EINVAL, REASON_PORT, "port_num is %u", port_num);
    if (!error)
        memset(info, 0, info_len);
    return error;
}

/* A program's allocator would give memory for queues, which are not in memory here. */
int own_mlx5dv_set_context_attr(struct ibv_context *context, enum mlx5dv_set_ctx_attr_type type, void *attr)
{
    int error = mlx5_check();
    if (!error && type != MLX5DV_CTX_ATTR_BUF_ALLOCATORS)
        error = refuse(ENOTSUP, REASON_UNKNOWN_BITS, "type is %u", type);
    return error;
}

/* Time stamps of completions are nanoseconds of CLOCK_MONOTONIC; adapters tell when that was. */
int own_mlx5dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *info)
{
    int error = mlx5_check();
    if (error)
        return error;
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    *info = (struct mlx5dv_clock_info){
        .nsec = now + (uint64_t)read_clock_epoch(), .last_cycles = now, .mult = 1, .mask = UINT64_MAX};
    return 0;
}

/* An answer that programs look for (NCCL, UCX): there is none. */
int own_mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t length)
{
    int error = mlx5_check();
    return error ? error : not_refused(ENODEV);
}

/* --- numbers of queue pairs */

int own_mlx5dv_reserved_qpn_alloc(struct ibv_context *context, uint32_t *qpn)
{
    int error = mlx5_check();
    return error ? error : qp_reserve_number(context, qpn);
}

int own_mlx5dv_reserved_qpn_dealloc(struct ibv_context *context, uint32_t qpn)
{
    int error = mlx5_check();
    if (!error && !qp_unreserve_number(context, qpn))
        error = refuse(EINVAL, REASON_QPN_RESERVED, "qpn is 0x%x", qpn);
    return error;
}
