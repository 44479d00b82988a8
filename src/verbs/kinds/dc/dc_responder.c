#include "verbs/kinds/dc/dc_responder.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "config/gid.h"
#include "config/local_gid.h"
#include "process/port.h"
#include "process/progress.h"
#include "tap/delay.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_modify.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_error.h"
#include "verbs/qp/qp_tell.h"
#include "wire/op.h"
#include "wire/wire.h"

enum {
    RESPONDERS = 512,
    ENDED = 2 * RESPONDERS,   /* that are remembered */
    SILENT = 16 * RESPONDERS, /* requests and questions of others since its last one */
    STALE = 64,               /* turns: an old question that arrives once more */
};

/* The sender of packets: a process of this host, or an address of another. */
struct sender {
    struct peer *peer; /* NULL: of another host */
    union ibv_gid gid;
};

struct dc_responder {
    struct qp_datapath datapath;
    LIST_ENTRY(dc_responder) siblings;
    uint32_t number;    /* by which its initiator names it */
    uint32_t initiator; /* the number of its queue pair */
    struct sender from;
    uint16_t turn;
    uint64_t used; /* the target's `uses` when a request came last */
};

/* A responder that had to make room for another. */
struct ended {
    uint32_t number, initiator;
    struct sender from; /* its process may have left */
    uint32_t psn;       /* of the next request */
    uint16_t turn;
};

struct dc_target {
    struct qp *qp;
    LIST_HEAD(, dc_responder) responders;
    atomic_bool renewed; /* the queue pair was reset since its responders were made */
    unsigned count;
    uint32_t numbers; /* of the last responder */
    uint64_t uses;
    struct ended *ended; /* ENDED of them, by their numbers; NULL: no responder had to make room */
};

struct dc_target *dc_target_make(struct qp *qp)
{
    struct dc_target *target = calloc(1, sizeof *target);
    if (target)
        target->qp = qp;
    return target;
}

void dc_target_free(struct dc_target *target)
{
    free(target->ended);
    free(target);
}

/* --- what its engine asks for */

static struct dc_responder *responder_of(struct engine_owner *owner)
{
    return container_of(qp_of_owner(owner), struct dc_responder, datapath.qp);
}

/* The completion shows the initiator's number. */
static void received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    struct recv_cqe shown = *arrival;
    shown.source = responder_of(owner)->initiator;
    shown.packet = NULL;
    qp_owner_received(owner, receive, &shown);
}

static void failed(struct engine_owner *owner, bool sqe)
{
    qp_enter(qp_of_owner(owner), IBV_QPS_ERR);
}

static void ignore_event(struct engine_owner *owner, enum ibv_event_type type)
{
}

static const struct owner_operations owner_operations = {
    .sent = qp_owner_sent,
    .take_receive = qp_owner_take_receive,
    .return_receive = qp_owner_return_receive,
    .received = received,
    .local_memory = qp_owner_local_memory,
    .receive_memory = qp_owner_receive_memory,
    .remote_memory = qp_owner_remote_memory,
    .change = qp_owner_change,
    .invalidate = qp_owner_invalidate,
    .local_operation = qp_owner_local_operation,
    .failed = failed,
    .event = ignore_event,
    .watch = qp_owner_watch,
    .note = qp_owner_note,
    .dropped = qp_owner_dropped,
};

static const struct qp_kind responder_kind = {
    .type = IBV_QPT_DRIVER,
    .name = "DC responder",
    .service = SERVICE_XRC,
    .traits = QP_RELIABLE | QP_RECEIVES | QP_RESPONDS,
    .owner = &owner_operations,
    .endpoint = &qp_endpoint_operations,
};

/* --- beginning and end */

static struct sender sender_of(const struct endpoint_arrival *arrival)
{
    struct sender from = {.peer = arrival->from.interface ? NULL : arrival->peer};
    if (!from.peer && arrival->from.packet->grh)
        grh_read_source(arrival->from.packet->grh, from.gid.raw);
    return from;
}

