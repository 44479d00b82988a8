/* The functions of drivers' libraries that a preloaded library has in front of their own. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "around/begin.h"
#include "around/driven.h"
#include "around/library/bottom.h"
#include "around/library/names.h"
#include "check/shadow/unfollow.h"
#include "diag/log.h"

#define EXPORT __attribute__((visibility("default")))

/* The objects of each kind that mlx5dv_init_obj(3) gets, in the order of the bits that ask for them. */
struct driven_pair {
    void *in, *out;
};

/* -- the libraries' own functions */

#define MADE(library, type, name, instead, parameters, arguments, call, ...) static type(*real_##name) parameters;
#define GIVEN(library, type, name, parameters, arguments)                                                              \
    static type(*real_##name) parameters;                                                                              \
    type name parameters;
#define RETURNED GIVEN
#include "around/driven.def"
#define MADE(library, type, name, instead, parameters, arguments, call, ...) type name parameters;
#include "around/driven.def"

#define FUNCTION_IN(name_) {.name = #name_, .ours = (void *)name_, .library = (void **)&real_##name_},

#define LIBRARY_mlx5(row) row
#define LIBRARY_efa(row)
#define MADE(library, type, name, instead, parameters, arguments, call, ...) LIBRARY_##library(FUNCTION_IN(name))
#define GIVEN(library, type, name, parameters, arguments) LIBRARY_##library(FUNCTION_IN(name))
#define RETURNED GIVEN
static const struct names_function of_mlx5[] = {
#include "around/driven.def"
    {}};
#undef LIBRARY_mlx5
#undef LIBRARY_efa
#define LIBRARY_mlx5(row)
#define LIBRARY_efa(row) row
#define MADE(library, type, name, instead, parameters, arguments, call, ...) LIBRARY_##library(FUNCTION_IN(name))
#define GIVEN(library, type, name, parameters, arguments) LIBRARY_##library(FUNCTION_IN(name))
#define RETURNED GIVEN
static const struct names_function of_efa[] = {
#include "around/driven.def"
    {}};

/* Without a lock: a constructor that calls this holds the lock of dlopen(3), which names_lead takes. */
static void lead(atomic_bool *led, const char *library, const struct names_function *functions)
{
    if (!atomic_exchange(led, true) && !names_lead(library, functions))
        atomic_store(led, false);
}

static void lead_all(void)
{
    static atomic_bool mlx5, efa;
    lead(&mlx5, "libmlx5.so.1", of_mlx5);
    lead(&efa, "libefa.so.1", of_efa);
}

/* The library's own function is in `real`, also where another thread is about to lead its name. False: there is none.
 */
static bool find_own(void **real, const char *name, const void *ours)
{
    lead_all();
    if (__atomic_load_n(real, __ATOMIC_ACQUIRE))
        return true;
    void *next = dlsym(RTLD_NEXT, name);
    if (next && next != ours)
        __atomic_store_n(real, next, __ATOMIC_RELEASE);
    return __atomic_load_n(real, __ATOMIC_ACQUIRE);
}

/* Returns from a function that is in front of none of a library. */
#define NEED(name, refusal)                                                                                            \
    do {                                                                                                               \
        if (!find_own((void **)&real_##name, #name, (void *)name))                                                     \
            return errno = EOPNOTSUPP, refusal;                                                                        \
    } while (0)

/* -- objects that are made */

#define MADE(library, type, name, instead_, parameters, arguments, call, ...)                                          \
    static void *make_##name(void *object, void *attr, const struct driven_asked *asked)                               \
    {                                                                                                                  \
        (void)attr, (void)asked;                                                                                       \
        return real_##name call;                                                                                       \
    }                                                                                                                  \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        NEED(name, NULL);                                                                                              \
        const struct driven_asked asked = {__VA_ARGS__, .instead = FRAME_##instead_, .function = #name,                \
                                           .make = make_##name};                                                       \
        const struct calls *calls = begin_around();                                                                    \
        driven_ask(&asked);                                                                                            \
        type made = BOTTOM_CALL(pointer, instead_, calls, arguments);                                                  \
        driven_ask(NULL); /* a layer has refused the call */                                                           \
        return made;                                                                                                   \
    }
#include "around/driven.def"

/* -- objects that are not followed, which may have the address of an earlier one that was */

#define RETURNED(library, type, name, parameters, arguments)                                                           \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        NEED(name, NULL);                                                                                              \
        type made = real_##name arguments;                                                                             \
        if (made)                                                                                                      \
            unfollow_address(made);                                                                                    \
        return made;                                                                                                   \
    }
#include "around/driven.def"

/* -- memory that is given */

static void tell_pair(unsigned kind, void *handle)
{
    enum { QP, CQ, SRQ, RWQ };
    if (kind == QP && handle)
        driven_give(SHADOW_QP, handle, ((struct ibv_qp *)handle)->qp_num, "mlx5dv_init_obj");
    if (kind == CQ && handle)
        driven_give(SHADOW_CQ, handle, ((struct ibv_cq *)handle)->handle, "mlx5dv_init_obj");
    if (kind == SRQ && handle)
        driven_give(SHADOW_SRQ, handle, ((struct ibv_srq *)handle)->handle, "mlx5dv_init_obj");
    if (kind == RWQ && handle)
        driven_give(SHADOW_WQ, handle, ((struct ibv_wq *)handle)->wq_num, "mlx5dv_init_obj");
}

EXPORT int mlx5dv_init_obj(struct driven_pair *objects, uint64_t kinds)
{
    enum { QUEUES = 4 };
    NEED(mlx5dv_init_obj, EOPNOTSUPP);
    int error = real_mlx5dv_init_obj(objects, kinds);
    for (unsigned kind = 0; !error && kind < QUEUES; kind++)
        if (kinds & 1u << kind)
            tell_pair(kind, objects[kind].in);
    return error;
}

/* A command's words are big-endian, the opcode first; the number of a new queue pair is in the answer
 * (mlx5dv_devx_obj_create(3)). */
static bool makes_qp(const uint8_t *in, size_t inlen, size_t outlen)
{
    enum { CREATE_QP = 0x0500, ANSWER = 12 };
    return inlen >= 2 && outlen >= ANSWER && (in[0] << 8 | in[1]) == CREATE_QP;
}

EXPORT void *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t inlen, void *out, size_t outlen)
{
    NEED(mlx5dv_devx_obj_create, NULL);
    void *made = real_mlx5dv_devx_obj_create(context, in, inlen, out, outlen);
    const uint8_t *answer = out;
    if (made && makes_qp(in, inlen, outlen) && !bottom_is(begin_around()))
        log_write(LOG_WARN, "queue pair 0x%x of mlx5dv_devx_obj_create is DevX's: nothing of it is seen",
                  answer[9] << 16 | answer[10] << 8 | answer[11]);
    return made;
}

EXPORT int efadv_query_qp_wqs(struct ibv_qp *qp, void *sends, void *receives, uint32_t size)
{
    NEED(efadv_query_qp_wqs, EOPNOTSUPP);
    int error = real_efadv_query_qp_wqs(qp, sends, receives, size);
    if (!error)
        driven_give(SHADOW_QP, qp, qp->qp_num, "efadv_query_qp_wqs");
    return error;
}

EXPORT int efadv_query_cq(struct ibv_cq *cq, void *attr, uint32_t size)
{
    NEED(efadv_query_cq, EOPNOTSUPP);
    int error = real_efadv_query_cq(cq, attr, size);
    if (!error)
        driven_give(SHADOW_CQ, cq, cq->handle, "efadv_query_cq");
    return error;
}

/* After the names of libibverbs (exports.c). */
__attribute__((constructor(102))) static void lead_early(void)
{
    driven_lead = lead_all;
    lead_all();
}
