#include "script/call_layer.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/result.h"
#include "base/uncancelled.h"
#include "calls/calls.h"
#include "diag/log.h"
#include "events/call_counts.h"
#include "events/refusal.h"
#include "script/decide.h"
#include "script/parse.h"

static struct {
    struct script *script;
    uint64_t seed;
    nanos began;
    atomic_bool used;
} around;

static struct calls_layer layer;

static nanos now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (nanos)time.tv_sec * NANOS_SECOND + (nanos)time.tv_nsec;
}

/* --- what a verdict does */

/* "ibv_reg_mr of pd 1" */
static void name_call(const struct script_event *event, char *text, size_t size)
{
    const char *title = script_names[event->call].title + (*script_names[event->call].title == '_');
    if (event->subject.kind)
        snprintf(text, size, "%s of %s %u", title, event->subject.kind, event->subject.number);
    else
        snprintf(text, size, "%s", title);
}

static void log_verdict(const struct script_event *event, const struct script_verdict *verdict)
{
    char call[96], late[48] = "", signal[32] = "";
    name_call(event, call, sizeof call);
    if (verdict->delay)
        snprintf(late, sizeof late, " begins %llu us late,", (unsigned long long)(verdict->delay / NANOS_MICROSECOND));
    if (verdict->signal)
        snprintf(signal, sizeof signal, " signal %d is sent,", verdict->signal);
    log_cause((enum log_level)event_level(EVENT_SCRIPTED_ERROR), REASON_SCRIPTED,
              "%s:%s%s%s%s by line %u of the script", call, late, signal, verdict->error ? " fails with " : "",
              verdict->error ? script_error_name(verdict->error) : "", verdict->rule->line);
    if (verdict->error)
        refusal_told();
}

static void note_verdict(const struct script_event *event, const struct script_verdict *verdict)
{
    if (verdict->delay)
        call_note(EVENT_SCRIPTED_DELAY, REASON_SCRIPTED);
    if (verdict->signal)
        call_note(EVENT_SCRIPTED_SIGNAL, REASON_SCRIPTED);
    if (verdict->error)
        call_note(EVENT_SCRIPTED_ERROR, REASON_SCRIPTED);
    log_verdict(event, verdict);
}

/* A thread that is cancelled here could hold the lock of a queue pair or CQ: the program may be in a batch. */
static void wait_for(nanos delay)
{
    int before = uncancelled_begin();
    struct timespec rest = {(time_t)(delay / NANOS_SECOND), (long)(delay % NANOS_SECOND)};
    while (delay && nanosleep(&rest, &rest) && errno == EINTR) {
    }
    uncancelled_end(before);
}

/* The error number with which the call is refused, or 0. Under no lock but that of a program's batch; errno stays. */
static int meet(struct script_event event)
{
    int kept = errno;
    atomic_store_explicit(&around.used, true, memory_order_relaxed);
    event.age = now() - around.began;
    event.seed = around.seed;
    struct script_verdict verdict = script_decide(around.script, &event);
    if (verdict.rule) {
        note_verdict(&event, &verdict);
        wait_for(verdict.delay);
        if (verdict.signal)
            kill(getpid(), verdict.signal);
    }
    errno = kept;
    return verdict.error;
}

/* --- all calls, in one form for each way to fail */

#define REFUSE_code return result_failure(error)
#define REFUSE_minus                                                                                                   \
    do {                                                                                                               \
        errno = error;                                                                                                 \
        return -1;                                                                                                     \
    } while (0)
#define REFUSE_event REFUSE_minus
#define REFUSE_negative                                                                                                \
    do {                                                                                                               \
        errno = error;                                                                                                 \
        return -error;                                                                                                 \
    } while (0)
#define REFUSE_pointer                                                                                                 \
    do {                                                                                                               \
        errno = error;                                                                                                 \
        return NULL;                                                                                                   \
    } while (0)
/* parse.c lets no rule refuse these. */
#define REFUSE_nothing (void)0
#define REFUSE_plain (void)0
#define REFUSE_void REFUSE_nothing
#define REFUSE_int REFUSE_code
#define REFUSE_bind_mw REFUSE_code
#define REFUSE_poll_cq REFUSE_negative
#define REFUSE_req_notify_cq REFUSE_code
#define REFUSE_post_srq_recv REFUSE_code
#define REFUSE_post_srq_ops REFUSE_code
#define REFUSE_post_send REFUSE_code
#define REFUSE_post_recv REFUSE_code

