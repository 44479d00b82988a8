#include "inject/call_layer.h"

#include <errno.h>
#include <fnmatch.h>
#include <infiniband/verbs.h>

#include "base/result.h"
#include "calls/caller.h"
#include "calls/calls.h"
#include "calls/post_some.h"
#include "script/field.h"
#include "script/reach.h"
#include "script/rules.h"

static struct calls_layer layer;

/* Fills in the place of the program, where a rule asks for it. */
static void find_caller(struct script_event *event)
{
    int kept = errno;
    if (rules_want_callers() && !event->caller.place)
        event->caller = caller_find();
    errno = kept;
}

/* Does the actions before the call. The caller holds no lock but a program's batch; errno stays. */
static struct script_verdict apply_to_call(const struct script_event *event)
{
    struct script_event about = *event;
    find_caller(&about);
    about.device = script_reach->device(&event->subject);
    struct script_verdict verdict = rules_apply(about);
    rules_wait(verdict.delay);
    if (verdict.raised)
        script_reach->event(&event->subject, verdict.raised);
    if (verdict.freeze)
        script_reach->freeze(&event->subject, verdict.freeze);
    if (verdict_has(&verdict, SCRIPT_RELEASE))
        script_reach->release(&event->subject);
    return verdict;
}

/* The error number with which the call is refused, or 0. Likewise. */
static int meet(struct script_event event)
{
    return apply_to_call(&event).error;
}

/* --- all calls; script/parse.c lets no rule refuse those that do not fail */

