/* What is left when a context is closed or the process ends. */
#include <unistd.h>

#include "check/findings/finding.h"
#include "check/hooks.h"

/* A child of a fork owns nothing of its parent's. What a context ends with is the context's, and librdmacm keeps those
 * that it opens. */
static bool is_left(const struct shadow *shadow, const struct ibv_context *context)
{
    bool is_context = shadow->kind == SHADOW_CONTEXT, kept = is_context && (context || shadow->created.left_out);
    return shadow->process == getpid() && !kept && (!context || shadow->context == context);
}

static void ended(const struct ibv_context *context)
{
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (is_left(shadow, context))
            finding_add(&(struct finding_about){.rule = RULE_NEVER_DESTROYED,
                                                .kind = shadow_kind_name(shadow->kind),
                                                .number = shadow->number,
                                                .created = &shadow->created},
                        "A %s was never destroyed (number 0x%x)", shadow_kind_name(shadow->kind), shadow->number);
}

const struct hooks rules_leftovers = {.ended = ended};