#define AROUND(type, name, parameters, arguments, refuse)                                                              \
    static type around_##name parameters                                                                               \
    {                                                                                                                  \
        int error = meet((struct script_event){.call = SCRIPT_##name, .subject = CALLS_SUBJECT arguments});            \
        if (error)                                                                                                     \
            refuse;                                                                                                    \
        return calls_get(&layer.below, name) arguments;                                                                \
    }

#define VERB(answer, type, name, work, parameters, arguments) AROUND(type, name, parameters, arguments, REFUSE_##answer)
#define NEWER_VERB(answer, type, name, work, parameters, arguments)                                                    \
    AROUND(type, name, parameters, arguments, REFUSE_##answer)
#define MEMBER(table, answer, type, member, name, work, parameters, arguments)                                         \
    AROUND(type, name, parameters, arguments, REFUSE_##answer)
#define FAST(table, type, name, work, parameters, arguments)                                                           \
    AROUND(type, ibv_##name, parameters, arguments, REFUSE_##name)
#define ON_OBJECT(object, type, member, name, parameters, arguments)                                                   \
    AROUND(type, name, parameters, arguments, REFUSE_##type)
#define BUILDER(type, name, parameters, arguments) AROUND(type, ibv_##name, parameters, arguments, REFUSE_##type)
#define NEWER_BUILDER(type, name, parameters, arguments) AROUND(type, ibv_##name, parameters, arguments, REFUSE_##type)
#define ITERATOR(type, name, parameters, arguments) AROUND(type, ibv_##name, parameters, arguments, REFUSE_##type)
#define FIRST_READER(type, name, parameters, arguments) AROUND(type, ibv_wc_##name, parameters, arguments, REFUSE_plain)
#define READER(type, name, flag, parameters, arguments) AROUND(type, ibv_wc_##name, parameters, arguments, REFUSE_plain)
#include "calls/verbs.def"

#define COMMAND(number, page, how, serve, layout, least, answer, object)                                               \
    AROUND(int, serve, (struct ucma_call * call), (call), REFUSE_code)
#include "calls/ucma.def"

static struct calls_layer layer = {
    .name = "script",
    .place = 50,
    .calls =
        {
#define CALL(type, name, title, parameters, arguments) .name = around_##name,
#define HELD(type, name, title, parameters, arguments) .name = around_##name,
#include "calls/each.def"
        },
};

/* --- lists of work requests: each counts, and those before the one that is refused are posted */

enum { COPIES = 16 };

/* Posts `count` work requests of a list that goes on behind them, by copies, as the program's may be constant. */
#define LIST_OF(name, object, work, opcode_of)                                                                         \
    static int post_some_##name(object *on, work *wr, unsigned count, work **bad)                                      \
    {                                                                                                                  \
        work copies[COPIES], *failed = NULL;                                                                           \
        while (count) {                                                                                                \
            unsigned part = count < COPIES ? count : COPIES;                                                           \
            work *begin = wr;                                                                                          \
            for (unsigned i = 0; i < part; i++, wr = wr->next) {                                                       \
                copies[i] = *wr;                                                                                       \
                copies[i].next = i + 1 < part ? &copies[i + 1] : NULL;                                                 \
            }                                                                                                          \
            int error = calls_get(&layer.below, ibv_##name)(on, copies, &failed);                                      \
            if (error) {                                                                                               \
                for (*bad = begin; failed > copies; failed--)                                                          \
                    *bad = (*bad)->next;                                                                               \
                return error;                                                                                          \
            }                                                                                                          \
            count -= part;                                                                                             \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    static int post_##name(object *on, work *wr, work **bad)                                                           \
    {                                                                                                                  \
        unsigned good = 0;                                                                                             \
        int error = 0;                                                                                                 \
        for (work *each = wr; each; each = each->next, good++) {                                                       \
            error = meet((struct script_event){.call = SCRIPT_ibv_##name,                                              \
                                               .subject = CALLS_SUBJECT(on),                                           \
                                               .is_work = true,                                                        \
                                               .opcode = opcode_of,                                                    \
                                               .wr_id = each->wr_id});                                                 \
            if (!error)                                                                                                \
                continue;                                                                                              \
            int before = post_some_##name(on, wr, good, bad);                                                          \
            if (before)                                                                                                \
                return before;                                                                                         \
            *bad = each;                                                                                               \
            return result_failure(error);                                                                              \
        }                                                                                                              \
        return calls_get(&layer.below, ibv_##name)(on, wr, bad);                                                       \
    }

LIST_OF(post_send, struct ibv_qp, struct ibv_send_wr, (int)each->opcode)
LIST_OF(post_recv, struct ibv_qp, struct ibv_recv_wr, -1)
LIST_OF(post_srq_recv, struct ibv_srq, struct ibv_recv_wr, -1)

/* A batch whose end is refused is given up, with the lock that it holds. */
static int complete(struct ibv_qp_ex *qp)
{
    int error = meet((struct script_event){.call = SCRIPT_ibv_wr_complete, .subject = CALLS_SUBJECT(qp)});
    if (!error)
        return calls_get(&layer.below, ibv_wr_complete)(qp);
    calls_get(&layer.below, ibv_wr_abort)(qp);
    return result_failure(error);
}

/* Each program begins with ibv_get_device_list. */
static bool is_wanted(const struct script *script, enum script_call call)
{
    if (call == SCRIPT_ibv_get_device_list)
        return true;
    for (unsigned i = 0; i < script->count; i++)
        if (script->rules[i].calls[call])
            return true;
    return false;
}

void call_layer_start(struct script *script, uint64_t seed)
{
    around.script = script;
    around.seed = seed;
    around.began = now();
    layer.calls.ibv_post_send = post_post_send;
    layer.calls.ibv_post_recv = post_post_recv;
    layer.calls.ibv_post_srq_recv = post_post_srq_recv;
    layer.calls.ibv_wr_complete = complete;
#define CALL(type, name, title, parameters, arguments)                                                                 \
    if (!is_wanted(script, SCRIPT_##name))                                                                             \
        layer.calls.name = NULL;
#define HELD(type, name, title, parameters, arguments) CALL(type, name, title, parameters, arguments)
#include "calls/each.def"
    calls_put_around(&layer);
}

bool call_layer_is_used(void)
{
    return atomic_load_explicit(&around.used, memory_order_relaxed);
}
