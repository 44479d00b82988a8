#include "verbs/life/qp_modify.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/random.h"
#include "base/read_clock.h"
#include "config/device_state.h"
#include "config/link_layer.h"
#include "events/refusal.h"
#include "process/helper.h"
#include "process/port.h"
#include "process/progress.h"
#include "process/rest.h"
#include "process/restraints.h"
#include "runtime/clock.h"
#include "tap/delay.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/ask/qp_story_messages.h"
#include "verbs/life/qp_ends.h"
#include "verbs/life/qp_refuse.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_error.h"
#include "verbs/qp/qp_part.h"
#include "verbs/qp/qp_path.h"
#include "verbs/qp/qp_state.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/cq_poll.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"
#include "verbs/send/rate_limit.h"
#include "verbs/send/route.h"
#include "verbs/send/transmit.h"
#include "wire/psn.h"

enum {
    WINDOW = 1 << 16,       /* packets on their way: links of the host push back, and never lose any */
    XRC_WINDOW = 256,       /* packets over XRC: the queue pair's process may have to keep them for another process */
    FAULTY_WINDOW = 128,    /* packets with faults: a lost or reordered one is repeated with all that follow */
    REMOTE_BYTES = 1 << 20, /* bytes on their way to another host: the size of sockets' receive buffers */
    REMOTE_FIRST = 32,      /* packets to another host at first (RFC 6928 has ten, for slower networks) */
};

#define TAKE(bit, field)                                                                                               \
    if (mask & (bit))                                                                                                  \
    to->field = from->field

static void remember(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
    TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    TAKE(IBV_QP_PKEY_INDEX, pkey_index);
    TAKE(IBV_QP_PORT, port_num);
    TAKE(IBV_QP_QKEY, qkey);
    TAKE(IBV_QP_AV, ah_attr);
    TAKE(IBV_QP_PATH_MTU, path_mtu);
    TAKE(IBV_QP_TIMEOUT, timeout);
    TAKE(IBV_QP_RETRY_CNT, retry_cnt);
    TAKE(IBV_QP_RNR_RETRY, rnr_retry);
    TAKE(IBV_QP_RQ_PSN, rq_psn);
    TAKE(IBV_QP_SQ_PSN, sq_psn);
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(IBV_QP_DEST_QPN, dest_qp_num);
}

/* Each work request of SRD may have another receiver; what is one packet goes to other hosts as IP fragments. */
static uint32_t segment_of(const struct qp *qp)
{
    enum { UNORDERED_SEGMENT = 8192 };
    if (qp->traits & QP_UNORDERED)
        return UNORDERED_SEGMENT;
    return qp_path_segment(qp, qp->path.remote != NULL);
}

static uint32_t window_of(const struct qp *qp)
{
    if (qp->path.remote)
        return REMOTE_BYTES / segment_of(qp);
    if (traffic_is_faulty(&qp->process->traffic))
        return FAULTY_WINDOW;
    return qp->traits & QP_NAMES_SRQ ? XRC_WINDOW : WINDOW;
}

/* Returns the ack_mask. If ACKs can't be lost and only report the end of work, an ACK is asked for by signalled
 * messages and by one in sixteen of the others, which is long before the ACK timer ends. */
static uint32_t ack_mask_of(const struct qp *qp)
{
    enum { SHORT_TIMEOUT = 14, MASK = 15 };
    bool yields = !qp->attr.timeout || (qp->attr.timeout >= SHORT_TIMEOUT && qp->attr.retry_cnt);
    bool waits = qp->sends.signal_all || qp->counting.operations;
    return qp->traits & QP_END_TO_END && !qp->path.remote && yields && !waits ? MASK : 0;
}

/* Frames inside a host carry ACKs along, unless a capture needs them as packets. */
static bool acks_go_along(const struct qp *qp)
{
    return qp->traits & QP_END_TO_END && !qp->path.remote && !traffic_taps(&qp->process->traffic);
}

