/* The initiator: mlx5dv_create_qp(3) with MLX5DV_DCTYPE_DCI. */
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/time_scale.h"
#include "transport/request.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/kinds/transitions.h"
#include "verbs/life/qp_endpoint.h"
#include "verbs/life/qp_modify.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_path.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/send/ah.h"
#include "verbs/send/operations.h"
#include "verbs/send/transmit.h"
#include "wire/op.h"

enum dc_phase { DC_NOWHERE, DC_ASKING, DC_OPEN };

/* The receiver of a work request. */
struct receiver {
    const struct ah *ah;
    uint32_t target;
    uint64_t key;
};

/* Streams in error: their later work ends with WR_FLUSH_ERR (mlx5dv_dci_stream_id_reset(3)). */
struct streams {
    bool exist;
    uint8_t most, count; /* with `most` of them the queue pair is in error */
    uint16_t errored[1 << DC_STREAMS_LOG];
    uint16_t present; /* of the work that has begun */
};

struct dc_way {
    enum dc_phase phase;
    struct streams streams;
    struct receiver to;
    uint32_t responder; /* its number, by the target's answer */
    uint16_t turn;      /* how often this queue pair has asked */
    uint8_t retries_left;
};

/* --- work requests */

static uint64_t dci_key(const struct send_wqe *work)
{
    return (uint64_t)work->owner_value << 32 | work->remote_qkey;
}

void dci_set_receiver(struct send_wqe *work, const struct ah *ah, uint32_t target, uint64_t key, uint16_t stream)
{
    work->address = ah;
    work->remote_qp = target;
    work->remote_qkey = (uint32_t)key;
    if (!send_wqe_is_scripted(work)) /* it has its end there, and no receiver gets it */
        work->owner_value = (uint32_t)(key >> 32);
    work->stream = stream;
    work->flags |= WORK_ADDRESSED;
}

void dci_set_address(struct qp *qp, struct ibv_ah *ah, uint32_t target, uint64_t key, uint16_t stream)
{
    if (qp->batch.work)
        dci_set_receiver(qp->batch.work, (const struct ah *)ah, target, key, stream);
}

static bool leads_to(const struct dc_way *way, const struct send_wqe *work)
{
    return way->phase != DC_NOWHERE && way->to.ah == work->address && way->to.target == work->remote_qp &&
           way->to.key == dci_key(work);
}

/* The place of a stream among those in error; `count`: it is not in error. */
static unsigned find_errored(const struct streams *streams, uint16_t stream)
{
    unsigned at = 0;
    while (at < streams->count && streams->errored[at] != stream)
        at++;
    return at;
}

static bool is_errored(const struct streams *streams, uint16_t stream)
{
    return streams->exist && find_errored(streams, stream) < streams->count;
}

/* The engine asks before it begins a work request. Work of two streams is not under way at once, so that an error of
 * one leaves nothing of the other in doubt. */
static bool reaches(struct engine_owner *owner, struct send_wqe *work)
{
    const struct qp *qp = qp_of_owner(owner);
    struct dc_way *way = qp->dc.way;
    bool waits = way->streams.exist && engine_has_begun(qp_engine(qp)) && way->streams.present != work->stream;
    if (way->phase != DC_OPEN || !leads_to(way, work) || waits || is_errored(&way->streams, work->stream))
        return false;
    way->streams.present = work->stream;
    work->remote_srq = way->responder;
    return true;
}

/* --- asking for a responder */

static nanos next_moment(const struct qp *qp, nanos now)
{
    return qp->attr.timeout ? now + time_scaled(4096ull << qp->attr.timeout) : NANOS_NEVER;
}

/* A packet that finds no room is asked for again, as one that is lost. */
static void ask_target(struct qp *qp, nanos now)
{
    const struct dc_way *way = qp->dc.way;
    qp_send_packet(qp, &(struct packet){.opcode = op_code(SERVICE_DC, OPERATION_HELLO),
                                        .migrated = true,
                                        .pkey = engine_settings_of(qp_engine(qp))->pkey,
                                        .destination = way->to.target,
                                        .source = qp->number,
                                        .dc = {.key = way->to.key,
                                               .psn = engine_acked_psn(qp_engine(qp)),
                                               .turn = way->turn,
                                               .segment = (uint16_t)engine_settings_of(qp_engine(qp))->segment}});
    qp->dc.wake = next_moment(qp, now);
    qp_expire_by(qp, qp->dc.wake);
}

/* The link is the address handle's. */
static void leave_target(struct qp *qp)
{
    qp->path.remote = NULL;
    qp_forget_peer(qp);
    qp->dc.way->phase = DC_NOWHERE;
    qp->dc.wake = NANOS_NEVER;
}

