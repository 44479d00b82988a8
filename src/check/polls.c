/* Completions, as programs poll them. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/likely.h"
#include "calls/questions.h"
#include "check/destroyed/callers.h"
#include "check/idle.h"
#include "check/layer.h"
#include "check/rule.h"
#include "check/shadow/domain.h"
#include "check/shadow/flight.h"
#include "check/shadow/refusals.h"

static uintptr_t self(void)
{
    return (uintptr_t)pthread_self();
}

static bool is_of_domain(const struct ibv_cq *ibv)
{
    return calls_questions->cq_made(ibv).has_thread_domain;
}

static bool is_of_one_thread(const struct ibv_cq *ibv)
{
    return calls_questions->cq_made(ibv).create_flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
}

/* Notes a poll, which sees the entries that the CQ was armed for and those from before. */
static void note_poll(const struct ibv_cq *ibv)
{
    shadow_lock();
    struct shadow *cq = shadow_find(SHADOW_CQ, ibv);
    domain_enter(cq, "ibv_poll_cq");
    if (cq)
        cq->cq.armer = cq->cq.leaver = 0;
    shadow_unlock();
}

/* Notes that this thread's poll has ended before the queue was empty. */
static void note_left(const struct ibv_cq *ibv)
{
    struct calls_cq_entries entries;
    if (!ibv->channel || !calls_questions->cq_entries(ibv, &entries) || !entries.waiting)
        return;
    shadow_lock();
    struct shadow *cq = shadow_find(SHADOW_CQ, ibv);
    if (cq)
        cq->cq.leaver = self();
    shadow_unlock();
}

/* Begins a poll. A SINGLE_THREADED CQ is this thread's until end_polling. */
static void begin_polling(const struct ibv_cq *ibv)
{
    hooks_see_use(SHADOW_CQ, ibv, "ibv_poll_cq");
    if (ibv->channel || is_of_domain(ibv))
        note_poll(ibv);
    if (!is_of_one_thread(ibv))
        return;
    shadow_lock();
    struct shadow *cq = shadow_find(SHADOW_CQ, ibv);
    if (cq && cq->cq.inside && cq->cq.inside != self())
        HOOKS_CALL(polled_twice, cq);
    if (cq && !cq->cq.inside)
        cq->cq.inside = self();
    shadow_unlock();
}

static void end_polling(const struct ibv_cq *ibv)
{
    if (!is_of_domain(ibv) && !is_of_one_thread(ibv))
        return;
    shadow_lock();
    struct shadow *cq = shadow_find(SHADOW_CQ, ibv);
    domain_leave(cq);
    if (cq && cq->cq.inside == self())
        cq->cq.inside = 0;
    shadow_unlock();
}

/* Overwrites the fields that adapters leave undefined. EFA sets the opcode of failed work, too. */
static void poison(const struct ibv_cq *cq, struct ibv_wc *wc)
{
    enum { POISON = 0x5a };
    struct ibv_wc valid = *wc;
    memset(wc, POISON, sizeof *wc);
    wc->wr_id = valid.wr_id;
    wc->status = valid.status;
    wc->vendor_err = valid.vendor_err;
    wc->qp_num = valid.qp_num;
    if (hooks_is_vendors(cq->context))
        wc->opcode = valid.opcode;
}

/* Called under no lock of the library or the checker, as end_words takes the queue pair's. */
static void complete_failed(const struct ibv_cq *ibv, struct calls_completion *completion)
{
    char text[CALLS_WORDS_OF_END];
    if (rule_chosen.rules[RULE_FAILED_WORK] && calls_questions->end_words(ibv, completion, text))
        completion->end = text;
    shadow_lock();
    flight_complete(completion);
    shadow_unlock();
}

static void complete_list(const struct ibv_cq *cq, struct ibv_wc *list, int count)
{
    shadow_lock();
    for (struct ibv_wc *wc = list; wc < list + count; wc++) {
        struct calls_completion completion = {wc->wr_id,  wc->qp_num,     wc->byte_len, wc->status,
                                              wc->opcode, wc->vendor_err, NULL};
        if (likely(!wc->status)) {
            flight_complete(&completion);
            continue;
        }
        shadow_unlock();
        complete_failed(cq, &completion);
        if (rule_chosen.rules[RULE_FAILED_FIELD])
            poison(cq, wc);
        shadow_lock();
    }
    shadow_unlock();
}

static bool cq_is_lost(const struct ibv_cq *ibv, const char *call)
{
    return unlikely(calls_questions->cq_is_gone(ibv)) && hooks_is_gone(SHADOW_CQ, ibv, call);
}

