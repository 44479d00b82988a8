#include "verbs/kinds/ethernet/steering.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "diag/log.h"
#include "events/refusal.h"
#include "tap/traffic.h"
#include "transport/raw_frame.h"
#include "verbs/kinds/ethernet/rwq_ind_table.h"
#include "verbs/object/counters.h"
#include "verbs/object/process_objects.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_path.h"
#include "wire/bytes.h"

TAILQ_HEAD(flow_list, flow);

struct steering {
    struct flow_list ingress; /* by device, rank, priority; under process->progress */
    uint64_t frames;          /* counts frames; their numbers let a queue pair get each once */
    struct lock lock;         /* egress; innermost but for logs */
    struct flow_list egress;
    _Atomic uint32_t egress_count;
    uint8_t frame[RAW_FRAME_MAX]; /* a copy, as the sender could change the ring while rules look at it */
};

void steering_destroy(struct steering *steering)
{
    free(steering);
}

void steering_inherit(struct process *process)
{
    struct steering *steering = process_objects(process)->steering;
    lock_inherit(&steering->lock);
}

void steering_group(const uint8_t *destination, uint8_t group[16])
{
    static const uint8_t prefix[10] = "ethernet"; /* no multicast GID begins so */
    memcpy(group, prefix, sizeof prefix);
    memset(group + sizeof prefix, 0, 6);
    group[9] = !!destination;
    if (destination)
        memcpy(group + sizeof prefix, destination, 6);
}

static bool comes_before(const struct flow *a, const struct flow *b)
{
    if (a->device != b->device)
        return a->device < b->device;
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->rule.drops && !b->rule.drops;
}

/* Inserts from the end, because programs that make many rules make them alike. */
static void insert(struct flow_list *list, struct flow *flow)
{
    struct flow *before = TAILQ_LAST(list, flow_list);
    while (before && comes_before(flow, before))
        before = TAILQ_PREV(before, flow_list, next);
    if (before)
        TAILQ_INSERT_AFTER(list, before, flow, next);
    else
        TAILQ_INSERT_HEAD(list, flow, next);
}

/* Joins the group of the rule's destination, or asks for all frames if the host's table has no room for the address. */
static int steering_join(struct process *process, struct flow *flow)
{
    const uint8_t *destination = flow->rank == FLOW_NORMAL ? flow_destination(&flow->rule) : NULL;
    steering_group(destination, flow->group);
    int error = node_join(process->node, flow->group);
    if (error != ENOSPC || !destination)
        return error;
    steering_group(NULL, flow->group);
    return node_join(process->node, flow->group);
}

static void add_steering(struct process *process, struct flow *flow)
{
    struct steering *steering = process_objects(process)->steering;
    if (!flow->egress) {
        insert(&steering->ingress, flow);
        return;
    }
    lock_take(&steering->lock);
    insert(&steering->egress, flow);
    lock_release(&steering->lock);
    atomic_fetch_add(&steering->egress_count, 1);
}

/* Joining may wait for other processes, so it holds no lock that progress needs. */
int steering_add(struct process *process, struct flow *flow)
{
    if (process->forked)
        return refuse(ENODEV, REASON_FORKED, "a flow rule");
    int error = flow->egress ? 0 : steering_join(process, flow);
    if (error)
        return error;
    lock_take(&process->progress);
    add_steering(process, flow);
    lock_release(&process->progress);
    return 0;
}

void steering_remove(struct process *process, struct flow *flow)
{
    struct steering *steering = process_objects(process)->steering;
    lock_take(&process->progress);
    if (flow->egress) {
        lock_take(&steering->lock);
        TAILQ_REMOVE(&steering->egress, flow, next);
        lock_release(&steering->lock);
        atomic_fetch_sub(&steering->egress_count, 1);
    } else {
        TAILQ_REMOVE(&steering->ingress, flow, next);
        if (!process->forked)
            node_leave(process->node, flow->group);
    }
    lock_release(&process->progress);
}

/* A frame on its way through the rules. */
struct passage {
    uint64_t number;
    uint32_t source; /* the queue pair that sent it */
    bool multicast;
    struct raw_frame frame;
    bool delivered; /* to anybody */

    /* the device whose rules are looked at, and the rank and priority that took the frame there */
    unsigned device;
    bool taken, dropped;
    uint8_t rank;
    uint16_t priority;
};

