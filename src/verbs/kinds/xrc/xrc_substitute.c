#include "verbs/kinds/xrc/xrc_substitute.h"

#include <stdlib.h>

#include "config/config.h"
#include "process/progress.h"
#include "runtime/qpns.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/kinds/kinds.h"
#include "verbs/kinds/xrc/xrc.h"
#include "verbs/kinds/xrc/xrc_control.h"
#include "verbs/kinds/xrc/xrc_front.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_modify.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_error.h"
#include "verbs/qp/qp_path.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/cq.h"
#include "verbs/send/transmit.h"
#include "wire/psn.h"

struct substitute {
    struct qp_datapath datapath;
    struct guest guest;
    struct xrcd_key domain;
    uint32_t turn;
    bool holding;   /* it has the position */
    bool recalled;  /* it must give the position back */
    bool told;      /* the queue pair was notified of the failure */
    bool refused;   /* a request made it fail; otherwise a fault here */
    uint32_t event; /* for the queue pair: `event` of struct xrc_control */
};

static struct substitute *substitute_of(struct qp *qp)
{
    return container_of(qp, struct substitute, datapath.qp);
}

static struct substitute *substitute_of_endpoint(struct endpoint *endpoint)
{
    return substitute_of(qp_of_endpoint(endpoint));
}

/* -- what its engine asks for */

static enum reason substitute_select_srq(struct engine_owner *owner, uint32_t number)
{
    struct qp *qp = qp_of_owner(owner);
    const struct srq *srq = qpns_find(process_objects(qp->process)->srqs, number);
    bool shared = srq && xrcd_is(srq->xrcd->domain, &substitute_of(qp)->domain);
    qp->xrc.domain = shared ? srq->xrcd->domain : NULL;
    return xrc_select_srq(owner, number);
}

static void raise_event(struct engine_owner *owner, enum ibv_event_type type)
{
    struct substitute *substitute = substitute_of(qp_of_owner(owner));
    if (type != IBV_EVENT_COMM_EST)
        substitute->event = type + 1u;
}

static void fail_by_engine(struct engine_owner *owner, bool sqe)
{
    struct qp *qp = qp_of_owner(owner);
    qp_enter(qp, IBV_QPS_ERR);
    substitute_of(qp)->refused = true;
    qp_story_keep(qp); /* before the peer learns of it: the substitute ends soon, with its queue pair */
}

static const struct owner_operations owner_operations = {
    .sent = qp_owner_sent,
    .take_receive = xrc_take_receive,
    .return_receive = qp_owner_return_receive,
    .select_srq = substitute_select_srq,
    .received = xrc_received,
    .local_memory = qp_owner_local_memory,
    .receive_memory = qp_owner_receive_memory,
    .remote_memory = qp_owner_remote_memory,
    .invalidate = qp_owner_invalidate,
    .local_operation = qp_owner_local_operation,
    .failed = fail_by_engine,
    .event = raise_event,
    .watch = qp_owner_watch,
    .dropped = qp_owner_dropped,
    .note = qp_owner_note,
};

/* -- as the loop sees it */

/* Returns the message that is due to the queue pair, once its engine has answered all; or 0. */
static enum xrc_control_kind due(const struct substitute *substitute)
{
    if (substitute->datapath.qp.state == IBV_QPS_ERR)
        return substitute->told ? 0 : XRC_FAILED;
    if (!substitute->holding || !substitute->recalled)
        return 0;
    return engine_may_lend(qp_engine(&substitute->datapath.qp)) ? XRC_RETURN : XRC_KEEP;
}

static void substitute_tell(struct substitute *substitute, enum xrc_control_kind kind)
{
    struct engine_position position = {0};
    if (kind == XRC_RETURN)
        position = engine_lend(qp_engine(&substitute->datapath.qp));
    bool sent = xrc_control_send(&substitute->datapath.qp, substitute->guest.from,
                                 &(struct xrc_control){
                                     .kind = kind,
                                     .number = substitute->guest.number,
                                     .turn = substitute->turn,
                                     .expected_psn = position.expected_psn,
                                     .msn = position.msn,
                                     .nak_sent = position.nak_sent,
                                     .event = substitute->refused ? substitute->event : IBV_EVENT_QP_FATAL + 1u,
                                 });
    if (!sent)
        return;
    substitute->told |= kind == XRC_FAILED;
    substitute->holding &= kind == XRC_KEEP;
    substitute->recalled = false;
}

static bool substitute_flush(struct endpoint *endpoint, nanos now, bool ack_later)
{
    struct substitute *substitute = substitute_of_endpoint(endpoint);
    struct qp *qp = &substitute->datapath.qp;
    lock_take(&qp->lock);
    if (qp_has_output(qp))
        qp_transmit(qp, now);
    if (!qp_has_output(qp) && due(substitute))
        substitute_tell(substitute, due(substitute));
    lock_release(&qp->lock);
    return true;
}

