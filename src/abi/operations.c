#include "abi/operations.h"

#include "abi/unsupported.h"
#include "base/answer.h"
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
        return ANSWER_##answer(function arguments);                                                                    \
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