static void deliver(struct passage *passage, struct qp *qp)
{
    if (qp_port_is_down(qp))
        return;
    bool own = qp->number == passage->source;
    if (qp->ethernet.last_frame == passage->number)
        return;
    qp->ethernet.last_frame = passage->number;
    if (own && passage->multicast && qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
        return;
    passage->delivered = true;
    /* a queue pair with work queues receives in each state except ERR, as the states of the work queues decide;
     * programs never modify such a queue pair */
    if (qp->ethernet.spread && atomic_load(&qp->state) == IBV_QPS_ERR)
        return;
    struct qp *receiver = qp->ethernet.spread ? wq_choose(qp->ethernet.spread, passage->frame.ether) : qp;
    lock_take(&receiver->lock);
    engine_receive_frame(qp_engine(receiver), &passage->frame);
    lock_release(&receiver->lock);
}

/* Returns true if an earlier rule has taken the frame from this one. */
static bool is_too_late(const struct passage *passage, const struct flow *flow)
{
    if (flow->rank == FLOW_SNIFFER)
        return false;
    if (passage->dropped)
        return true;
    return passage->taken && (flow->rank > passage->rank || flow->priority > passage->priority);
}

static void count(const struct flow *flow, const struct ether *ether)
{
    for (unsigned i = 0; i < flow->rule.counters_count; i++)
        counters_count(flow->rule.counters[i], ether->length);
}

static void apply(struct passage *passage, const struct flow *flow)
{
    count(flow, passage->frame.ether);
    if (flow->rank != FLOW_SNIFFER && !flow->passes_on) {
        passage->taken = true;
        passage->rank = flow->rank;
        passage->priority = flow->priority;
    }
    if (flow->rule.drops) {
        passage->dropped = flow->rank != FLOW_SNIFFER;
        return;
    }
    passage->frame.flow_tag = flow->rule.tag;
    deliver(passage, flow->qp);
}

static void steer(const struct flow_list *rules, struct passage *passage)
{
    struct flow *flow;
    TAILQ_FOREACH (flow, rules, next) {
        if (flow->device != passage->device)
            passage->taken = passage->dropped = false;
        passage->device = flow->device;
        if (is_too_late(passage, flow) || (flow->multicast_only && !passage->multicast))
            continue;
        if (flow_matches(&flow->rule, passage->frame.ether))
            apply(passage, flow);
    }
}

static void receive_frame(struct process *process, const struct frame *frame)
{
    lock_assert_held(&process->progress);
    struct steering *steering = process_objects(process)->steering;
    uint32_t length = frame->payload.length;
    struct ether ether;
    if (frame->headers_length != STEERING_HEADER || length < ETHER_HEADER || length > RAW_FRAME_MAX)
        return;
    if (!payload_copy(&frame->payload, 0, &(struct iovec){steering->frame, length}, 1))
        return;
    ether_parse(&ether, steering->frame, length);
    struct passage passage = {
        .number = ++steering->frames,
        .source = bytes_get32(frame->headers),
        .multicast = ether_is_multicast(steering->frame),
        .frame = {.ether = &ether, .checksums_hold = ether_checksums_hold(&ether)},
        .device = DEVICES_MAX,
    };
    steer(&steering->ingress, &passage);
    if (!passage.delivered)
        log_reason(LOG_DEBUG, passage.dropped ? REASON_RAW_DROPPED_BY_RULE : REASON_RAW_NOT_STEERED, "%u bytes",
                   length);
}

static enum endpoint_output receive_ethernet(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct process *process = container_of(endpoint, struct process, ethernet);
    traffic_received_frame(&process->traffic, arrival->frame);
    receive_frame(process, arrival->frame);
    return ENDPOINT_NOTHING;
}

int steering_create(struct process *process)
{
    static const struct endpoint_operations operations = {.receive = receive_ethernet};
    struct steering *steering = calloc(1, sizeof *steering);
    if (!steering)
        return ENOMEM;
    TAILQ_INIT(&steering->ingress);
    lock_set_rank(&steering->lock, LOCK_INNERMOST);
    TAILQ_INIT(&steering->egress);
    process->ethernet.operations = &operations;
    process_objects(process)->steering = steering;
    return 0;
}

bool steering_withholds(const struct qp *qp, const uint8_t *bytes, uint32_t length)
{
    struct steering *steering = process_objects(qp->process)->steering;
    unsigned device = qp->object.context->device->index;
    struct ether ether;
    struct flow *flow;
    bool withheld = false, taken = false;
    uint16_t priority = 0;
    if (!atomic_load_explicit(&steering->egress_count, memory_order_relaxed))
        return false;
    ether_parse(&ether, bytes, length);
    lock_take(&steering->lock);
    TAILQ_FOREACH (flow, &steering->egress, next) {
        bool late = withheld || (taken && flow->priority > priority);
        if (flow->device != device || late || !flow_matches(&flow->rule, &ether))
            continue;
        count(flow, &ether);
        taken = taken || !flow->passes_on;
        priority = flow->priority;
        withheld = flow->rule.drops;
    }
    lock_release(&steering->lock);
    return withheld;
}