/* Returns the device of a substitute for this queue pair; NULL: the message is wrong. */
static const struct device *find_device(const struct xrc_control *message)
{
    const struct device *device = config_device(message->domain.device);
    bool sound = device && message->segment && message->segment <= LINK_SEGMENT && message->min_rnr_timer < 32 &&
                 message->max_dest_rd_atomic <= device->limits.max_rd_atomic;
    return sound ? device : NULL;
}

static void substitute_configure(struct substitute *substitute, const struct xrc_control *message)
{
    struct qp *qp = &substitute->datapath.qp;
    const struct engine_settings settings = {
        .service = SERVICE_XRC,
        .pkey = DEVICE_PKEY,
        .destination = message->number,
        .segment = message->segment,
        .exact = message->exact,
        .window = 1,
        .min_rnr_timer = message->min_rnr_timer,
        .max_dest_rd_atomic = message->max_dest_rd_atomic,
        .access = message->access,
        .max_message = qp_flow(qp)->device->limits.max_message,
    };
    engine_configure(qp_engine(qp), &settings);
}

static void take_over(struct substitute *substitute, const struct xrc_control *message)
{
    struct engine *engine = qp_engine(&substitute->datapath.qp);
    lock_take(&substitute->datapath.qp.lock);
    if (substitute->datapath.qp.state != IBV_QPS_ERR && !substitute->holding) {
        substitute_configure(substitute, message);
        if (!engine_is_receiving(engine))
            engine_start_receiving(engine, message->expected_psn);
        engine_take_over(engine, &(struct engine_position){message->expected_psn, message->msn, message->nak_sent});
        substitute->turn = message->turn;
        substitute->holding = true;
        substitute->recalled = false;
    }
    lock_release(&substitute->datapath.qp.lock);
}

static void substitute_take(struct substitute *substitute, const struct endpoint_arrival *arrival)
{
    struct qp *qp = &substitute->datapath.qp;
    bool behind = psn_distance(arrival->from.packet->psn, engine_expected_psn(qp_engine(qp))) < 0;
    if ((!substitute->holding && !behind) || qp_port_is_down(qp))
        return; /* without the position it only repeats responses */
    traffic_received(qp_flow(qp), arrival->from.packet, NULL);
    qp_receive(qp, arrival->from.packet, arrival->now);
}

static enum endpoint_output substitute_receive(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct substitute *substitute = substitute_of_endpoint(endpoint);
    lock_take(&substitute->datapath.qp.lock);
    if (arrival->from.packet)
        substitute_take(substitute, arrival);
    else
        substitute->recalled = true;
    bool output = qp_has_output(&substitute->datapath.qp) || due(substitute);
    lock_release(&substitute->datapath.qp.lock);
    return output ? ENDPOINT_OUTPUT : ENDPOINT_NOTHING;
}

static void substitute_overrun(struct endpoint *endpoint)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    if (qp->xrc.selected && qp->xrc.selected->cq->told.overrun) {
        bool fails = qp_story_fails(qp, REASON_CQ_OVERRUN, 0);
        qp_fail(qp, IBV_EVENT_QP_FATAL);
        if (fails)
            qp_story_keep(qp);
    }
    lock_release(&qp->lock);
}

/* -- beginning and end */

static void substitute_initialize(struct substitute *substitute, struct process *process, struct peer *from,
                                  const struct device *device)
{
    static const struct endpoint_operations operations = {
        .receive = substitute_receive, .flush = substitute_flush, .fail_overrun = substitute_overrun};
    struct qp *qp = &substitute->datapath.qp;
    lock_set_rank(&qp->lock, LOCK_QP);
    qp->process = process;
    qp->path.port = 1u << device->index;
    qp->state = IBV_QPS_RTR;
    qp_set_kind(qp, &xrc_recv_kind);
    qp->number = qp->attr.dest_qp_num = substitute->guest.number;
    qp->xrc.stands_in = true;
    qp_owner(qp)->operations = &owner_operations;
    qp->path.local = true;
    qp->path.peer = from;
    node_hold(from);
    qp_begin_endpoint(qp, device);
    qp_endpoint(qp)->operations = &operations;
    engine_initialize(qp_engine(qp), SERVICE_XRC, qp_owner(qp), &(struct send_queue){.capacity = 1, .stride = 64},
                      qp->sends.saved);
}

/* Returns true if there are more substitutes than any correct peer would ask for. */
static bool is_crowded(const struct process *process)
{
    enum { MOST = 4096 };
    unsigned count = 0;
    struct guest *guest;
    LIST_FOREACH (guest, &process->loop.guests, siblings)
        count++;
    return count >= MOST;
}

