#include <errno.h>
#include <stddef.h>

#include "config/limits.h"
#include "events/refusal.h"
#include "imitate/layer.h"
#include "verbs/qp/kind.h"

/* Checks a number of the program's against the most of the device. */
static int check_most(enum profile_key number, enum reason reason, const char *name, uint32_t value, uint32_t most)
{
    if (value <= most)
        return 0;
    return refuse(imitate_errno(number), reason, "profile %s: %s is %u, of at most %u", imitated->name, name, value,
                  most);
}

static uint32_t rounded(enum profile_key rounding, uint32_t value, uint32_t most)
{
    uint32_t round = profile_round(imitated, rounding, value);
    return round < most ? round : value > most ? value : most;
}

/* --- queue pairs */

static int check_type(enum ibv_qp_type type)
{
    if (imitate_has(PROFILE_qp_types, type))
        return 0;
    return refuse(imitate_errno(PROFILE_errno_qp_type), REASON_PROFILE_QP_TYPE, "profile %s: qp_type is %u",
                  imitated->name, type);
}

/* The most work requests and elements of each queue of a queue pair. */
static struct ibv_qp_cap most_of(const struct limits *limits)
{
    return (struct ibv_qp_cap){
        .max_send_wr = limits_most(limits, imitated, PROFILE_max_send_wr, PROFILE_max_qp_wr),
        .max_recv_wr = limits_most(limits, imitated, PROFILE_max_recv_wr, PROFILE_max_qp_wr),
        .max_send_sge = limits_most(limits, imitated, PROFILE_max_send_sge, PROFILE_max_sge),
        .max_recv_sge = limits_most(limits, imitated, PROFILE_max_recv_sge, PROFILE_max_sge),
        .max_inline_data = limits->max_inline,
    };
}

/* Checks the sizes; `receives`: the queue pair has a receive queue of its own. */
static int check_sizes(const struct ibv_qp_cap *most, const struct ibv_qp_cap *cap, bool receives)
{
    const struct {
        enum profile_key number;
        enum reason reason;
        const char *name;
        uint32_t value, most;
        bool checked;
    } sizes[] = {
        {PROFILE_errno_qp_size, REASON_PROFILE_QP_SIZE, "max_send_wr", cap->max_send_wr, most->max_send_wr, true},
        {PROFILE_errno_qp_size, REASON_PROFILE_QP_SIZE, "max_send_sge", cap->max_send_sge, most->max_send_sge, true},
        {PROFILE_errno_inline, REASON_PROFILE_INLINE, "max_inline_data", cap->max_inline_data, most->max_inline_data,
         true},
        {PROFILE_errno_qp_size, REASON_PROFILE_QP_SIZE, "max_recv_wr", cap->max_recv_wr, most->max_recv_wr, receives},
        {PROFILE_errno_qp_size, REASON_PROFILE_QP_SIZE, "max_recv_sge", cap->max_recv_sge, most->max_recv_sge,
         receives},
    };
    int error = 0;
    for (size_t i = 0; !error && i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].checked)
            error = check_most(sizes[i].number, sizes[i].reason, sizes[i].name, sizes[i].value, sizes[i].most);
    return error;
}

static void round_sizes(const struct ibv_qp_cap *most, struct ibv_qp_cap *cap)
{
    cap->max_send_wr = rounded(PROFILE_round_send_wr, cap->max_send_wr, most->max_send_wr);
    cap->max_recv_wr = rounded(PROFILE_round_recv_wr, cap->max_recv_wr, most->max_recv_wr);
}

static bool has(enum ibv_qp_type type, uint32_t trait)
{
    return qp_type_traits(type) & trait;
}

/* Rounds the sizes of the program; if the call fails the program has its own sizes back. */
static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_cap most = most_of(imitate_limits(pd->context));
    struct ibv_qp_cap before = attr->cap;
    int error = check_type(attr->qp_type);
    if (!error)
        error = check_sizes(&most, &attr->cap, has(attr->qp_type, QP_RECEIVES) && !attr->srq);
    if (error)
        return refused_null(error);
    round_sizes(&most, &attr->cap);
    struct ibv_qp *qp = calls_get(&imitate_layer.below, ibv_create_qp)(pd, attr);
    if (!qp)
        attr->cap = before;
    return qp;
}

