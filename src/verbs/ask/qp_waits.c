#include "verbs/ask/qp_waits.h"

#include "diag/log.h"
#include "diagnose/diagnose.h"
#include "transport/engine/flight.h"
#include "verbs/ask/qp_flight.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/ask/qp_story.h"

static const nanos waited_least = NANOS_SECOND; /* textbook programs wait for two seconds */

static bool may_send(const struct qp *qp)
{
    return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
}

bool qp_waits_for_completion(const struct qp *qp)
{
    lock_assert_held(&qp->lock);
    return may_send(qp) && qp->sends.posted && !qp->sends.signal_all && qp->sends.unsignalled == qp->sends.posted &&
           !atomic_load(&qp->sends.retired);
}

/* Returns true if requests are sent again within the time that programs and their users wait. */
static bool retransmits_soon(const struct qp *qp)
{
    enum { LONG = 21 }; /* 8.6 seconds, and up to four times as much */
    return qp->attr.timeout && qp->attr.timeout < LONG;
}

bool qp_waits_for_response(const struct qp *qp, uint32_t *moved)
{
    lock_assert_held(&qp->lock);
    const struct engine *engine = qp_engine(qp);
    if (!may_send(qp) || !qp_is_reliable(qp) || retransmits_soon(qp) || engine_waits_for_receive(engine))
        return false;
    *moved = psn_add(engine_next_psn(engine), -flight_outstanding(engine));
    return qp_flight_unanswered(qp);
}

enum reason qp_waits_reason(const struct qp *qp)
{
    uint32_t moved;
    if (qp_waits_for_response(qp, &moved))
        return REASON_NO_ANSWER;
    return qp_waits_for_completion(qp) ? REASON_NO_COMPLETION : REASON_NONE;
}

void qp_waits_ask(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    qp_inquire_silence(qp, qp_story_now());
}

/* Logs a wait in the words of "softverbs why" (diagnose/diagnose.h). */
static void log_wait(const struct qp *qp, enum reason reason, enum diagnosis diagnosis, const char *words)
{
    char text[DIAGNOSE_ROOM];
    struct facts_qp own = {.number = {qp->number, true}, .timeout = {qp->attr.timeout, true}};
    const struct known known = {.own = &own, .words = words};
    qp_flight_fill(&own, qp);
    log_cause(LOG_WARN, reason, "qp 0x%x: %s", qp->number, diagnose_words(diagnosis, &known, text, sizeof text));
}

void qp_waits_tell_completion(const struct qp *qp)
{
    lock_assert_held(&qp->lock);
    log_wait(qp, REASON_NO_COMPLETION, DIAGNOSIS_UNSIGNALLED, NULL);
}

void qp_waits_tell_response(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (qp_inquiry_waits(qp))
        qp_inquire_silence(qp, qp_story_now());
    const char *known = qp->told.inquiry && !qp_inquiry_is_of_refusal(qp) && qp->told.known ? qp->told.known : "";
    log_wait(qp, REASON_NO_ANSWER, DIAGNOSIS_WAITS_FOR_ANSWER, *known ? known : reason_sentence(REASON_NO_ANSWER));
}

static nanos waits_since(const struct qp *qp, nanos now)
{
    const struct send_queue *queue = engine_queue((struct engine *)qp_engine(qp));
    uint32_t since = queue->head == queue->tail ? 0 : send_queue_when(now) - send_queue_at(queue, queue->head)->posted;
    return since > INT32_MAX ? 0 : (nanos)since << 20;
}

bool qp_waits_end(struct qp *qp, const struct story *story, uint32_t at)
{
    lock_assert_held(&qp->lock);
    uint32_t moved;
    nanos now = qp_story_now();
    if (!log_wanted(LOG_WARN))
        return false;
    if (qp_waits_for_response(qp, &moved) && waits_since(qp, now) > waited_least) {
        qp_waits_tell_response(qp);
        return true;
    }
    /* a program that continues without completions does not end long after its last work */
    nanos ended = qp_story_last_ended(story, at);
    bool given_up = qp_waits_for_completion(qp) && ended && nanos_since(ended, now) > waited_least;
    if (given_up)
        qp_waits_tell_completion(qp);
    return given_up;
}
