#include "abi/operations.h"

#include "abi/unsupported.h"
#include "base/result.h"
#include "verbs/ethernet/flow.h"
#include "verbs/ethernet/wq.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/mr_special.h"
#include "verbs/memory/mw.h"
#include "verbs/object/context.h"
#include "verbs/object/counters.h"
#include "verbs/object/device.h"
#include "verbs/object/domain.h"
#include "verbs/qp/qp.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/cq_event.h"
#include "verbs/queue/srq.h"
#include "verbs/queue/srq_tags.h"
#include "verbs/send/qp_ex.h"
#include "verbs/send/rate_limit_modify.h"
#include "verbs/xrc/xrc_recv.h"
#include "verbs/xrc/xrcd.h"

static struct ibv_qp *create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = qp_create(context, attr);
    if (qp && qp_ex_of(qp))
        unsupported_fill_qp(qp_ex_of(qp));
    return qp;
}

#define DIRECT(table, member, function)
#define CALL(table, member, answer, type, function, parameters, arguments)                                             \
    static type table##_##member parameters                                                                            \
    {                                                                                                                  \
        return RESULT_##answer(function arguments);                                                                    \
    }
#include "abi/operations.def"
#undef DIRECT
#undef CALL

void operations_fill(struct context *context)
{
    struct verbs_context *verbs_context = &context->ibv;
    struct ibv_context_ops *ibv_context_ops = &verbs_context->context.ops;
#define DIRECT(table, member, function) table->member = function;
#define CALL(table, member, answer, type, function, parameters, arguments) table->member = table##_##member;
#include "abi/operations.def"

    unsupported_fill_context(verbs_context);
}
