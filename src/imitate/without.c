#include "base/result.h"
#include "events/refusal.h"
#include "imitate/layer.h"

/* Returns true for calls by which librdmacm asks with each connection whether the device has them. */
static bool is_offer(enum profile_call call)
{
    return call == PROFILE_CALL_ibv_query_ece || call == PROFILE_CALL_ibv_set_ece;
}

static int refuse_call(enum profile_call call)
{
    if (is_offer(call))
        return refuse_offer(imitated->without[call], REASON_PROFILE_CALL, "profile %s", imitated->name);
    return refuse(imitated->without[call], REASON_PROFILE_CALL, "profile %s", imitated->name);
}

/* A call that can't fail is in no profile, so its function here does what the layer below does. */
#define CALL_VERB(answer, type, name, title, parameters, arguments)                                                    \
    static type without_##name parameters                                                                              \
    {                                                                                                                  \
        RESULT_REFUSE_##answer(refuse_call(PROFILE_CALL_##name));                                                      \
        return calls_get(&imitate_layer.below, name) arguments;                                                        \
    }
#include "calls/each.def"

void imitate_take_away(struct calls *calls)
{
#define CALL_VERB(answer, type, name, ...)                                                                             \
    if (imitated->without[PROFILE_CALL_##name])                                                                        \
        calls->name = without_##name;
#include "calls/each.def"
}