static int check_send_ops(const struct ibv_qp_init_attr_ex *attr)
{
    uint64_t wanted = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
    if (!(wanted & ~profile_value(imitated, PROFILE_send_ops, UINT64_MAX)))
        return 0;
    return refuse(EOPNOTSUPP, REASON_PROFILE_SEND_OPS, "profile %s: send_ops_flags are 0x%llx", imitated->name,
                  (unsigned long long)wanted);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp_cap most = most_of(imitate_limits(context));
    struct ibv_qp_cap before = attr->cap;
    int error = check_type(attr->qp_type);
    if (!error)
        error = check_send_ops(attr);
    if (!error && !has(attr->qp_type, QP_SHARED))
        error = check_sizes(&most, &attr->cap, has(attr->qp_type, QP_RECEIVES) && !attr->srq);
    if (error)
        return refused_null(error);
    if (!has(attr->qp_type, QP_SHARED))
        round_sizes(&most, &attr->cap);
    struct ibv_qp *qp = calls_get(&imitate_layer.below, ibv_create_qp_ex)(context, attr);
    if (!qp)
        attr->cap = before;
    return qp;
}

static int check_reads(const struct ibv_qp_attr *attr, int mask)
{
    struct {
        int bit;
        const char *name;
        uint32_t value;
        enum profile_key most;
    } numbers[] = {
        {IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attr->max_rd_atomic, PROFILE_max_qp_init_rd_atom},
        {IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attr->max_dest_rd_atomic, PROFILE_max_qp_rd_atom},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t most = profile_value(imitated, numbers[i].most, UINT32_MAX);
        if (mask & numbers[i].bit && numbers[i].value > most)
            return refuse(EINVAL, REASON_PROFILE_READS, "profile %s: %s is %u, of at most %u", imitated->name,
                          numbers[i].name, numbers[i].value, (unsigned)most);
    }
    return 0;
}

/* Drivers of iWARP look at no address vector, as they connect by TCP. */
static int check_address(const struct ibv_ah_attr *attr)
{
    uint64_t gids = profile_value(imitated, PROFILE_gid_tbl_len, UINT32_MAX);
    bool looks = profile_value(imitated, PROFILE_transport, IBV_TRANSPORT_IB) != IBV_TRANSPORT_IWARP;
    if (!looks || !attr->is_global || attr->grh.sgid_index < gids)
        return 0;
    return refuse(EINVAL, REASON_PROFILE_GID, "profile %s: sgid_index is %u, and gid_tbl_len %u", imitated->name,
                  attr->grh.sgid_index, (unsigned)gids);
}

static int check_path(const struct ibv_qp_attr *attr, int mask)
{
    uint64_t mtu = profile_value(imitated, PROFILE_max_mtu, IBV_MTU_4096);
    if (mask & IBV_QP_PATH_MTU && attr->path_mtu > mtu)
        return refuse(EINVAL, REASON_PROFILE_MTU, "profile %s: path_mtu is %u, and max_mtu %u", imitated->name,
                      attr->path_mtu, (unsigned)mtu);
    return mask & IBV_QP_AV ? check_address(&attr->ah_attr) : 0;
}

/* Returns true for the state SQD, by which librdmacm begins to close a connection of iWARP: it ends in the error state.
 */
static bool closes(const struct ibv_qp_attr *attr, int mask)
{
    return mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_SQD &&
           profile_value(imitated, PROFILE_transport, IBV_TRANSPORT_IB) == IBV_TRANSPORT_IWARP;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_attr closed = {.qp_state = IBV_QPS_ERR};
    if (closes(attr, mask))
        return calls_get(&imitate_layer.below, ibv_modify_qp)(qp, &closed, IBV_QP_STATE);
    int error = check_reads(attr, mask);
    if (!error)
        error = check_path(attr, mask);
    return error ? error : calls_get(&imitate_layer.below, ibv_modify_qp)(qp, attr, mask);
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    int error = check_address(attr);
    return error ? refused_null(error) : calls_get(&imitate_layer.below, ibv_create_ah)(pd, attr);
}

/* --- completion queues */