/* After a reset, and in another process with the same SOFTVERBS_SEED, peers may still know the former numbers. */
static uint64_t seed_of(const struct qp *qp)
{
    uint32_t count = qp->number ^ qp->sends.resets << 24 ^ (uint32_t)getpid() << 8;
    return qp->traits & QP_UNORDERED ? (uint64_t)random_draw("srd", count) << 32 | random_draw("of srd", count) | 1 : 0;
}

/* The kernel's driver of mlx5 writes the logarithm of max_rd_atomic unless that is 0, so that an initiator always has
 * one READ; rdma-core's tests rely on it. */
static uint8_t reads_of(const struct qp *qp)
{
    return qp->traits & QP_ADDRESSED && !qp->attr.max_rd_atomic ? 1 : qp->attr.max_rd_atomic;
}

void qp_configure(struct qp *qp)
{
    const struct ibv_qp_attr *attr = &qp->attr;
    const struct limits *limits = &qp->object.context->device->limits;
    if (qp->traits & QP_ETHERNET)
        return;
    uint8_t timeout = engine_settings_of(qp_engine(qp))->timeout;
    const struct engine_settings settings = {
        .service = qp_flow(qp)->service,
        .pkey = DEVICE_PKEY,
        .destination = attr->dest_qp_num,
        .segment = segment_of(qp),
        .reference_segment = qp->path.remote ? 0 : engine_settings_of(qp_engine(qp))->reference_segment,
        .reference_from = QP_REFERENCE_FROM,
        .owner_changes = qp_datapath(qp)->disturbance && qp_datapath(qp)->disturbance->changes,
        .in_pieces = qp->rate_limit.rate ||
                     qp->traits & (QP_NAMES_SRQ | QP_ADDRESSED), /* others than the peer's engine take them in */
        .exact = qp->path.remote != NULL,
        .window = window_of(qp),
        .first_window = qp->path.remote ? REMOTE_FIRST : 0,
        .timeout = attr->timeout,
        .retry_count = attr->retry_cnt,
        .rnr_retry = attr->rnr_retry,
        .min_rnr_timer = attr->min_rnr_timer,
        .max_rd_atomic = reads_of(qp),
        .max_dest_rd_atomic = attr->max_dest_rd_atomic,
        .ack_mask = ack_mask_of(qp),
        .acks_along = acks_go_along(qp),
        .access = attr->qp_access_flags,
        .max_message = qp->traits & QP_DATAGRAM ? qp_path_longest(qp) : limits->max_message,
        .max_rdma = limits->max_rdma,
        .seed = seed_of(qp),
        .options = qp->sends.options,
        .number = qp->number,
        .qkey = attr->qkey,
    };
    qp_door_configure(qp, &settings);
    if (timeout != attr->timeout && qp_is_reliable(qp)) /* for requests that are on their way */
        qp_door_expire(qp, qp_flow(qp)->now, PEER_SLOW, REASON_NONE);
}

static void forbid_shortcuts(struct qp *qp)
{
    struct engine_settings settings = *engine_settings_of(qp_engine(qp));
    settings.reference_segment = 0;
    settings.acks_along = false;
    if (settings.window > FAULTY_WINDOW && !qp->path.remote)
        settings.window = FAULTY_WINDOW;
    qp_door_configure(qp, &settings);
    qp_expire_by(qp, clock_now()); /* there may be something to repeat */
}

void qp_meet_rules(struct endpoint *endpoint, bool fresh)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    lock_take(&qp->lock);
    if (!(qp->traits & QP_ETHERNET))
        forbid_shortcuts(qp);
    if (fresh)
        traffic_begin(qp_flow(qp));
    lock_release(&qp->lock);
}

