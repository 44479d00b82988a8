#include "abi/operations.h"

#include "abi/around.h"
#include "abi/bottom.h"
#include "abi/unsupported.h"
#include "base/container.h"
#include "verbs/life/qp_create.h"
#include "verbs/send/qp_ex.h"

struct ibv_qp *export_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = qp_create(context, attr);
    if (qp && qp_ex_of(qp))
        unsupported_fill_qp(qp_ex_of(qp));
    return qp;
}

/* -- the functions below all layers, which do the work */

#define MEMBER(table, outcome, type, member, name, work, parameters, arguments)                                        \
    static type bottom_##name parameters                                                                               \
    {                                                                                                                  \
        return work arguments;                                                                                         \
    }
#include "calls/verbs.def"

void bottom_of_operations(struct calls *calls)
{
#define MEMBER(table, outcome, type, member, name, work, parameters, arguments) calls->name = bottom_##name;
#define FAST(table, outcome, type, name, work, parameters, arguments) calls->ibv_##name = work;
#include "calls/verbs.def"
}

/* -- the functions in a context's tables */

#define MEMBER(table, outcome, type, member, name, work, parameters, arguments)                                        \
    static type table##_##member parameters                                                                            \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        return AROUND_##outcome(#name, around ? calls_get(around, name) arguments : bottom_##name arguments);          \
    }
#include "calls/verbs.def"

int operations_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    return verbs_context_query_port(context, port, attr, size);
}

CALLS_CHANGER static void change_fast(struct calls_holder *holder, const struct calls_change *change)
{
    struct verbs_context *verbs_context = &container_of(holder, struct context, calls)->ibv;
    struct ibv_context_ops *ibv_context_ops = &verbs_context->context.ops;
#define FAST(table, outcome, type, name, work, parameters, arguments)                                                  \
    CALLS_CHANGE(change, table->name, ibv_##name, work);
#include "calls/verbs.def"
}

void operations_fill(struct context *context)
{
    struct verbs_context *verbs_context = &context->ibv;
    struct ibv_context_ops *ibv_context_ops = &verbs_context->context.ops;
#define MEMBER(table, outcome, type, member, name, work, parameters, arguments) table->member = table##_##member;
#define FAST(table, outcome, type, name, work, parameters, arguments) table->name = work;
#include "calls/verbs.def"

    unsupported_fill_context(verbs_context);
    calls_enter(&context->calls, change_fast);
}
