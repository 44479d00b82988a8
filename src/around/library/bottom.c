#include "around/library/bottom.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "around/library/held.h"
#include "base/result.h"
#include "calls/command.h"

/* Macros of the header. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* The frame of the function here that has called the library; NULL: this thread is not in the library. */
static _Thread_local const char *inside __attribute__((tls_model("initial-exec")));

/* Of a signal handler that has left the library by longjmp(3), a frame is left that the stack has no more: calls from
 * nearer to main are the program's. */
static bool is_nested(void)
{
    if (inside && (const char *)__builtin_frame_address(0) >= inside)
        inside = NULL;
    return inside;
}

static void restore(void *before)
{
    inside = before;
}

#define INSIDE_plain(name, call)                                                                                       \
    __extension__({                                                                                                    \
        const char *before = inside;                                                                                   \
        inside = __builtin_frame_address(0);                                                                           \
        __typeof__(call) result = (call);                                                                              \
        inside = before;                                                                                               \
        frame_called(FRAME_##name);                                                                                    \
        result;                                                                                                        \
    })
#define INSIDE_code INSIDE_plain
#define INSIDE_minus INSIDE_plain
#define INSIDE_negative INSIDE_plain
#define INSIDE_pointer INSIDE_plain
/* A thread that is cancelled there makes calls in its cleanups. */
#define INSIDE_event(name, call)                                                                                       \
    __extension__({                                                                                                    \
        int result;                                                                                                    \
        pthread_cleanup_push(restore, (void *)inside);                                                                 \
        inside = __builtin_frame_address(0);                                                                           \
        result = (call);                                                                                               \
        pthread_cleanup_pop(1);                                                                                        \
        frame_called(FRAME_##name);                                                                                    \
        result;                                                                                                        \
    })
#define INSIDE_nothing(name, call)                                                                                     \
    __extension__({                                                                                                    \
        const char *before = inside;                                                                                   \
        inside = __builtin_frame_address(0);                                                                           \
        (call);                                                                                                        \
        inside = before;                                                                                               \
        frame_called(FRAME_##name);                                                                                    \
    })

/* -- functions by their names */

#define VERB(answer, type, name, work, parameters, arguments) static type(*real_##name) parameters;
#define NEWER_VERB VERB
#include "calls/verbs.def"

#define VERB(answer, type, name, work, parameters, arguments)                                                          \
    static type bottom_##name parameters                                                                               \
    {                                                                                                                  \
        if (!real_##name)                                                                                              \
            RESULT_REFUSE_##answer(EOPNOTSUPP);                                                                        \
        return INSIDE_##answer(name, real_##name arguments);                                                           \
    }
#define NEWER_VERB VERB

/* -- functions by the pointers of objects */

#define FIRST(first, ...) first
#define CONTEXT_OF(object)                                                                                             \
    _Generic((object), struct ibv_context *                                                                            \
             : (void *)(object), struct ibv_flow *                                                                     \
             : (void *)((struct ibv_flow *)(void *)(object))->context, default                                         \
             : *(void **)(object))
#define TABLE_verbs_context(held) held->table
#define TABLE_ibv_context_ops(held) held->ops

#define MEMBER(table_, answer, type, member, name, work, parameters, arguments)                                        \
    static type bottom_##name parameters                                                                               \
    {                                                                                                                  \
        const struct held *held = held_find(HELD_CONTEXT, CONTEXT_OF(FIRST arguments));                                \
        return INSIDE_##answer(name, TABLE_##table_(held).member arguments);                                           \
    }
#define FAST(table_, answer, type, name, work, parameters, arguments)                                                  \
    static type bottom_ibv_##name parameters                                                                           \
    {                                                                                                                  \
        return TABLE_##table_(held_find(HELD_CONTEXT, CONTEXT_OF(FIRST arguments))).name arguments;                    \
    }
#define HELD_ibv_dm(object) held_find(HELD_DM, object)->dm
#define HELD_ibv_wq(object) held_find(HELD_WQ, object)->wq
#define ON_OBJECT(object, type, member, name, parameters, arguments)                                                   \
    static type bottom_##name parameters                                                                               \
    {                                                                                                                  \
        return HELD_##object(FIRST arguments).member arguments;                                                        \
    }
/* A queue pair that was made without the operation has no function for it. */
#define BUILDER(type, name, parameters, arguments)                                                                     \
    static type bottom_ibv_##name parameters                                                                           \
    {                                                                                                                  \
        const struct held *held = held_find(HELD_QP, FIRST arguments);                                                 \
        return held->qp.name ? held->qp.name arguments : (type)0;                                                      \
    }
#define ITERATOR(type, name, parameters, arguments)                                                                    \
    static type bottom_ibv_##name parameters                                                                           \
    {                                                                                                                  \
        return held_find(HELD_CQ, FIRST arguments)->cq.name arguments;                                                 \
    }
/* A queue that was made without the field has no function for it. */
#define FIRST_READER(type, name, parameters, arguments)                                                                \
    static type bottom_ibv_wc_##name parameters                                                                        \
    {                                                                                                                  \
        const struct held *held = held_find(HELD_CQ, FIRST arguments);                                                 \
        return held->cq.name ? held->cq.name arguments : 0;                                                            \
    }
#define READER(type, name, flag, parameters, arguments) FIRST_READER(type, name, parameters, arguments)
#include "calls/verbs.def"

static struct calls bottom;

static void fill_bottom(void)
{
#define VERB(answer, type, name, work, parameters, arguments) bottom.name = bottom_##name;
#define NEWER_VERB VERB
#define MEMBER(table_, answer, type, member, name, work, parameters, arguments) bottom.name = bottom_##name;
#define ON_OBJECT(object, type, member, name, parameters, arguments) bottom.name = bottom_##name;
#define FAST(table_, answer, type, name, work, parameters, arguments) bottom.ibv_##name = bottom_ibv_##name;
#define BUILDER(type, name, parameters, arguments) bottom.ibv_##name = bottom_ibv_##name;
#define ITERATOR(type, name, parameters, arguments) bottom.ibv_##name = bottom_ibv_##name;
#define FIRST_READER(type, name, parameters, arguments) bottom.ibv_wc_##name = bottom_ibv_wc_##name;
#define READER(type, name, flag, parameters, arguments) bottom.ibv_wc_##name = bottom_ibv_wc_##name;
#include "calls/verbs.def"
}

struct calls *bottom_begin(void)
{
#define VERB(answer, type, name, work, parameters, arguments)                                                          \
    real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name);
#define NEWER_VERB VERB
#include "calls/verbs.def"
    fill_bottom();
    return &bottom;
}

const struct calls *bottom_around(void)
{
    const struct calls *top = is_nested() ? NULL : calls_around();
    return top ? top : &bottom;
}

const struct calls *bottom_own(void)
{
    return &bottom;
}

bool bottom_is_inside(void)
{
    return inside;
}

void *bottom_run(enum frame_call call, void *(*run)(const void *), const void *context)
{
    const char *before = inside;
    inside = __builtin_frame_address(0);
    void *result = run(context);
    inside = before;
    frame_called(call);
    return result;
}

bool bottom_is(const struct calls *calls)
{
    return calls == &bottom;
}