static void go_to(struct qp *qp, const struct send_wqe *work, nanos now)
{
    struct dc_way *way = qp->dc.way;
    const struct ah *ah = work->address;
    leave_target(qp);
    way->phase = DC_ASKING;
    way->to = (struct receiver){ah, work->remote_qp, dci_key(work)};
    way->turn++;
    way->retries_left = qp->attr.retry_cnt;
    qp->attr.dest_qp_num = way->to.target;
    qp->attr.ah_attr = ah->attr;
    qp->path.local = ah->local;
    qp->path.remote = ah->local ? NULL : ah->remote;
    qp_configure(qp);
    ask_target(qp, now);
}

/* The engine asks when the oldest work fails. */
static bool contains(struct engine_owner *owner, const struct send_wqe *oldest)
{
    struct qp *qp = qp_of_owner(owner);
    struct streams *streams = &qp->dc.way->streams;
    if (!streams->exist || streams->count + 1 >= streams->most)
        return false;
    streams->errored[streams->count++] = oldest->stream;
    leave_target(qp);
    return true;
}

static void fail_work(struct qp *qp, enum ibv_wc_status status, enum reason reason)
{
    leave_target(qp);
    engine_refuse(qp_engine(qp), status, reason);
}

static void ask_again(struct qp *qp, nanos now)
{
    if (qp->dc.way->retries_left--)
        return ask_target(qp, now);
    fail_work(qp, IBV_WC_RETRY_EXC_ERR, REASON_RETRY_EXCEEDED);
}

/* The responder ended, as the target has too many. What it has taken and not acknowledged must not be done twice. */
static void lose_responder(struct qp *qp, uint32_t taken, nanos now)
{
    struct dc_way *way = qp->dc.way;
    if (taken != engine_acked_psn(qp_engine(qp)))
        return;
    if (!engine_has_begun(qp_engine(qp)))
        return leave_target(qp);
    way->phase = DC_ASKING;
    way->turn++;
    way->retries_left = qp->attr.retry_cnt;
    ask_target(qp, now);
}

/* Work that has begun is sent again, to the new responder. */
static void name_responder(struct qp *qp)
{
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    for (uint32_t at = queue->head; at != queue->tail && send_queue_at(queue, at)->started; at++)
        send_queue_at(queue, at)->remote_srq = qp->dc.way->responder;
}

static void take_welcome(struct qp *qp, uint32_t responder, nanos now)
{
    qp->dc.wake = NANOS_NEVER;
    qp->dc.way->responder = responder;
    qp->dc.way->phase = DC_OPEN;
    name_responder(qp);
    if (engine_has_begun(qp_engine(qp)))
        engine_expire(qp_engine(qp), now, PEER_MOVED, REASON_NONE);
}

static void take_response(struct qp *qp, const struct packet *packet, nanos now)
{
    struct dc_way *way = qp->dc.way;
    const struct dc_header *response = &packet->dc;
    bool ours = op_operation(packet->opcode) == OPERATION_WELCOME && way->phase != DC_NOWHERE &&
                response->turn == way->turn && packet->source == way->to.target && response->key == way->to.key;
    bool asked = ours && way->phase == DC_ASKING;
    if (asked && response->segment == DC_WELCOME)
        take_welcome(qp, packet->qkey, now);
    else if (asked && response->segment == DC_WRONG_KEY)
        fail_work(qp, IBV_WC_REM_ACCESS_ERR, REASON_ACCESS_KEY);
    else if (ours && way->phase == DC_OPEN && response->segment == DC_ENDED && packet->qkey == way->responder)
        lose_responder(qp, response->psn, now);
    else
        qp_owner(qp)->operations->dropped(qp_owner(qp), packet, REASON_PACKET_STALE_RESPONSE);
}

/* --- sending */

/* The next work request that has not begun, if all before it has ended; or NULL. */
static const struct send_wqe *find_next(struct qp *qp)
{
    const struct engine *engine = qp_engine(qp);
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    if (!engine_is_transmitting(engine) || engine_has_failed(engine) || queue->head != queue->next ||
        queue->next == queue->tail)
        return NULL;
    const struct send_wqe *work = send_queue_at(queue, queue->next);
    return work->started ? NULL : work;
}

/* Returns true if the work sends nothing, as a script decides its end. */
static bool stays_here(const struct send_wqe *work)
{
    return request_kind(work)->class == REQUEST_LOCAL;
}

/* That work request, if it goes elsewhere. */
static const struct send_wqe *find_turn(struct qp *qp)
{
    const struct send_wqe *work = find_next(qp);
    return work && !stays_here(work) && !leads_to(qp->dc.way, work) ? work : NULL;
}

/* Ends the oldest work as long as its stream is in error. */
static void flush_errored(struct qp *qp)
{
    const struct send_queue *queue = engine_queue(qp_engine(qp));
    while (!engine_has_failed(qp_engine(qp)) && queue->head == queue->next && queue->head != queue->tail &&
           is_errored(&qp->dc.way->streams, send_queue_at(queue, queue->head)->stream))
        engine_flush_oldest(qp_engine(qp));
}