void qp_forget_peer(struct qp *qp)
{
    if (qp->process->inherited)
        return; /* the way is the parent's */
    if (qp->path.peer && !qp->process->forked)
        node_put(qp->process->node, qp->path.peer);
    if (qp->path.remote) {
        delay_forget(traffic_taps(&qp->process->traffic), qp->path.remote);
        qp->path.remote->operations->close(qp->path.remote);
    }
    qp->path.peer = NULL;
    qp->path.taken = false;
    qp->path.parted_from = 0;
    qp->path.remote = NULL;
}

/* The engine forgets everything, and so do the queues and CQs (IBA 10.3.1 "Reset"). */
static void reset(struct qp *qp)
{
    qp->sends.resets++;
    qp_settle(qp);
    qp_withdraw_references(qp);
    if (qp->uses.srq && qp->uses.srq->kind->abandon)
        qp->uses.srq->kind->abandon(qp);
    qp_give_back_receive(qp);
    qp_door_reset(qp);
    if (qp_is_reliable(qp)) {
        qp_door_allow_references(qp, 0); /* the next peer must show anew that it can read our memory */
        qp_door_keep_responses(qp, NULL, 0);
        free(qp->sends.saved);
        qp->sends.saved = NULL;
    }
    qp_forget_peer(qp);
    if (qp_has_receives(qp))
        receive_queue_clear(&qp->receives.own);
    qp->sends.unsignalled = 0;
    qp_tell_nothing(qp);
    qp_inquiry_end(qp);
    qp_story_forget(qp);
    qp_story_messages_forget(qp);
    qp_ends_leave(qp);
    qp->path.begun = read_clock(CLOCK_MONOTONIC);
    qp->path.peer_claimed = qp->path.peer_ended = false; /* they were the former connection's */
    qp->progress.last_wqe_raised = false;
    qp_forget_attributes(qp);
    qp->rate_limit.rate = 0;
    qp_judge_watch(qp);
}

static int start_receiving(struct qp *qp)
{
    if (qp_is_reliable(qp) && qp->attr.max_dest_rd_atomic) {
        qp->sends.saved = calloc(qp->attr.max_dest_rd_atomic, sizeof *qp->sends.saved);
        if (!qp->sends.saved)
            return ENOMEM;
    }
    if (qp_is_reliable(qp))
        qp_door_keep_responses(qp, qp->sends.saved, qp->attr.max_dest_rd_atomic);
    qp_door_start_receiving(qp, qp->attr.rq_psn & PSN_MASK);
    return 0;
}

static void enter_error(struct qp *qp)
{
    qp_inquiry_settle(qp);
    qp_end_lateness(qp);
    if (qp->state != IBV_QPS_ERR)
        qp_flush(qp);
    qp_story_keep(qp);
}

static int enter_state(struct qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    switch (to) {
    case IBV_QPS_RESET:
        reset(qp);
        return 0;
    case IBV_QPS_RTR:
        return start_receiving(qp);
    case IBV_QPS_RTS:
        if (from == IBV_QPS_RTR)
            qp_door_start_transmitting(qp, qp->attr.sq_psn & PSN_MASK);
        else if (from == IBV_QPS_SQD)
            qp_door_drain(qp, false);
        else if (from == IBV_QPS_SQE)
            qp_door_resume(qp);
        helper_watch(qp->process);
        return 0;
    case IBV_QPS_SQD:
        if (from != to)
            qp_door_drain(qp, true);
        return 0;
    case IBV_QPS_ERR:
        if (from != to)
            enter_error(qp);
        return 0;
    default:
        return 0;
    }
}

/* Returns true if the address vector leads another way: a peer of this host is found by its number alone. */
static bool is_moved(const struct qp *qp)
{
    return !qp->path.local || !link_layer_is_local(qp->object.context->device, &qp->attr.ah_attr);
}

/* Sets the way of the new address vector. A device without a network leads to no other host: packets to it are lost,
 * and timers do the rest. */
