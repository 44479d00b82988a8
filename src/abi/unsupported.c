#include "abi/unsupported.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "abi/stub.h"
#include "diag/log.h"
#include "events/refusal.h"

int unsupported(const char *what)
{
    log_start();
    return errno = refuse_in(what, EOPNOTSUPP, REASON_UNSUPPORTED, "%s", "");
}

#define REFUSED(table, outcome, member, why) STUB(outcome, table##_##member, #table "." #member)
#include "calls/verbs.def"

#define FILL(target, stub)                                                                                             \
    do {                                                                                                               \
        if (!(target))                                                                                                 \
            (target) = (__typeof__(target))(stub_function *)(stub);                                                    \
    } while (0);

/* A REFUSED line of verbs.def becomes FILL_table(member), which fills the tables of the function that includes the list
 * and is empty for other tables. */
#define FILL_ibv_context_ops(member) FILL(context->context.ops.member, stub_ibv_context_ops_##member)
#define FILL_verbs_context(member) FILL(context->member, stub_verbs_context_##member)
#define FILL_ibv_qp_ex(member)
#define FILL_ibv_cq_ex(member)
#define FILL_ibv_wq(member)
#define FILL_ibv_dm(member)

void unsupported_fill_context(struct verbs_context *context)
{
#define REFUSED(table, outcome, member, why) FILL_##table(member)
#include "calls/verbs.def"
}

#undef FILL_ibv_context_ops
#undef FILL_verbs_context
#undef FILL_ibv_qp_ex
#define FILL_ibv_context_ops(member)
#define FILL_verbs_context(member)
#define FILL_ibv_qp_ex(member) FILL(qp->member, stub_ibv_qp_ex_##member)

void unsupported_fill_qp(struct ibv_qp_ex *qp)
{
#define REFUSED(table, outcome, member, why) FILL_##table(member)
#include "calls/verbs.def"
}

static const struct {
    const char *name, *why;
} operations[] = {
#define REFUSED(table, outcome, member, why) {#table "." #member, why},
#include "calls/verbs.def"
#define ABSENT(outcome, name, why) {#name, why},
#include "calls/mlx5.def"
    {NULL, NULL},
};

void unsupported_each(bool with_private, void (*visit)(const char *, const char *, void *), void *context)
{
    for (size_t i = 0; operations[i].name; i++)
        visit(operations[i].name, operations[i].why, context);
    for (const struct stub_entry *entry = stub_entries; entry->name; entry++)
        if (entry->exported == entry->stub && (with_private || !entry->private))
            visit(entry->name,
                  entry->private ? "provider plug-ins, which softverbs does not have" : "exported functions", context);
}
