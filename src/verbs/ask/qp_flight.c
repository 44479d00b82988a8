#include "verbs/ask/qp_flight.h"

#include "base/read_clock.h"
#include "events/words.h"
#include "facts/fill.h"
#include "transport/engine/flight.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_path.h"
#include "wire/psn.h"

/* Unsignalled work that has ended, if all posted work has: later requests may still bring a completion for it. */
static uint32_t unsignalled(const struct qp *qp)
{
    const struct send_queue *queue = engine_queue((struct engine *)qp_engine(qp));
    return queue->head == queue->tail && !qp->sends.signal_all ? qp->sends.unsignalled : 0;
}

uint32_t qp_flight_unanswered(const struct qp *qp)
{
    lock_assert_held(&qp->lock);
    return flight_outstanding(qp_engine(qp)) + (qp->kind->asks && qp->kind->asks(qp));
}

/* The window is a fact on networks alone: a link of the host never loses. */
static void fill_reliable(struct facts_qp *facts, const struct qp *qp)
{
    const struct engine *engine = qp_engine(qp);
    uint32_t outstanding = flight_outstanding(engine);
    fact_put(&facts->outstanding, true, qp_flight_unanswered(qp));
    fact_put(&facts->oldest_psn, true, psn_add(engine_next_psn(engine), -outstanding));
    fact_put_flag(&facts->not_ready, engine_waits_for_receive(engine), true);
    if (qp->path.remote)
        fact_put(&facts->window, true, flight_window(engine));
}

static void write_message(FILE *out, const struct engine_waiting *waiting)
{
    const struct send_wqe *work = waiting->oldest;
    nanos now = read_clock(CLOCK_MONOTONIC);
    struct facts_message facts = {.opcode = words_opcode(send_wqe_posted_opcode(work))};
    fact_put(&facts.peer_qp, true, work->remote_qp);
    fact_put(&facts.count, true, waiting->count);
    fact_put(&facts.wr_id, true, work->id);
    fact_put(&facts.length, true, work->length);
    fact_put(&facts.seconds, true, send_queue_since(work, now) / NANOS_SECOND);
    fact_put_flag(&facts.not_ready, waiting->unready, true);
    facts_write(out, &facts_of_message, &facts);
}

void qp_flight_messages(FILE *out, const void *of)
{
    const struct qp *qp = of;
    struct engine_messages messages;
    lock_assert_held(&qp->lock);
    engine_describe(qp_engine(qp), &messages);
    fputs("[", out);
    for (uint32_t i = 0; i < messages.receivers; i++) {
        fputs(i ? "," : "", out);
        write_message(out, &messages.waiting[i]);
    }
    fputs("]", out);
}

static void fill_unordered(struct facts_qp *facts, const struct qp *qp)
{
    struct engine_messages messages;
    engine_describe(qp_engine(qp), &messages);
    fact_put(&facts->messages_ended, true, messages.ended);
    if (messages.receivers)
        fact_put_inner(&facts->messages, qp_flight_messages, qp);
}

/* Returns true if the peer is on another host, and the network interface is down. */
static bool is_cut_off(const struct qp *qp)
{
    return qp->path.remote && !device_now(qp_flow((struct qp *)qp)->device)->up;
}

void qp_flight_fill(struct facts_qp *facts, const struct qp *qp)
{
    lock_assert_held(&qp->lock);
    bool connected = !(qp->traits & (QP_DATAGRAM | QP_ADDRESSED | QP_WELCOMES)), receives = qp->state >= IBV_QPS_RTR,
         sends = qp->state >= IBV_QPS_RTS;
    fact_put(&facts->unsignalled, sends && unsignalled(qp), unsignalled(qp));
    fact_put(&facts->sq_psn, connected && sends, qp->attr.sq_psn & PSN_MASK);
    fact_put(&facts->rq_psn, connected && receives, qp->attr.rq_psn & PSN_MASK);
    fact_put_flag(&facts->port_down, qp_port_is_down(qp) || is_cut_off(qp), true);
    if (!engine_is_reliable(qp_engine(qp)))
        fact_forget(&facts->timeout);
    else if (receives)
        fact_put(&facts->expected_psn, true, engine_expected_psn(qp_engine(qp)));
    if (engine_is_reliable(qp_engine(qp)) && sends)
        fill_reliable(facts, qp);
    if (sends && qp->traits & QP_UNORDERED)
        fill_unordered(facts, qp);
}
