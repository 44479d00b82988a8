/* The obligations of programs towards librdmacm. */
#include "check/hooks.h"
#include "check/outside/rdma_cma.h"
#include "check/shadow/event_count.h"

static void judge_events(const struct shadow *id, const char *happens)
{
    if (event_count_open(id))
        finding_add(HOOKS_ABOUT(RULE_CM_EVENT_UNACKNOWLEDGED, id),
                    "An identifier is %s while %u of its events are not acknowledged: the call waits for them", happens,
                    event_count_open(id));
}

static void migrating(struct shadow *id)
{
    judge_events(id, "moved to another channel");
}

static void accepting(struct shadow *id, uint8_t depth)
{
    if (depth > id->cm.depth && depth != RDMA_MAX_INIT_DEPTH)
        finding_add(HOOKS_ABOUT(RULE_ACCEPT_DEPTH_HIGH, id),
                    "A connection is accepted with initiator_depth %u, and its request had %u", depth, id->cm.depth);
}

static void acknowledged_again(const struct place *first)
{
    finding_add(&(struct finding_about){.rule = RULE_CM_EVENT_OVERACKNOWLEDGED, .kind = "cm_id", .destroyed = first},
                "rdma_ack_cm_event acknowledges an event again, whose memory the first acknowledgement gave back; the "
                "checker refuses it with EINVAL");
}

static void destroying_id(const struct shadow *id)
{
    judge_events(id, "destroyed");
    if (id->cm.connected)
        finding_add(HOOKS_ABOUT(RULE_DISCONNECT_MISSING, id),
                    "An identifier is destroyed while it is connected, and rdma_disconnect was not called");
    if (id->cm.keeps_qp)
        finding_add(HOOKS_ABOUT(RULE_CM_QP_LEFT, id),
                    "An identifier is destroyed before the queue pair that was created on it, which stays");
}

static void destroying_channel(const struct shadow *channel)
{
    const struct shadow *id;
    unsigned many = 0;
    TAILQ_FOREACH (id, shadow_all(), siblings)
        many += id->kind == SHADOW_CM_ID && id->cm.channel == channel->handle;
    if (many)
        finding_add(HOOKS_ABOUT(RULE_CM_CHANNEL_IN_USE, channel),
                    "An event channel is destroyed before %u of its identifiers", many);
}

static void destroying(struct shadow *shadow)
{
    if (shadow->kind == SHADOW_CM_ID)
        destroying_id(shadow);
    if (shadow->kind == SHADOW_CM_CHANNEL)
        destroying_channel(shadow);
}

const struct hooks rules_connections = {
    .destroying = destroying,
    .cm = {.migrating = migrating, .accepting = accepting, .acknowledged_again = acknowledged_again}};
