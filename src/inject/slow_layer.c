#include "inject/slow_layer.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "adverse/adverse.h"
#include "base/settings.h"
#include "base/uncancelled.h"
#include "calls/calls.h"
#include "script/reach.h"

/* The longest of each, unless times are scaled. */
static const nanos some_call = NANOS_MILLISECOND, to_receive = 50 * NANOS_MILLISECOND,
                   of_gibibyte = 100 * NANOS_MILLISECOND;

static struct calls_layer layer = {.name = "slow", .place = CALLS_PLACE_SLOW};

static struct {
    bool on;
    uint64_t seed;
    _Atomic uint64_t threads, calls;
} schedule;

/* --- waiting */

static void wait_for(nanos time)
{
    if (!time)
        return;
    int before = errno, cancelled = uncancelled_begin();
    struct timespec left = {(time_t)(time / NANOS_SECOND), (long)(time % NANOS_SECOND)};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
    uncancelled_end(cancelled);
    errno = before;
}

/* The n-th slow call of the process takes as long in each run. */
static void take_long(nanos most)
{
    enum { STREAM = 1 << 30, EACH = 16 };
    struct adverse_source dice = {
        .stream = STREAM, .drawn = atomic_fetch_add(&schedule.calls, 1) * EACH, .used = UINT32_MAX};
    wait_for(adverse_delay(&dice, ADVERSE_SLOW_CALLS, most));
}

/* The dice of this thread, by its number among the threads that made calls. */
static struct adverse_source *dice_of_thread(void)
{
    static _Thread_local struct adverse_source dice __attribute__((tls_model("initial-exec")));
    static _Thread_local bool begun __attribute__((tls_model("initial-exec")));
    if (!begun)
        dice.stream = (schedule.seed + 1) << 32 | atomic_fetch_add(&schedule.threads, 1);
    begun = true;
    return &dice;
}

static void yield_often(uint64_t times)
{
    for (; times; times--)
        sched_yield();
}

static const nanos longer = NANOS_MILLISECOND;

/* Most calls go on at once. */
static uint64_t pause_now_and_then(struct adverse_source *dice)
{
    enum { OFTEN = 8, SOMETIMES = 128, SELDOM = 1024, YIELDS = 4 };
    const nanos shortly = 100 * NANOS_MICROSECOND;
    uint64_t draw = adverse_draw(dice, SELDOM - 1);
    if (draw % OFTEN == 0)
        yield_often(1 + adverse_draw(dice, YIELDS - 1));
    if (draw % SOMETIMES == 1)
        wait_for(adverse_draw(dice, shortly));
    if (draw == 2)
        wait_for(adverse_draw(dice, longer));
    return draw;
}

static void vary(const struct calls_subject *subject)
{
    struct adverse_source *dice = dice_of_thread();
    if (pause_now_and_then(dice) == 3 && script_reach->freeze)
        script_reach->freeze(subject, adverse_draw(dice, longer));
}

/* A thread may lose the processor before it uses what a call has returned. */
static void after_call(const bool *varies)
{
    if (*varies)
        pause_now_and_then(dice_of_thread());
}

#define VARY_AFTER_CALL bool varies __attribute__((cleanup(after_call), unused)) = schedule.on

static void before_call(struct calls_subject subject, nanos most)
{
    if (schedule.on)
        vary(&subject);
    if (most)
        take_long(most);
}

/* --- which calls take long by themselves */

static bool is_slow(const char *title)
{
    static const char *const begins[] = {"ibv_create_", "ibv_destroy_", "ibv_alloc_",      "ibv_dealloc_",
                                         "ibv_reg_",    "ibv_rereg_",   "ibv_dereg_",      "ibv_resize_",
                                         "ibv_attach_", "ibv_detach_",  "ibv_open_device", "ibv_modify_"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(title, begins[i], strlen(begins[i])))
            return true;
    return false;
}

/* Memory that pages on demand is not pinned, even if it is all memory. A length that is refused takes no days. */
static nanos time_of_memory(size_t length, unsigned access)
{
    enum { GIBIBYTE_BITS = 30, GIBIBYTES_MOST = 64 };
    double gibibytes = (double)length / (double)(1ull << GIBIBYTE_BITS);
    if (access & IBV_ACCESS_ON_DEMAND || gibibytes > GIBIBYTES_MOST)
        return some_call;
    return some_call + (nanos)(gibibytes * (double)of_gibibyte);
}

#define CALL(answer, type, name, title, parameters, arguments)                                                         \
    static type around_##name parameters                                                                               \
    {                                                                                                                  \
        VARY_AFTER_CALL;                                                                                               \
        before_call((struct calls_subject)CALLS_SUBJECT arguments, is_slow(title) ? some_call : 0);                    \
        return calls_get(&layer.below, name) arguments;                                                                \
    }
#define HELD(answer, type, name, title, parameters, arguments)                                                         \
    static type around_##name parameters                                                                               \
    {                                                                                                                  \
        VARY_AFTER_CALL;                                                                                               \
        before_call((struct calls_subject)CALLS_SUBJECT arguments, 0);                                                 \
        return calls_get(&layer.below, name) arguments;                                                                \
    }
#include "calls/each.def"

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    VARY_AFTER_CALL;
    before_call((struct calls_subject)CALLS_SUBJECT(pd), time_of_memory(length, (unsigned)access));
    return calls_get(&layer.below, ibv_reg_mr)(pd, address, length, access);
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
    VARY_AFTER_CALL;
    before_call((struct calls_subject)CALLS_SUBJECT(pd), time_of_memory(length, access));
    return calls_get(&layer.below, ibv_reg_mr_iova2)(pd, address, length, iova, access);
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    VARY_AFTER_CALL;
    bool receives = mask & IBV_QP_STATE && attr && attr->qp_state == IBV_QPS_RTR;
    before_call((struct calls_subject)CALLS_SUBJECT(qp), receives ? to_receive : some_call);
    return calls_get(&layer.below, ibv_modify_qp)(qp, attr, mask);
}

static const struct calls around = {
#define CALL(answer, type, name, ...) .name = around_##name,
#define HELD CALL
#include "calls/each.def"
};

/* Takes the layer's functions away from all calls but slow ones. */
static void want_slow_ones(struct calls *calls)
{
#define CALL(answer, type, name, title, parameters, arguments)                                                         \
    if (!is_slow(title))                                                                                               \
        calls->name = NULL;
#define HELD(answer, type, name, title, parameters, arguments) calls->name = NULL;
#include "calls/each.def"
}

static void read_schedule(void)
{
    char why[128];
    const char *text = setting_environment(SETTING_SCHEDULE);
    schedule.on = text && *text && adverse_parse_schedule(text, &schedule.seed, why, sizeof why);
}

static bool wants_slow_calls(void)
{
    return adverse_list_shows(setting_environment(SETTING_ADVERSE), ADVERSE_SLOW_CALLS);
}

void slow_layer_start(void)
{
    read_schedule();
    if (!schedule.on && !wants_slow_calls())
        return;
    layer.calls = around;
    layer.calls.ibv_reg_mr = reg_mr;
    layer.calls.ibv_reg_mr_iova2 = reg_mr_iova2;
    layer.calls.ibv_modify_qp = modify_qp;
    if (!schedule.on)
        want_slow_ones(&layer.calls);
    calls_put_around(&layer);
}
