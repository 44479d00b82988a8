#include <errno.h>

#include "events/refusal.h"
#include "imitate/layer.h"

/* librdmacm asks with each connection whether the device has these. */
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

/* How each kind of call refuses; a call that can't fail is in no profile. */
#define REFUSE_code(call, below) return refuse_call(call)
#define REFUSE_minus(call, below) return refused_minus(refuse_call(call))
#define REFUSE_negative(call, below) return -refuse_call(call)
#define REFUSE_pointer(call, below) return refused_null(refuse_call(call))
#define REFUSE_event(call, below) return below
#define REFUSE_plain(call, below) return below
#define REFUSE_nothing(call, below) below

#define WITHOUT(answer, type, name, parameters, arguments)                                                             \
    static type without_##name parameters                                                                              \
    {                                                                                                                  \
        REFUSE_##answer(PROFILE_CALL_##name, calls_get(&imitate_layer.below, name) arguments);                         \
    }
#define VERB(answer, type, name, work, parameters, arguments) WITHOUT(answer, type, name, parameters, arguments)
#define NEWER_VERB(answer, type, name, work, parameters, arguments) WITHOUT(answer, type, name, parameters, arguments)
#define MEMBER(table, answer, type, member, name, work, parameters, arguments)                                         \
    WITHOUT(answer, type, name, parameters, arguments)
#include "calls/verbs.def"

void imitate_take_away(struct calls *calls)
{
#define TAKE_AWAY(name)                                                                                                \
    if (imitated->without[PROFILE_CALL_##name])                                                                        \
        calls->name = without_##name;
#define VERB(answer, type, name, work, parameters, arguments) TAKE_AWAY(name)
#define NEWER_VERB(answer, type, name, work, parameters, arguments) TAKE_AWAY(name)
#define MEMBER(table, answer, type, member, name, work, parameters, arguments) TAKE_AWAY(name)
#include "calls/verbs.def"
}