/* Lets the rules see a poll while a refused post is kept. */
static void note_found(const struct ibv_cq *ibv, bool found)
{
    shadow_lock();
    struct shadow *cq = shadow_find(SHADOW_CQ, ibv);
    if (cq)
        HOOKS_CALL(waits.polled, cq, found);
    shadow_unlock();
}

/* Notes a poll that found nothing. Judges now and then only, as most polls find nothing. */
static void note_nothing(const struct ibv_cq *cq)
{
    enum { STEP = 1021 }; /* no multiple of the number of queues that a thread polls in turn */
    static _Thread_local unsigned nothing __attribute__((tls_model("initial-exec")));
    if (likely(++nothing < STEP))
        return;
    nothing = 0;
    idle_polled(cq);
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *list)
{
    if (cq_is_lost(cq, "ibv_poll_cq"))
        return errno = EINVAL, -EINVAL;
    begin_polling(cq);
    callers_enter("ibv_poll_cq", cq, NULL);
    int found = layer_below(ibv_poll_cq)(cq, count, list);
    callers_leave();
    end_polling(cq);
    if (found > 0 && found == count)
        note_left(cq);
    if (found > 0)
        complete_list(cq, list, found);
    if (refusals_any() && found >= 0 && count > 0)
        note_found(cq, found);
    if (!found)
        note_nothing(cq);
    return found;
}

/* Ends the work of the entry that an iterator shows. */
static void complete_shown(struct ibv_cq_ex *ibv)
{
    struct calls_completion completion = calls_questions->cq_shown(ibv);
    if (unlikely(completion.status))
        return complete_failed(ibv_cq_ex_to_cq(ibv), &completion);
    shadow_lock();
    flight_complete(&completion);
    shadow_unlock();
}

/* The queue in which this thread's ibv_next_poll has found no more entries. */
static _Thread_local const struct ibv_cq_ex *emptied __attribute__((tls_model("initial-exec")));

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    if (cq_is_lost(ibv_cq_ex_to_cq(cq), "ibv_start_poll"))
        return errno = EINVAL;
    begin_polling(ibv_cq_ex_to_cq(cq));
    callers_open(CALLERS_POLL, cq);
    int result = layer_below(ibv_start_poll)(cq, attr);
    if (refusals_any() && (!result || result == ENOENT))
        note_found(ibv_cq_ex_to_cq(cq), !result);
    if (!result) {
        complete_shown(cq);
        return 0;
    }
    callers_open(CALLERS_POLL, NULL);
    end_polling(ibv_cq_ex_to_cq(cq));
    if (result == ENOENT)
        note_nothing(ibv_cq_ex_to_cq(cq));
    return result;
}

static int next_poll(struct ibv_cq_ex *cq)
{
    int result = layer_below(ibv_next_poll)(cq);
    if (!result)
        complete_shown(cq);
    else
        emptied = cq;
    return result;
}

static void end_poll(struct ibv_cq_ex *cq)
{
    end_polling(ibv_cq_ex_to_cq(cq));
    layer_below(ibv_end_poll)(cq);
    if (emptied != cq)
        note_left(ibv_cq_ex_to_cq(cq));
    emptied = NULL;
    callers_open(CALLERS_POLL, NULL);
}

/* -- readers */

static void note_read(const struct ibv_cq_ex *ibv, uint64_t flag, const char *call)
{
    if (!(flag & ~calls_questions->cq_made((const struct ibv_cq *)ibv).wc_flags) && !ibv->status)
        return;
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CQ, ibv);
    if (shadow)
        HOOKS_CALL(read_field, shadow, flag, call);
    shadow_unlock();
}

/* Reads of vendor_err are not noted, as it is valid in failed entries, too. */
static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
    if (!hooks_is_vendors(cq->context))
        note_read(cq, 0, "ibv_wc_read_opcode");
    return layer_below(ibv_wc_read_opcode)(cq);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
    note_read(cq, 0, "ibv_wc_read_wc_flags");
    return layer_below(ibv_wc_read_wc_flags)(cq);
}

#define READER(type, name, flag, parameters, arguments)                                                                \
    static type name parameters                                                                                        \
    {                                                                                                                  \
        note_read(cq, IBV_WC_EX_WITH_##flag, "ibv_wc_" #name);                                                         \
        return layer_below(ibv_wc_##name) arguments;                                                                   \
    }
#include "calls/verbs.def"

void polls_fill(struct calls *calls)
{
#define READER(type, name, flag, parameters, arguments) calls->ibv_wc_##name = name;
#include "calls/verbs.def"
    calls->ibv_wc_read_opcode = read_opcode;
    calls->ibv_wc_read_wc_flags = read_wc_flags;
    calls->ibv_poll_cq = poll_cq;
    calls->ibv_start_poll = start_poll;
    calls->ibv_next_poll = next_poll;
    calls->ibv_end_poll = end_poll;
}
