#include "around/driven.h"

#include "around/library/bottom.h"
#include "around/library/held.h"
#include "around/library/numbers.h"
#include "base/settings.h"
#include "calls/qp_types.h"
#include "check/shadow/unfollow.h"
#include "diag/log.h"

#undef ibv_get_device_list /* a macro of the header */

void (*driven_lead)(void);

/* -- objects that are made */

/* A function whose call was left by longjmp(3) is of another call (`instead`), or of the same arguments. */
static _Thread_local struct driven_asked asked_for __attribute__((tls_model("initial-exec")));

void driven_ask(const struct driven_asked *asked)
{
    asked_for = asked ? *asked : (struct driven_asked){0};
}

/* What this thread has asked of this call; its `make` is NULL if it is libibverbs' own. */
static struct driven_asked take_asked(enum frame_call call)
{
    struct driven_asked asked = asked_for.instead == call ? asked_for : (struct driven_asked){0};
    asked_for = (struct driven_asked){0};
    return asked;
}

struct making {
    const struct driven_asked *asked;
    void *object, *attr;
};

static void *run_making(const void *context)
{
    const struct making *making = context;
    return making->asked->make(making->object, making->attr, making->asked);
}

/* The object of the library that this thread has called, or of libibverbs. */
#define MAKE(call, type, object_, attr_, plainly)                                                                      \
    const struct driven_asked asked = take_asked(FRAME_##call);                                                        \
    type made = asked.make ? bottom_run(FRAME_##call, run_making, &(struct making){&asked, (void *)(object_), attr_})  \
                           : (plainly)

static struct calls plain;

static void lead_names(void)
{
    if (driven_lead)
        driven_lead();
}

static struct ibv_device **get_device_list(int *count)
{
    struct ibv_device **list = plain.ibv_get_device_list(count);
    lead_names();
    return list;
}

static struct ibv_context *open_of_driver(struct ibv_device *device)
{
    MAKE(ibv_open_device, struct ibv_context *, device, NULL, plain.ibv_open_device(device));
    lead_names();
    return made;
}

static struct ibv_cq_ex *create_cq_of_driver(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    MAKE(ibv_create_cq_ex, struct ibv_cq_ex *, context, attr, plain.ibv_create_cq_ex(context, attr));
    return made;
}

static struct ibv_qp *noted(struct ibv_qp *qp, const char *function)
{
    if (qp && function && !qp_type_name(qp->qp_type) && setting_environment(SETTING_CHECK))
        log_write(LOG_WARN, "queue pair 0x%x of %s has a type of its driver: the checker does not follow it",
                  qp->qp_num, function);
    if (qp && !bottom_is_inside())
        numbers_add(qp);
    return qp;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    MAKE(ibv_create_qp_ex, struct ibv_qp *, context, attr, plain.ibv_create_qp_ex(context, attr));
    return noted(made, asked.function);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    MAKE(ibv_create_qp, struct ibv_qp *, pd, attr, plain.ibv_create_qp(pd, attr));
    return noted(made, asked.function);
}

static struct ibv_wq *create_wq_of_driver(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
    MAKE(ibv_create_wq, struct ibv_wq *, context, attr, plain.ibv_create_wq(context, attr));
    return made;
}

void driven_begin(struct calls *calls)
{
    plain = *calls;
    calls->ibv_get_device_list = get_device_list;
    calls->ibv_open_device = open_of_driver;
    calls->ibv_create_cq_ex = create_cq_of_driver;
    calls->ibv_create_qp_ex = create_qp_ex;
    calls->ibv_create_qp = create_qp;
    calls->ibv_create_wq = create_wq_of_driver;
}

/* -- memory that is given */

/* True: it was not said of this queue yet, and layers are there. */
static bool is_news(void *handle, uint32_t number)
{
    if (bottom_is(bottom_around()))
        return false;
    struct held *held = held_find(HELD_GIVEN, handle);
    if (held && held->given == number && number)
        return false;
    held = held ? held : held_begin(HELD_GIVEN, handle);
    if (held)
        held->given = number;
    return true;
}

void driven_give(enum shadow_kind kind, void *handle, uint32_t number, const char *call)
{
    struct shadow named = {.kind = kind, .number = number};
    if (handle && is_news(handle, number))
        log_write(LOG_WARN, "%s has given the program the memory of %s: what it does there is not seen", call,
                  SHADOW_NAMED(&named));
    if (handle)
        unfollow(kind, handle);
}

void driven_end(const void *handle)
{
    struct held *held = held_find(HELD_GIVEN, handle);
    if (held)
        held->given = 0;
}