static void take_turn(struct qp *qp, nanos now)
{
    flush_errored(qp);
    const struct send_wqe *next = find_next(qp), *elsewhere = find_turn(qp);
    bool here = next && stays_here(next);
    if (elsewhere)
        go_to(qp, elsewhere, now);
    else if (qp->dc.way->phase == DC_ASKING && qp->dc.wake <= now)
        ask_again(qp, now);
    if (here || qp->dc.way->phase == DC_OPEN)
        qp_transmit_reliable(qp, now);
}

/* An error of a stream leaves the target, and the work of others its turn. */
static void transmit(struct qp *qp, nanos now)
{
    do
        take_turn(qp, now);
    while (qp->dc.way->phase == DC_NOWHERE && find_turn(qp));
}

static enum endpoint_output receive(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    if (op_service(arrival->from.packet->opcode) != SERVICE_DC)
        return qp_endpoint_operations.receive(endpoint, arrival);
    lock_take(&qp->lock);
    qp_endpoint_take(qp, arrival, take_response);
    lock_release(&qp->lock);
    return ENDPOINT_OUTPUT;
}

/* The end of work may let the next one go elsewhere, of which the engine has no output yet. */
static bool flush_initiator(struct endpoint *endpoint, nanos now, bool ack_later)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    qp_transmit_guarded(qp, now);
    lock_release(&qp->lock);
    return true;
}

/* --- the kind */

static int make_way(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    qp->dc.wake = NANOS_NEVER;
    qp->dc.way = calloc(1, sizeof *qp->dc.way);
    if (!qp->dc.way)
        return ENOMEM;
    qp->dc.way->turn = (uint16_t)random_draw("dci", (uint32_t)(uintptr_t)qp);
    return 0;
}

/* The recorder has no line for the doors of this kind. */
static void initialize_requester(struct qp *qp, const struct send_queue *queue)
{
    engine_initialize(qp_engine(qp), SERVICE_XRC, qp_owner(qp), queue, NULL);
}

static bool asks(const struct qp *qp)
{
    return qp->dc.way->phase == DC_ASKING;
}

static void forget_address(struct qp *qp, const void *address)
{
    if (qp->dc.way->to.ah == address)
        leave_target(qp);
}

/* A reset ends the errors of streams, too. */
static void clear(struct qp *qp)
{
    leave_target(qp);
    qp->dc.way->streams.count = 0;
}

void dci_make_streams(struct ibv_qp *ibv, unsigned log_errored)
{
    struct streams *streams = &qp_of(ibv)->dc.way->streams;
    streams->exist = true;
    streams->most = (uint8_t)(1u << log_errored);
}

enum dci_reset dci_reset_stream(struct qp *qp, uint16_t stream)
{
    struct streams *streams = &qp->dc.way->streams;
    enum dci_reset result = DCI_RESET;
    lock_take(&qp->lock);
    unsigned at = find_errored(streams, stream);
    if (!streams->exist)
        result = DCI_STREAMLESS;
    else if (qp->state != IBV_QPS_RTS)
        result = DCI_NOT_IN_RTS;
    else if (at == streams->count)
        result = DCI_SOUND;
    else
        streams->errored[at] = streams->errored[--streams->count];
    lock_release(&qp->lock);
    return result;
}

static void free_way(struct qp *qp)
{
    free(qp->dc.way);
}

static const struct owner_operations owner_operations = {
    QP_OWNER_COMMON,           .sent = qp_owner_sent,       .take_receive = qp_owner_take_receive,
    .reaches = reaches,        .contains = contains,        .received = qp_owner_received,
    .failed = qp_owner_failed, .dropped = qp_owner_dropped,
};

static const struct endpoint_operations endpoint_operations = {
    .receive = receive, .flush = flush_initiator, .fail_overrun = qp_endpoint_fail_overrun};

/* The kernel's driver of mlx5 has this table. */
static const struct qp_transition transitions[QP_STATES][QP_STATES] = {
    MAY(RESET, INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, IBV_QP_ACCESS_FLAGS),
    MAY(INIT, INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
    MAY(INIT, RTR, IBV_QP_PATH_MTU, IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER),
    MAY(RTR, RTS, REQUESTER | IBV_QP_SQ_PSN, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS),
    MAY(RTS, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER),
};

const struct qp_kind dci_kind = {
    .type = IBV_QPT_DRIVER,
    .name = "DCI",
    .service = SERVICE_XRC,
    .traits = QP_RELIABLE | QP_SENDS | QP_ADDRESSED,
    .opcodes = OPCODES_RC & ~OPCODES_LOCAL,
    .send_flags = SEND_FLAGS,
    .builders = BUILDERS_RC & ~(uint64_t)(IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW),
    .transitions = transitions,
    .owner = &owner_operations,
    .endpoint = &endpoint_operations,
    .fill = make_way,
    .initialize_engine = initialize_requester,
    .release = free_way,
    .transmit = transmit,
    .asks = asks,
    .forget_address = forget_address,
    .clear = clear,
};