static bool are_equal(const struct sender *one, const struct sender *other)
{
    return one->peer == other->peer && (one->peer || !memcmp(&one->gid, &other->gid, sizeof one->gid));
}

/* A link back to the sender, from the address to which it sent. NULL: there is none. */
static struct link *open_link(struct qp *qp, const struct endpoint_arrival *arrival)
{
    union ibv_gid source, destination;
    if (!arrival->from.packet->grh)
        return NULL;
    gid_from_grh(arrival->from.packet->grh, &source, &destination);
    return port_reply_link(qp->process, qp_flow(qp)->device, &destination, &source);
}

static void close_link(struct qp *qp, struct link *link)
{
    delay_forget(traffic_taps(&qp->process->traffic), link);
    link->operations->close(link);
}

static void begin_engine(struct qp *qp, uint16_t pkey, const struct dc_header *asked)
{
    const struct ibv_qp_attr *attr = &qp->attr;
    const struct engine_settings settings = {
        .service = SERVICE_XRC,
        .pkey = pkey,
        .destination = attr->dest_qp_num,
        .segment = asked->segment,
        .exact = qp->path.remote != NULL,
        .window = 1,
        .min_rnr_timer = attr->min_rnr_timer,
        .max_dest_rd_atomic = DC_READS_MOST,
        .access = attr->qp_access_flags,
        .max_message = qp_flow(qp)->device->limits.max_message,
    };
    engine_initialize(qp_engine(qp), SERVICE_XRC, qp_owner(qp), &(struct send_queue){.capacity = 1, .stride = 64},
                      qp->sends.saved);
    engine_configure(qp_engine(qp), &settings);
    engine_keep_responses(qp_engine(qp), qp->sends.saved);
    engine_start_receiving(qp_engine(qp), asked->psn);
}

/* It has all of the target but the number of the peer and the way to it. */
static void begin_responder(struct dc_responder *responder, const struct qp *target, struct link *link,
                            const struct dc_header *asked)
{
    struct qp *qp = &responder->datapath.qp;
    lock_set_rank(&qp->lock, LOCK_QP);
    qp->process = target->process;
    qp->object.context = target->object.context;
    qp->path.port = target->path.port;
    qp->state = IBV_QPS_RTR;
    qp_set_kind(qp, &responder_kind);
    qp->number = target->number;
    qp->attr = target->attr;
    qp->attr.dest_qp_num = responder->initiator;
    qp->attr.ah_attr.grh.dgid = responder->from.gid;
    qp->memory.pd = target->memory.pd;
    qp->memory.receive_pd = target->memory.receive_pd;
    qp->uses = target->uses;
    qp->receives.queue = target->receives.queue;
    qp->path.local = !link;
    qp->path.remote = link;
    qp->path.peer = responder->from.peer;
    qp_owner(qp)->operations = &owner_operations;
    qp_begin_endpoint(qp, qp_flow(target)->device);
    begin_engine(qp, engine_settings_of(qp_engine(target))->pkey, asked);
}

static void end_responder(struct dc_target *target, struct dc_responder *responder)
{
    struct qp *qp = &responder->datapath.qp;
    struct process *process = qp->process;
    lock_assert_held(&process->progress);
    lock_take(&qp->lock);
    if (qp->state != IBV_QPS_ERR)
        engine_flush(qp_engine(qp));
    qp_story_end(qp);
    lock_release(&qp->lock);
    LIST_REMOVE(responder, siblings);
    target->count--;
    progress_forget(process, qp_endpoint(qp));
    qp_forget_peer(qp);
    traffic_release(qp_flow(qp));
    qp_tell_nothing(qp);
    free(qp->sends.saved);
    free(responder);
}

void dc_target_end(struct dc_target *target)
{
    struct dc_responder *responder;
    while ((responder = LIST_FIRST(&target->responders)))
        end_responder(target, responder);
}

void dc_target_renew(struct dc_target *target)
{
    atomic_store(&target->renewed, true);
}

/* Ends the responders of the time before a reset. */
static void end_former(struct dc_target *target)
{
    if (atomic_exchange(&target->renewed, false))
        dc_target_end(target);
}

