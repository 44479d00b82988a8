/* A layer around the checker's own: it refuses calls that name a destroyed object, and notes the call of each thread.
 * Posts, polls and builders, which are frequent, do both themselves. */
#include "check/destroyed/guards.h"

#include <errno.h>

#include "base/result.h"
#include "calls/calls.h"
#include "check/destroyed/callers.h"
#include "check/shadow/created.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct calls_layer layer = {.name = "gone", .place = CALLS_PLACE_GONE};

struct named {
    int kind; /* enum shadow_kind; -1: no object */
    const void *handle;
};

enum { NAMED = 5 };

/* The first five arguments of a call, each with its kind if it is an object. */
#define OBJECT(KIND, type, word, number) struct type * : SHADOW_##KIND,
#define ALIKE(KIND)
#define KIND_OF(argument)                                                                                              \
    _Generic((argument), struct ibv_context * : SHADOW_CONTEXT, CALLS_OBJECTS(OBJECT, ALIKE) default : -1)
#define NAMES(...) NAMES_OF(__VA_ARGS__, 0, 0, 0, 0, 0)
#define NAMES_OF(one, two, three, four, five, ...) NAME(one), NAME(two), NAME(three), NAME(four), NAME(five)
#define NAME(argument)                                                                                                 \
    (struct named)                                                                                                     \
    {                                                                                                                  \
        KIND_OF(argument), (const void *)(uintptr_t)(argument)                                                         \
    }

static bool names_lost(const struct named *named, const char *call)
{
    for (unsigned at = 0; at < NAMED; at++)
        if (named[at].kind >= 0 && named[at].handle &&
            hooks_is_gone((enum shadow_kind)named[at].kind, named[at].handle, call))
            return true;
    return false;
}

static void enter(const struct named *named, const char *call)
{
    const void *first[2] = {NULL};
    unsigned count = 0;
    for (unsigned at = 0; at < NAMED && count < 2; at++)
        if (named[at].kind >= 0)
            first[count++] = named[at].handle;
    callers_enter(call, first[0], first[1]);
}

#define GUARD(answer, type, name, parameters, arguments)                                                               \
    static type guard_##name parameters                                                                                \
    {                                                                                                                  \
        const struct named named[NAMED] = {NAMES arguments};                                                           \
        if (names_lost(named, #name))                                                                                  \
            RESULT_REFUSE_##answer(EINVAL);                                                                            \
        enter(named, #name);                                                                                           \
        type result = calls_get(&layer.below, name) arguments;                                                         \
        callers_leave();                                                                                               \
        return result;                                                                                                 \
    }
#define GUARD_code GUARD
#define GUARD_minus GUARD
#define GUARD_event GUARD
#define GUARD_negative GUARD
#define GUARD_pointer GUARD
#define GUARD_plain(...)
/* These calls acknowledge events. They are not noted, as destroying calls wait for them. */
#define GUARD_nothing(answer, type, name, parameters, arguments)                                                       \
    static void guard_##name parameters                                                                                \
    {                                                                                                                  \
        const struct named named[NAMED] = {NAMES arguments};                                                           \
        if (!names_lost(named, #name))                                                                                 \
            calls_get(&layer.below, name) arguments;                                                                   \
    }
#define CALL(answer, type, name, title, parameters, arguments) GUARD_##answer(answer, type, name, parameters, arguments)
#define CALL_COMMAND(...)
#include "calls/each.def"

/* Calls of the data path that are rare enough to be guarded here. */
#define SELDOM                                                                                                         \
    SELDOM_CALL(ibv_bind_mw, (struct ibv_qp * qp, struct ibv_mw * mw, struct ibv_mw_bind * bind), (qp, mw, bind))      \
    SELDOM_CALL(ibv_req_notify_cq, (struct ibv_cq * cq, int solicited_only), (cq, solicited_only))                     \
    SELDOM_CALL(ibv_post_srq_ops, (struct ibv_srq * srq, struct ibv_ops_wr * op, struct ibv_ops_wr * *bad),            \
                (srq, op, bad))

#define SELDOM_CALL(name, parameters, arguments) GUARD(code, int, name, parameters, arguments)
SELDOM
#undef SELDOM_CALL

void guards_begin(void)
{
#define FILL(name) layer.calls.name = guard_##name;
#define FILL_code FILL
#define FILL_minus FILL
#define FILL_event FILL
#define FILL_negative FILL
#define FILL_pointer FILL
#define FILL_nothing FILL
#define FILL_plain(name)
#define CALL(answer, type, name, ...) FILL_##answer(name)
#define CALL_COMMAND(...)
#include "calls/each.def"
#define SELDOM_CALL(name, parameters, arguments) FILL(name)
    SELDOM
#undef SELDOM_CALL
    calls_put_around(&layer);
}
