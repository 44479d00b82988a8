#include "script/reach.h"

#include <string.h>

const struct script_reach *script_reach;

bool script_reach_is(const struct calls_subject *subject, const char *kind)
{
    return subject->kind && !strcmp(subject->kind, kind);
}

/* All structs of objects but the flow's begin with a pointer to their context. */
struct ibv_context *script_reach_context(const struct calls_subject *subject)
{
    if (!subject->object || script_reach_is(subject, "device") || script_reach_is(subject, "identifier") ||
        script_reach_is(subject, "buf"))
        return NULL;
    if (script_reach_is(subject, "context"))
        return (struct ibv_context *)subject->object;
    if (script_reach_is(subject, "flow"))
        return ((struct ibv_flow *)subject->object)->context;
    return *(struct ibv_context **)subject->object;
}