/* Sends a response to an initiator. `number`: of its responder. */
static void send_response(struct dc_target *target, struct link *link, struct peer *peer, uint32_t initiator,
                          uint32_t number, const struct dc_header *header)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    struct qp *qp = target->qp;
    const struct packet response = {.opcode = op_code(SERVICE_DC, OPERATION_WELCOME),
                                    .migrated = true,
                                    .pkey = engine_settings_of(qp_engine(qp))->pkey,
                                    .destination = initiator,
                                    .source = qp->number,
                                    .qkey = number,
                                    .dc = *header};
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers};
    frame.headers_length = (uint16_t)wire_encode(&response, headers);
    lock_take(&qp->lock);
    if (link->operations->begin(link) || link->operations->ready(link))
        traffic_send(qp_flow(qp), peer, link, &frame);
    traffic_end_batch(qp_flow(qp), link);
    lock_release(&qp->lock);
}

static void respond(struct dc_target *target, const struct endpoint_arrival *arrival, struct link *link,
                    uint32_t number, enum dc_status status)
{
    struct dc_header header = arrival->from.packet->dc;
    header.segment = (uint16_t)status;
    send_response(target, link, arrival->from.interface ? NULL : arrival->peer, arrival->from.packet->source, number,
                  &header);
}

static struct link *link_of(const struct dc_responder *responder)
{
    const struct qp *qp = &responder->datapath.qp;
    return qp->path.remote ? qp->path.remote : qp->path.peer->link;
}

static void tell_end(struct dc_target *target, const struct ended *ended, struct link *link, struct peer *peer)
{
    send_response(
        target, link, peer, ended->initiator, ended->number,
        &(struct dc_header){.key = target->qp->dc.key, .psn = ended->psn, .turn = ended->turn, .segment = DC_ENDED});
}

static struct dc_responder *find_of(const struct dc_target *target, const struct sender *from, uint32_t initiator)
{
    struct dc_responder *responder;
    LIST_FOREACH (responder, &target->responders, siblings)
        if (responder->initiator == initiator && are_equal(&responder->from, from))
            return responder;
    return NULL;
}

/* Ends a responder that makes room, and tells its initiator, now and when a request for it arrives. */
static void end_for_room(struct dc_target *target, struct dc_responder *responder)
{
    const struct ended ended = {responder->number, responder->initiator, responder->from,
                                engine_expected_psn(qp_engine(&responder->datapath.qp)), responder->turn};
    if (!target->ended)
        target->ended = calloc(ENDED, sizeof *target->ended);
    if (target->ended)
        target->ended[ended.number % ENDED] = ended;
    tell_end(target, &ended, link_of(responder), responder->from.peer);
    end_responder(target, responder);
}

/* Returns true if the responder is in the midst of something. */
static bool is_busy(struct dc_responder *responder)
{
    struct qp *qp = &responder->datapath.qp;
    lock_take(&qp->lock);
    bool busy = engine_is_within_message(qp_engine(qp)) || engine_owes_responses(qp_engine(qp));
    lock_release(&qp->lock);
    return busy;
}

/* Returns true if the responder may make room: it is not busy, or its initiator is silent in the midst of a message, as
 * one whose host is gone. */
static bool may_go(const struct dc_target *target, struct dc_responder *responder)
{
    return target->uses - responder->used > SILENT || !is_busy(responder);
}

/* Ends the responders of processes that have left, and one more if there are too many: of those that may go the one
 * that was used least. False: none may go. */
static bool make_room(struct dc_target *target)
{
    struct dc_responder *responder, *next, *least = NULL;
    for (responder = LIST_FIRST(&target->responders); responder; responder = next) {
        next = LIST_NEXT(responder, siblings);
        if (responder->from.peer && responder->from.peer->gone)
            end_responder(target, responder);
        else if ((!least || responder->used < least->used) && may_go(target, responder))
            least = responder;
    }
    if (target->count >= RESPONDERS && least)
        end_for_room(target, least);
    return target->count < RESPONDERS;
}

