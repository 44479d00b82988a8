/* The functions that are not built yet, in one place: each fails with EOPNOTSUPP, logs that, and can be listed. */
#pragma once

#include <stdbool.h>

struct ibv_qp_ex;
struct verbs_context;

/* Logs that `what` is not built, sets errno and returns EOPNOTSUPP. */
int unsupported(const char *what);

/* Give every operation that is still NULL the stub that its REFUSED line in calls/verbs.def describes. Call both last.
 */
void unsupported_fill_context(struct verbs_context *);
void unsupported_fill_qp(struct ibv_qp_ex *);

/* Calls `visit` for everything that is missing: the refused operations of calls/verbs.def ("verbs_context.alloc_dm"),
 * the functions of libmlx5 that are not built (calls/mlx5.def), the exported functions that no file defines, and, if
 * asked, the interface of providers, which is never built. */
void unsupported_each(bool with_private, void (*visit)(const char *name, const char *why, void *context),
                      void *context);