#define CALL(answer, type, name, title, parameters, arguments)                                                         \
    static type around_##name parameters                                                                               \
    {                                                                                                                  \
        int error = meet((struct script_event){.call = SCRIPT_##name, .subject = CALLS_SUBJECT arguments});            \
        if (error)                                                                                                     \
            RESULT_REFUSE_##answer(error);                                                                             \
        return calls_get(&layer.below, name) arguments;                                                                \
    }
#define HELD CALL

static struct script_verdict work_begun(enum script_call, struct ibv_qp_ex *);
static struct script_end end_of(const struct script_verdict *);

/* A builder that answers, which wr_complete alone does, is replaced below. */
#define BUILT_code CALL
#define BUILT_nothing(answer, type, name, title, parameters, arguments)                                                \
    static void around_##name parameters                                                                               \
    {                                                                                                                  \
        meet((struct script_event){.call = SCRIPT_##name, .subject = CALLS_SUBJECT arguments});                        \
        struct script_verdict verdict = work_begun(SCRIPT_##name, qp);                                                 \
        if (verdict.completes && script_reach->build_begin)                                                            \
            script_reach->build_begin(qp, end_of(&verdict));                                                           \
        calls_get(&layer.below, name) arguments;                                                                       \
        if (verdict.completes && script_reach->build)                                                                  \
            script_reach->build(qp, end_of(&verdict));                                                                 \
    }
#define HELD_BUILDER(answer, ...) BUILT_##answer(answer, __VA_ARGS__)
#include "calls/each.def"

/* --- questions, whose answers rules may change */

#define ASKED(name, type, parameters, arguments, position, way, failed, where, size)                                   \
    static type asked_##name parameters                                                                                \
    {                                                                                                                  \
        struct script_event event = {.call = SCRIPT_##name,                                                            \
                                     .subject = CALLS_SUBJECT arguments,                                               \
                                     .has_index = (position) >= 0,                                                     \
                                     .index = (uint32_t)(position)};                                                   \
        struct script_verdict verdict = apply_to_call(&event);                                                         \
        int error = verdict.error;                                                                                     \
        if (error)                                                                                                     \
            RESULT_REFUSE_##way(error);                                                                                \
        type answer = calls_get(&layer.below, name) arguments;                                                         \
        for (unsigned i = 0; i < verdict.changing && !(failed); i++)                                                   \
            field_change(&verdict.changes[i], SCRIPT_##name, where, size);                                             \
        return answer;                                                                                                 \
    }

ASKED(ibv_query_device, int, (struct ibv_context * context, struct ibv_device_attr *attr), (context, attr), -1, code,
      answer, attr, sizeof *attr)
ASKED(ibv_query_device_ex, int,
      (struct ibv_context * context, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
       size_t size),
      (context, input, attr, size), -1, code, answer, attr, size)
ASKED(ibv_query_port, int, (struct ibv_context * context, uint8_t port, struct ibv_port_attr *attr, size_t size),
      (context, port, attr, size), -1, code, answer, attr, size)
ASKED(ibv_query_gid, int, (struct ibv_context * context, uint8_t port, int index, union ibv_gid *gid),
      (context, port, index, gid), index, minus, answer, gid, sizeof *gid)
ASKED(_ibv_query_gid_ex, int,
      (struct ibv_context * context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
       size_t size),
      (context, port, index, entry, flags, size), (int)index, code, answer, entry, size)
ASKED(ibv_query_pkey, int, (struct ibv_context * context, uint8_t port, int index, __be16 *pkey),
      (context, port, index, pkey), index, minus, answer, pkey, sizeof *pkey)
ASKED(ibv_query_qp, int, (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),
      (qp, attr, mask, init), -1, code, answer, attr, sizeof *attr)
ASKED(ibv_query_srq, int, (struct ibv_srq * srq, struct ibv_srq_attr *attr), (srq, attr), -1, code, answer, attr,
      sizeof *attr)

/* The list ends in NULL. */
static struct ibv_device **list_devices(int *count)
{
    struct script_event event = {.call = SCRIPT_ibv_get_device_list};
    struct script_verdict verdict = apply_to_call(&event);
    int error = verdict.error, kept = 0;
    if (error)
        RESULT_REFUSE_pointer(error);
    struct ibv_device **list = calls_get(&layer.below, ibv_get_device_list)(count);
    if (!list || !*verdict.hidden)
        return list;
    for (struct ibv_device **each = list; *each; each++)
        if (fnmatch(verdict.hidden, (*each)->name, 0) != 0)
            list[kept++] = *each;
    list[kept] = NULL;
    if (count)
        *count = kept;
    return list;
}

/* Raises an event of the device after it was opened: before, no context could get it. */
static struct ibv_context *open_device(struct ibv_device *device)
{
    struct script_event event = {.call = SCRIPT_ibv_open_device, .subject = CALLS_SUBJECT(device)};
    struct script_verdict verdict = apply_to_call(&event);
    int error = verdict.error;
    if (error)
        RESULT_REFUSE_pointer(error);
    struct ibv_context *context = calls_get(&layer.below, ibv_open_device)(device);
    if (!context)
        return NULL;
    struct script_event open = {.call = SCRIPT_open, .subject = CALLS_SUBJECT(context)};
    if (verdict.raised)
        script_reach->event(&open.subject, verdict.raised);
    if (rules_wants(SCRIPT_open))
        apply_to_call(&open);
    return context;
}

#undef ASKED
#define EACH_ASKED(asked)                                                                                              \
    asked(ibv_query_device) asked(ibv_query_device_ex) asked(ibv_query_port) asked(ibv_query_gid)                      \
        asked(_ibv_query_gid_ex) asked(ibv_query_pkey) asked(ibv_query_qp) asked(ibv_query_srq)

static struct calls_layer layer = {.name = "script", .place = CALLS_PLACE_SCRIPT};

static const struct calls around = {
#define CALL(answer, type, name, ...) .name = around_##name,
#define HELD CALL
#include "calls/each.def"
};

/* --- lists of work requests: each counts, and those before the one that is refused are posted */

static struct script_end end_of(const struct script_verdict *verdict)
{
    return (struct script_end){(enum ibv_wc_status)verdict->status, verdict->vendor};
}

/* Returns the verdict of the rules on a work request: as a call, and by its kind. */
static struct script_verdict apply_to_work(enum script_call call, enum script_call happening, struct script_event event)
{
    event.is_work = true;
    event.call = call;
    find_caller(&event);
    struct script_verdict verdict = apply_to_call(&event);
    event.call = happening;
    if (verdict.error || !rules_wants(happening))
        return verdict;
    return rules_apply(event);
}

/* Posts a copy, as the program's request may be constant. */
static int post_scripted_send(struct ibv_qp *qp, const struct ibv_send_wr *wr, const struct script_verdict *verdict)
{
    struct ibv_send_wr copy = *wr, *bad;
    copy.next = NULL;
    return script_reach->post_send(qp, &copy, end_of(verdict), &bad);
}

#define SCRIPTED_RECEIVE(name, object)                                                                                 \
    static int post_scripted_##name(object *on, const struct ibv_recv_wr *wr, const struct script_verdict *verdict)    \
    {                                                                                                                  \
        struct ibv_recv_wr copy = *wr, *bad;                                                                           \
        copy.next = NULL;                                                                                              \
        return script_reach->post_##name(on, &copy, end_of(verdict), &bad);                                            \
    }

SCRIPTED_RECEIVE(recv, struct ibv_qp)
SCRIPTED_RECEIVE(srq_recv, struct ibv_srq)

#define LIST_OF(name, happening, object, work, opcode_of)                                                              \
    CALLS_POST_SOME(name, object, work, calls_get(&layer.below, ibv_post_##name))                                      \
    static int post_##name(object *on, work *wr, work **bad)                                                           \
    {                                                                                                                  \
        unsigned good = 0;                                                                                             \
        work *begin = wr;                                                                                              \
        for (work *each = wr; each; each = each->next, good++) {                                                       \
            struct script_verdict verdict = apply_to_work(                                                             \
                SCRIPT_ibv_post_##name, SCRIPT_##happening,                                                            \
                (struct script_event){.subject = CALLS_SUBJECT(on), .opcode = opcode_of, .wr_id = each->wr_id});       \
            if (!verdict.error && !verdict.completes)                                                                  \
                continue;                                                                                              \
            int error = post_some_##name(on, begin, good, bad);                                                        \
            if (error)                                                                                                 \
                return error;                                                                                          \
            error = verdict.error ? result_failure(verdict.error) : post_scripted_##name(on, each, &verdict);          \
            if (error) {                                                                                               \
                *bad = each;                                                                                           \
                return error;                                                                                          \
            }                                                                                                          \
            begin = each->next;                                                                                        \
            good = UINT32_MAX; /* 0 after this one */                                                                  \
        }                                                                                                              \
        return begin || !wr ? calls_get(&layer.below, ibv_post_##name)(on, begin, bad) : 0;                            \
    }

LIST_OF(send, work, struct ibv_qp, struct ibv_send_wr, (int)each->opcode)
LIST_OF(recv, receive, struct ibv_qp, struct ibv_recv_wr, -1)
LIST_OF(srq_recv, receive, struct ibv_srq, struct ibv_recv_wr, -1)

/* --- builders */

/* The builders that begin a work request, and its opcode. */
#define BEGUN(begin)                                                                                                   \
    begin(wr_send, IBV_WR_SEND) begin(wr_send_imm, IBV_WR_SEND_WITH_IMM) begin(wr_send_inv, IBV_WR_SEND_WITH_INV)      \
        begin(wr_send_tso, IBV_WR_TSO) begin(wr_local_inv, IBV_WR_LOCAL_INV) begin(wr_bind_mw, IBV_WR_BIND_MW)         \
            begin(wr_rdma_write, IBV_WR_RDMA_WRITE) begin(wr_rdma_write_imm, IBV_WR_RDMA_WRITE_WITH_IMM)               \
                begin(wr_rdma_read, IBV_WR_RDMA_READ) begin(wr_atomic_cmp_swp, IBV_WR_ATOMIC_CMP_AND_SWP)              \
                    begin(wr_atomic_fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD)                                            \
                        begin(wr_atomic_write, IBV_WR_ATOMIC_WRITE) begin(wr_flush, NEWER_WR_FLUSH)

static int opcode_of_builder(enum script_call call)
{
    static const struct {
        enum script_call call;
        int opcode;
    } begun[] = {
#define ENTRY(name, opcode) {SCRIPT_ibv_##name, opcode},
        BEGUN(ENTRY)
#undef ENTRY
    };
    for (size_t i = 0; i < sizeof begun / sizeof *begun; i++)
        if (begun[i].call == call)
            return begun[i].opcode;
    return -1;
}

/* The verdict on the work request that this builder begins; none of other builders. */
static struct script_verdict work_begun(enum script_call call, struct ibv_qp_ex *qp)
{
    int opcode = opcode_of_builder(call);
    bool given_up = call == SCRIPT_ibv_wr_abort;
    if ((opcode >= 0 || given_up) && script_reach->build_end)
        script_reach->build_end(qp, given_up ? SCRIPT_BATCH_IS_GIVEN_UP : SCRIPT_BATCH_GOES_ON);
    if (opcode < 0 || !rules_wants(SCRIPT_work))
        return (struct script_verdict){0};
    struct script_event event = {
        .call = SCRIPT_work, .subject = CALLS_SUBJECT(qp), .is_work = true, .opcode = opcode, .wr_id = qp->wr_id};
    find_caller(&event);
    return rules_apply(event);
}

/* A batch whose end is refused is given up, with the lock that it holds. */
static int complete(struct ibv_qp_ex *qp)
{
    int error = meet((struct script_event){.call = SCRIPT_ibv_wr_complete, .subject = CALLS_SUBJECT(qp)});
    if (script_reach->build_end)
        script_reach->build_end(qp, error ? SCRIPT_BATCH_IS_GIVEN_UP : SCRIPT_BATCH_IS_POSTED);
    if (!error)
        return calls_get(&layer.below, ibv_wr_complete)(qp);
    calls_get(&layer.below, ibv_wr_abort)(qp);
    return result_failure(error);
}

/* Each program begins with ibv_get_device_list. */
static bool is_wanted(enum script_call call)
{
    bool posts = call == SCRIPT_ibv_post_send || opcode_of_builder(call) >= 0 ||
                 (script_reach->build_end && (call == SCRIPT_ibv_wr_complete || call == SCRIPT_ibv_wr_abort));
    bool receives = call == SCRIPT_ibv_post_recv || call == SCRIPT_ibv_post_srq_recv;
    return call == SCRIPT_ibv_get_device_list || rules_is_for(call) || (posts && rules_wants(SCRIPT_work)) ||
           (receives && rules_wants(SCRIPT_receive)) || (call == SCRIPT_ibv_open_device && rules_wants(SCRIPT_open));
}

/* While it is off, calls go undisturbed. */
void call_layer_change(void)
{
    calls_take_off(&layer);
    if (script_reach->prepare)
        script_reach->prepare();
    struct calls calls = around;
    calls.ibv_post_send = post_send;
    calls.ibv_post_recv = post_recv;
    calls.ibv_post_srq_recv = post_srq_recv;
    calls.ibv_wr_complete = complete;
    calls.ibv_get_device_list = list_devices;
    calls.ibv_open_device = open_device;
#define ASKED(name) calls.name = asked_##name;
    EACH_ASKED(ASKED)
#undef ASKED
#define CALL(answer, type, name, title, parameters, arguments)                                                         \
    if (!is_wanted(SCRIPT_##name))                                                                                     \
        calls.name = NULL;
#define HELD CALL
#include "calls/each.def"
    layer.calls = calls;
    calls_put_around(&layer);
}