static struct dc_responder *make_responder(struct dc_target *target, const struct sender *from,
                                           const struct endpoint_arrival *arrival, struct link *link)
{
    struct dc_responder *responder = calloc(1, sizeof *responder);
    struct responder_resource *saved = responder ? calloc(DC_READS_MOST, sizeof *saved) : NULL;
    if (!saved || !make_room(target)) {
        free(saved);
        free(responder);
        return NULL;
    }
    *responder = (struct dc_responder){.number = ++target->numbers & 0xffffff,
                                       .initiator = arrival->from.packet->source,
                                       .from = *from,
                                       .turn = arrival->from.packet->dc.turn,
                                       .used = ++target->uses};
    responder->datapath.qp.sends.saved = saved;
    if (from->peer) {
        node_hold(from->peer);
        node_watch(target->qp->process->node, from->peer);
    }
    begin_responder(responder, target->qp, link, &arrival->from.packet->dc);
    LIST_INSERT_HEAD(&target->responders, responder, siblings);
    target->count++;
    atomic_store(&target->qp->process->loop.has_guests, true);
    return responder;
}

/* --- connections */

/* Returns the responder of the initiator: the one that a repeated question asked for, or a new one. NULL: none is to be
 * had, or the question is an old one. */
static struct dc_responder *responder_for(struct dc_target *target, const struct endpoint_arrival *arrival)
{
    const struct packet *packet = arrival->from.packet;
    const struct sender from = sender_of(arrival);
    struct dc_responder *known = find_of(target, &from, packet->source);
    uint16_t since = known ? (uint16_t)(known->turn - packet->dc.turn) : 0;
    if (known && !since)
        return known;
    if (known && since < STALE)
        return NULL;
    if (known)
        end_responder(target, known);
    struct link *link = from.peer ? NULL : open_link(target->qp, arrival);
    if (!from.peer && !link)
        return NULL;
    struct dc_responder *made = make_responder(target, &from, arrival, link);
    if (!made && link)
        link->operations->close(link);
    return made;
}

/* Answers over a link for this answer alone. */
static void refuse_key(struct dc_target *target, const struct endpoint_arrival *arrival)
{
    bool near = !arrival->from.interface && arrival->peer;
    struct link *link = near ? arrival->peer->link : open_link(target->qp, arrival);
    if (!link)
        return;
    respond(target, arrival, link, 0, DC_WRONG_KEY);
    if (!near)
        close_link(target->qp, link);
}

void dc_target_welcome(struct dc_target *target, const struct endpoint_arrival *arrival, bool wrong_key)
{
    lock_assert_held(&target->qp->process->progress);
    end_former(target);
    if (wrong_key)
        return refuse_key(target, arrival);
    const struct dc_responder *responder = responder_for(target, arrival);
    if (responder)
        respond(target, arrival, link_of(responder), responder->number, DC_WELCOME);
}

/* Tells the initiator of a request once more that its responder has ended. */
static bool tell_again(struct dc_target *target, const struct endpoint_arrival *arrival, const struct sender *from)
{
    uint32_t number = arrival->from.packet->srq;
    const struct ended *ended = target->ended ? &target->ended[number % ENDED] : NULL;
    if (!ended || ended->number != number || !are_equal(&ended->from, from))
        return false;
    struct link *link = from->peer ? from->peer->link : open_link(target->qp, arrival);
    if (!link)
        return false;
    tell_end(target, ended, link, from->peer);
    if (!from->peer)
        close_link(target->qp, link);
    return true;
}

bool dc_target_deliver(struct dc_target *target, const struct endpoint_arrival *arrival)
{
    const struct sender from = sender_of(arrival);
    struct dc_responder *responder;
    end_former(target);
    LIST_FOREACH (responder, &target->responders, siblings)
        if (responder->number == arrival->from.packet->srq && are_equal(&responder->from, &from)) {
            responder->used = ++target->uses;
            progress_deliver(target->qp->process, qp_endpoint(&responder->datapath.qp), arrival);
            return true;
        }
    return tell_again(target, arrival, &from);
}
