#include "abi/operations.h"

#include "abi/unsupported.h"
#include "verbs/counters.h"
#include "verbs/cq.h"
#include "verbs/cq_moderation.h"
#include "verbs/device.h"
#include "verbs/dm.h"
#include "verbs/domain.h"
#include "verbs/flow.h"
#include "verbs/pace.h"
#include "verbs/qp.h"
#include "verbs/qp_ex.h"
#include "verbs/qp_shared.h"
#include "verbs/special.h"
#include "verbs/srq.h"
#include "verbs/srq_tags.h"
#include "verbs/window.h"
#include "verbs/wq.h"
#include "verbs/xrcd.h"

/* Old programs reach two queries through the table although they are exported, too. */
static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return ibv_query_device(context, attr);
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    return cq_create(context, attr);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = qp_create(context, attr);
    if (qp && qp_ex_of(qp))
        unsupported_fill_qp(qp_ex_of(qp));
    return qp;
}

void operations_fill(struct context *context)
{
    struct verbs_context *verbs = &context->public;
    struct ibv_context_ops *operations = &verbs->context.ops;
    operations->_compat_query_device = query_device;
    operations->_compat_query_port = ibv_query_port;
    operations->poll_cq = cq_poll;
    operations->req_notify_cq = cq_arm;
    operations->post_send = qp_post_send;
    operations->post_recv = qp_post_receive;
    operations->post_srq_recv = srq_post;
    operations->alloc_mw = window_allocate;
    operations->bind_mw = window_post_bind;
    operations->dealloc_mw = window_deallocate;
    verbs->query_port = device_query_port;
    verbs->query_device_ex = device_query_ex;
    verbs->query_rt_values = device_query_rt_values;
    verbs->create_cq_ex = create_cq_ex;
    verbs->create_qp_ex = create_qp_ex;
    verbs->create_srq_ex = srq_create_ex;
    verbs->get_srq_num = srq_get_number;
    verbs->open_xrcd = xrcd_open;
    verbs->close_xrcd = xrcd_close;
    verbs->open_qp = qp_shared_open;
    verbs->post_srq_ops = srq_tags_operate;
    verbs->modify_qp_rate_limit = pace_modify;
    verbs->modify_cq = cq_moderation_modify;
    verbs->alloc_td = domain_allocate_td;
    verbs->dealloc_td = domain_deallocate_td;
    verbs->alloc_parent_domain = domain_allocate;
    verbs->alloc_dm = dm_allocate;
    verbs->free_dm = dm_free;
    verbs->reg_dm_mr = special_register_dm;
    verbs->alloc_null_mr = special_allocate_null;
    verbs->advise_mr = special_advise;
    verbs->create_counters = counters_create;
    verbs->destroy_counters = counters_destroy;
    verbs->read_counters = counters_read;
    verbs->attach_counters_point_flow = counters_attach;
    verbs->ibv_create_flow = flow_create;
    verbs->ibv_destroy_flow = flow_destroy;
    verbs->create_wq = wq_create;
    verbs->modify_wq = wq_modify;
    verbs->destroy_wq = wq_destroy;
    verbs->create_rwq_ind_table = wq_table_create;
    verbs->destroy_rwq_ind_table = wq_table_destroy;
    unsupported_fill_context(verbs);
}