static struct substitute *substitute_make(struct process *process, struct peer *from, const struct device *device,
                                          const struct xrc_control *message)
{
    if (is_crowded(process))
        return NULL;
    struct substitute *substitute = calloc(1, sizeof *substitute);
    size_t saved = message->max_dest_rd_atomic;
    if (!substitute || !(substitute->datapath.qp.sends.saved =
                             calloc(saved ? saved : 1, sizeof *substitute->datapath.qp.sends.saved))) {
        free(substitute);
        return NULL;
    }
    node_hold(from);
    substitute->domain = message->domain;
    substitute->guest =
        (struct guest){.number = message->number, .from = from, .endpoint = qp_endpoint(&substitute->datapath.qp)};
    substitute_initialize(substitute, process, from, device);
    node_watch(process->node, from);
    LIST_INSERT_HEAD(&process->loop.guests, &substitute->guest, siblings);
    atomic_store(&process->loop.has_guests, true);
    return substitute;
}

/* A message that has begun ends with an error, as it would with its queue pair. */
static void substitute_end(struct process *process, struct substitute *substitute)
{
    lock_assert_held(&process->progress);
    struct qp *qp = &substitute->datapath.qp;
    lock_take(&qp->lock);
    if (qp->state != IBV_QPS_ERR)
        engine_flush(qp_engine(qp));
    qp_story_end(qp);
    lock_release(&qp->lock);
    LIST_REMOVE(&substitute->guest, siblings);
    progress_forget(process, qp_endpoint(qp));
    node_put(process->node, substitute->guest.from);
    qp_forget_peer(qp);
    traffic_release(qp_flow(qp));
    qp_tell_nothing(qp);
    free(qp->sends.saved);
    free(substitute);
}

static struct substitute *substitute_find(struct process *process, struct peer *from, uint32_t number)
{
    struct guest *guest;
    LIST_FOREACH (guest, &process->loop.guests, siblings)
        if (guest->number == number && guest->from == from)
            return container_of(guest, struct substitute, guest);
    return NULL;
}

/* Returns true if a substitute that is lent the position must end first. If it holds the position already, the queue
 * pair was reset or destroyed in between, and the message about that (XRC_OVER) found no room. */
static bool is_outlived(const struct substitute *substitute)
{
    return substitute->holding || substitute->datapath.qp.state == IBV_QPS_ERR;
}

static void read_for_substitute(struct process *process, const struct xrc_control *message,
                                const struct endpoint_arrival *arrival)
{
    struct substitute *substitute = substitute_find(process, arrival->peer, message->number);
    if (message->kind == XRC_RECALL) {
        if (substitute && substitute->turn == message->turn)
            progress_deliver(process, qp_endpoint(&substitute->datapath.qp), arrival);
        return;
    }
    const struct device *device = message->kind == XRC_LEND ? find_device(message) : NULL;
    if (substitute && (message->kind == XRC_OVER || (device && is_outlived(substitute)))) {
        substitute_end(process, substitute);
        substitute = NULL;
    }
    if (!device)
        return;
    if (!substitute)
        substitute = substitute_make(process, arrival->peer, device, message);
    if (substitute)
        take_over(substitute, message);
}

static enum endpoint_output receive_control(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct process *process = container_of(endpoint, struct process, loop.xrc_control);
    struct xrc_control message;
    if (!xrc_control_read(arrival->frame, &message) || message.number > PSN_MASK)
        return ENDPOINT_NOTHING;
    if (message.kind < XRC_RETURN) {
        read_for_substitute(process, &message, arrival);
        return ENDPOINT_NOTHING;
    }
    struct endpoint *front = qpns_find(process->numbers, message.number);
    if (front && qp_of_endpoint(front)->xrc.front)
        progress_deliver(process, front, arrival);
    return ENDPOINT_NOTHING;
}

void xrc_substitutes_begin(struct process *process)
{
    static const struct endpoint_operations operations = {.receive = receive_control};
    process->loop.xrc_control.operations = &operations;
}

void xrc_substitutes_end(struct process *process)
{
    struct guest *guest;
    lock_take(&process->progress);
    while ((guest = LIST_FIRST(&process->loop.guests)))
        substitute_end(process, container_of(guest, struct substitute, guest));
    lock_release(&process->progress);
}

static void look_at_front(void *endpoint, void *context)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    xrc_front_departed(qp, *(const nanos *)context);
    lock_release(&qp->lock);
}

void xrc_substitutes_departed(struct process *process, nanos now)
{
    lock_assert_held(&process->progress);
    struct guest *guest, *next;
    for (guest = LIST_FIRST(&process->loop.guests); guest; guest = next) {
        next = LIST_NEXT(guest, siblings);
        if (guest->from->gone)
            substitute_end(process, container_of(guest, struct substitute, guest));
    }
    qpns_each(process->numbers, look_at_front, &now);
}

void xrc_substitutes_inherit(struct process *process)
{
    struct guest *guest;
    LIST_FOREACH (guest, &process->loop.guests, siblings)
        lock_inherit(&container_of(guest, struct substitute, guest)->datapath.qp.lock);
}