static int set_path(struct qp *qp)
{
    const struct context *context = qp->object.context;
    bool infiniband = link_layer_is_infiniband(context->device);
    if (is_moved(qp)) {
        qp_withdraw_references(qp); /* what the old peer is fetching must not land there after the new peer has it */
        qp_forget_peer(qp);
    }
    qp->path.local = link_layer_is_local(context->device, &qp->attr.ah_attr);
    qp->path.lid = infiniband ? qp->attr.ah_attr.dlid : 0;
    qp->path.sl = infiniband ? qp->attr.ah_attr.sl : 0;
    qp->path.peer_claimed = qp->path.local && node_is_claimed(qp->process->node, qp->attr.dest_qp_num);
    if (!qp->path.local && infiniband)
        qp_tell_no_lid(qp->number, qp->attr.ah_attr.dlid);
    if (qp->path.local || !context->device->interface[0])
        return 0;
    qp->path.remote = port_connect(context->process, context->device, &qp->attr.ah_attr, 0, qp->number);
    return qp->path.remote ? 0 : errno;
}

/* The hop limit of an address vector is the route's, not the program's, as with kernels since Linux 4.5. */
static int apply(struct qp *qp, const struct ibv_qp_attr *attr, int mask, uint8_t hop_limit)
{
    enum ibv_qp_state from = qp->state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
    remember(&qp->attr, attr, mask);
    if (mask & IBV_QP_AV && hop_limit)
        qp->attr.ah_attr.grh.hop_limit = hop_limit;
    if (mask & IBV_QP_RATE_LIMIT)
        rate_limit_set(qp, &(struct ibv_qp_rate_limit_attr){.rate_limit = attr->rate_limit});
    bool leads = qp_effective(qp, mask) & IBV_QP_AV, moved = leads && is_moved(qp);
    int error = leads ? set_path(qp) : 0;
    if (error)
        return error;
    if (to != IBV_QPS_RESET)
        qp_configure(qp);
    if (moved && qp_is_reliable(qp) && engine_is_transmitting(qp_engine(qp)))
        qp_door_expire(qp, qp_flow(qp)->now, PEER_MOVED, REASON_NONE);
    error = mask & IBV_QP_STATE && (from != to || to == IBV_QPS_RESET) ? enter_state(qp, from, to) : 0;
    if (error)
        return error;
    if (mask & IBV_QP_STATE) { /* the engine may have failed meanwhile; only the program causes ERR here */
        qp_enter(qp, to);
        qp->ibv.state = to;
        qp_part_moved(qp, to);
        if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
            qp_ends_enter(qp);
    }
    return 0;
}

static void withdraw_completions(struct qp *qp)
{
    if (qp->uses.send_cq)
        cq_withdraw(qp->uses.send_cq, qp->number);
    if (qp->uses.receive_cq && qp->uses.receive_cq != qp->uses.send_cq)
        cq_withdraw(qp->uses.receive_cq, qp->number);
    atomic_store(&qp->sends.retired, qp->sends.posted);
    if (qp_has_receives(qp))
        receive_queue_settle(&qp->receives.own);
}

/* Finds the way before the queue pair is touched, without its lock. 0 also for a call that change_qp will refuse. */
static int find_way(struct qp *qp, const struct ibv_qp_attr *attr, int mask, uint8_t *hop_limit)
{
    char call[QP_REFUSE_CALL];
    struct way way;
    lock_take(&qp->lock);
    enum reason reason = qp_refuse_check(qp, attr, mask);
    lock_release(&qp->lock);
    if (reason)
        return 0;
    int error = route_find(qp->object.context, &attr->ah_attr, &way);
    *hop_limit = way.reach.hop_limit;
    if (!error)
        return 0;
    lock_take(&qp->lock);
    qp_refuse_name(qp, attr, mask, qp->told.unchanged, call);
    qp->told.unchanged = (uint16_t)way.reason;
    lock_release(&qp->lock);
    return way.reason ? route_refuse(qp->object.context, &attr->ah_attr, &way, call, error) : error;
}