static int check_entries(struct ibv_context *context, uint32_t entries)
{
    return check_most(PROFILE_errno_cq_size, REASON_PROFILE_CQ_SIZE, "cqe", entries, imitate_limits(context)->max_cqe);
}

/* Shows the program the number of entries that the device would have made, not softverbs' own. */
static void tell_entries(struct ibv_cq *cq, uint32_t entries)
{
    if (cq && imitated->set[PROFILE_round_cqe])
        cq->cqe = (int)entries;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, void *cq_context,
                                struct ibv_comp_channel *channel, int vector)
{
    int error = entries > 0 ? check_entries(context, (uint32_t)entries) : 0;
    if (error)
        return refused_null(error);
    if (entries > 0)
        entries = (int)rounded(PROFILE_round_cqe, (uint32_t)entries, imitate_limits(context)->max_cqe);
    struct ibv_cq *cq = calls_get(&imitate_layer.below, ibv_create_cq)(context, entries, cq_context, channel, vector);
    tell_entries(cq, (uint32_t)entries);
    return cq;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    uint64_t flags = profile_value(imitated, PROFILE_wc_flags, UINT64_MAX);
    int error = check_entries(context, attr->cqe);
    if (!error && attr->wc_flags & ~flags)
        error = refuse(EOPNOTSUPP, REASON_PROFILE_CQ_FLAGS, "profile %s: wc_flags are 0x%llx, and may be 0x%llx",
                       imitated->name, (unsigned long long)attr->wc_flags, (unsigned long long)flags);
    if (error)
        return refused_null(error);
    uint32_t before = attr->cqe;
    attr->cqe = rounded(PROFILE_round_cqe, attr->cqe, imitate_limits(context)->max_cqe);
    struct ibv_cq_ex *cq = calls_get(&imitate_layer.below, ibv_create_cq_ex)(context, attr);
    tell_entries(cq ? ibv_cq_ex_to_cq(cq) : NULL, attr->cqe);
    attr->cqe = before;
    return cq;
}

static int resize_cq(struct ibv_cq *cq, int entries)
{
    int error = entries > 0 ? check_entries(cq->context, (uint32_t)entries) : 0;
    if (!error && entries > 0)
        entries = (int)rounded(PROFILE_round_cqe, (uint32_t)entries, imitate_limits(cq->context)->max_cqe);
    if (!error)
        error = calls_get(&imitate_layer.below, ibv_resize_cq)(cq, entries);
    if (!error)
        tell_entries(cq, (uint32_t)entries);
    return error;
}

/* --- shared receive queues */

static int check_srq(struct ibv_context *context, struct ibv_srq_attr *attr)
{
    const struct limits *limits = imitate_limits(context);
    int error = check_most(PROFILE_errno_srq_size, REASON_PROFILE_SRQ_SIZE, "max_wr", attr->max_wr, limits->max_srq_wr);
    if (!error)
        error =
            check_most(PROFILE_errno_srq_size, REASON_PROFILE_SRQ_SIZE, "max_sge", attr->max_sge, limits->max_srq_sge);
    if (!error)
        attr->max_wr = rounded(PROFILE_round_srq_wr, attr->max_wr, limits->max_srq_wr);
    return error;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_attr before = attr->attr;
    int error = check_srq(pd->context, &attr->attr);
    struct ibv_srq *srq = error ? refused_null(error) : calls_get(&imitate_layer.below, ibv_create_srq)(pd, attr);
    if (!srq)
        attr->attr = before;
    return srq;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    struct ibv_srq_attr before = attr->attr;
    int error = check_srq(context, &attr->attr);
    struct ibv_srq *srq =
        error ? refused_null(error) : calls_get(&imitate_layer.below, ibv_create_srq_ex)(context, attr);
    if (!srq)
        attr->attr = before;
    return srq;
}

void imitate_add_queues(struct calls *calls)
{
    calls->ibv_create_qp = create_qp;
    calls->ibv_create_qp_ex = create_qp_ex;
    calls->ibv_modify_qp = modify_qp;
    calls->ibv_create_ah = create_ah;
    calls->ibv_create_cq = create_cq;
    calls->ibv_create_cq_ex = create_cq_ex;
    calls->ibv_resize_cq = resize_cq;
    calls->ibv_create_srq = create_srq;
    calls->ibv_create_srq_ex = create_srq_ex;
}