static int change_qp(struct qp *qp, const struct ibv_qp_attr *attr, int mask, uint8_t hop_limit)
{
    lock_take(&qp->lock);
    qp_flow(qp)->now = clock_now();
    enum reason reason = qp_refuse_check(qp, attr, mask);
    if (!reason) {
        qp_unpublish(qp);
        reason = qp_refuse_check(qp, attr, mask); /* the lock was given back, and the state may be another */
    }
    int error = reason ? refused(EINVAL) : apply(qp, attr, mask, hop_limit); /* qp_refuse writes the line */
    enum reason before = qp->told.unchanged;
    qp->told.unchanged = (uint16_t)reason;
    qp_publish(qp);
    if (!error)
        qp_transmit(qp, clock_now());
    lock_release(&qp->lock);
    return reason ? qp_refuse(qp, attr, mask, reason, before) : error;
}

/* Holds the progress while a change may end work: that gives memory back to the program, into which the helper must not
 * copy any more. */
static int change_settled(struct qp *qp, const struct ibv_qp_attr *attr, int mask, uint8_t hop_limit)
{
    bool settles = mask & IBV_QP_STATE && restraints_leave_all(qp->process);
    if (settles)
        lock_take(&qp->process->progress);
    int error = change_qp(qp, attr, mask, hop_limit);
    if (settles)
        lock_release(&qp->process->progress);
    return error;
}

/* An adapter takes in a packet when it arrives: an ACK that is here ends its work before a change to ERR flushes the
 * work. A peer that sends all the time delays the change by some rounds only. */
static void take_what_arrived(struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum { ROUNDS = 16 };
    unsigned rounds = 0;
    if (mask & IBV_QP_STATE)
        rest_look_first(qp->process);
    if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR && restraints_permit(qp->process))
        while (progress_work(qp->process) && ++rounds < ROUNDS)
            ;
}

int qp_modify(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    struct qp *qp = qp_of(ibv);
    uint8_t hop_limit = 0;
    if (!qp_is_known(ibv))
        return refused(ENOENT);
    qp = qp_real(qp);
    mask = qp_state_mask(qp->kind, mask);
    take_what_arrived(qp, attr, mask);
    int error = qp_effective(qp, mask) & IBV_QP_AV ? find_way(qp, attr, mask, &hop_limit) : 0;
    if (!error)
        error = change_settled(qp, attr, mask, hop_limit);
    if (!error && (mask & IBV_QP_STATE) && ibv != &qp->ibv)
        ibv->state = attr->qp_state;
    if (!error && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
        withdraw_completions(qp);
    return error;
}

int qp_query(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct qp *qp = qp_of(ibv);
    if (!qp_is_known(ibv))
        return refused(ENOENT);
    qp = qp_real(qp);
    lock_take(&qp->lock);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = qp->state;
    attr->cap = qp->cap;
    attr->path_mig_state = IBV_MIG_MIGRATED;
    attr->sq_draining = qp->state == IBV_QPS_SQD && engine_has_begun(qp_engine(qp));
    if (qp_is_reliable(qp) && qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR) {
        attr->rq_psn = engine_expected_psn(qp_engine(qp));
        attr->sq_psn = qp->state >= IBV_QPS_RTS ? engine_next_psn(qp_engine(qp)) : qp->attr.sq_psn;
    }
    if (mask & IBV_QP_STATE) /* under the lock, as two threads may ask */
        ibv->state = attr->qp_state;
    lock_release(&qp->lock);
    *init = (struct ibv_qp_init_attr){
        .qp_context = ibv->qp_context,
        .send_cq = ibv->send_cq,
        .recv_cq = ibv->recv_cq,
        .srq = ibv->srq,
        .cap = qp->cap,
        .qp_type = ibv->qp_type,
        .sq_sig_all = qp->sends.signal_all,
    };
    return 0;
}
