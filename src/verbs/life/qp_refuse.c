#include "verbs/life/qp_refuse.h"

#include <errno.h>
#include <stdio.h>

#include "config/device_state.h"
#include "config/link_layer.h"
#include "events/refusal.h"
#include "events/words.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_path.h"
#include "verbs/qp/qp_state.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/send/ah.h"

enum {
    MOST_QPN = 0xffffff, /* 24 bits */
    MOST_TIMER = 31,     /* 5 bits */
    MOST_RETRIES = 7,    /* 3 bits */
    NOT_OFFERED = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP,
    TEXT = 2 * WORDS_SIZE,
};

static uint32_t bytes_of(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

static enum reason check_mtu(const struct context *context, enum ibv_mtu mtu)
{
    if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
        return REASON_PATH_MTU;
    return bytes_of(mtu) > device_now(context->device)->mtu ? REASON_PATH_MTU_ABOVE_PORT : REASON_NONE;
}

static enum reason check_address(const struct context *context, const struct ibv_ah_attr *attr)
{
    enum reason reason = ah_check(context, attr);
    if (!reason && link_layer_is_infiniband(context->device) && link_layer_is_multicast(context->device, attr))
        return REASON_DLID;
    return reason;
}

/* Timers and counters of retries, each with a number of bits. */
static const struct counted {
    int bit;
    const char *name;
    uint8_t most;
    size_t offset;
} counted[] = {
    {IBV_QP_TIMEOUT, "timeout", MOST_TIMER, offsetof(struct ibv_qp_attr, timeout)},
    {IBV_QP_RETRY_CNT, "retry_cnt", MOST_RETRIES, offsetof(struct ibv_qp_attr, retry_cnt)},
    {IBV_QP_RNR_RETRY, "rnr_retry", MOST_RETRIES, offsetof(struct ibv_qp_attr, rnr_retry)},
    {IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", MOST_TIMER, offsetof(struct ibv_qp_attr, min_rnr_timer)},
};

static uint8_t value_of(const struct counted *of, const struct ibv_qp_attr *attr)
{
    return *((const uint8_t *)attr + of->offset);
}

/* Returns the first attribute whose value is too large; or NULL. */
static const struct counted *find_excess(const struct ibv_qp_attr *attr, int mask)
{
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (mask & counted[i].bit && value_of(&counted[i], attr) > counted[i].most)
            return &counted[i];
    return NULL;
}

/* Checks the values, which the table of states does not have. */
static enum reason check_values(const struct context *context, const struct ibv_qp_attr *attr, int mask)
{
    const struct limits *limits = &context->device->limits;
    if ((mask & IBV_QP_PORT) && attr->port_num != 1)
        return REASON_PORT;
    if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index)
        return REASON_PKEY_INDEX;
    if ((mask & IBV_QP_DEST_QPN) && attr->dest_qp_num > MOST_QPN)
        return REASON_QPN;
    enum reason reason = mask & IBV_QP_AV ? check_address(context, &attr->ah_attr) : REASON_NONE;
    if (!reason && mask & IBV_QP_PATH_MTU)
        reason = check_mtu(context, attr->path_mtu);
    if (reason)
        return reason;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > limits->max_rd_atomic)
        return REASON_RD_ATOMIC;
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > limits->max_rd_atomic)
        return REASON_DEST_RD_ATOMIC;
    if (find_excess(attr, mask))
        return REASON_TIMER_VALUE;
    return mask & NOT_OFFERED ? REASON_QP_ATTRIBUTE_UNSUPPORTED : REASON_NONE;
}

/* Refuses a way of the other kind for begun work: it has PSNs, and the peer may have taken some, so it can't be cut
 * into packets of another size. */
static enum reason check_begun(const struct qp *qp, const struct ibv_qp_attr *attr)
{
    const struct device *device = qp->object.context->device;
    bool remote = device->interface[0] && !link_layer_is_local(device, &attr->ah_attr);
    if (remote == (qp->path.remote != NULL) || engine_may_move(qp_engine(qp), qp_path_segment(qp, remote), remote))
        return REASON_NONE;
    return REASON_WORK_BEGUN;
}

enum reason qp_refuse_check(const struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = qp->state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
    if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
        return REASON_CURRENT_STATE;
    enum reason reason = qp_state_check(qp->kind, from, to, mask);
    int effective = qp_effective(qp, mask);
    if (!reason)
        reason = check_values(qp->object.context, attr, effective);
    return reason || !(effective & IBV_QP_AV) ? reason : check_begun(qp, attr);
}

/* -- the line */

static const char *between(enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (from == IBV_QPS_RESET && to == IBV_QPS_RTR)
        return "INIT comes between";
    if (from == IBV_QPS_RESET && to == IBV_QPS_RTS)
        return "INIT and RTR come between";
    if (from == IBV_QPS_INIT && to == IBV_QPS_RTS)
        return "RTR comes between";
    return from == IBV_QPS_ERR ? "from ERR the way leads to RESET" : "ibv_modify_qp(3) lists the transitions";
}

/* Describes the states, and the bits of attr_mask for the transition. False: the reason is about neither. */
static bool describe_transition(const struct qp *qp, const struct ibv_qp_attr *attr, int mask, enum reason reason,
                                char text[TEXT])
{
    enum ibv_qp_state from = qp->state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
    struct qp_transition transition = qp_state_transition(qp->kind, from, to);
    char words[WORDS_SIZE];
    if (reason == REASON_STATE_UNKNOWN)
        snprintf(text, TEXT, "qp_state is %u", to);
    else if (reason == REASON_STATE_TRANSITION)
        snprintf(text, TEXT, "%s", between(from, to));
    else if (reason == REASON_CURRENT_STATE)
        snprintf(text, TEXT, "cur_qp_state is %s, the queue pair is in %s", words_state(attr->cur_qp_state),
                 words_state(from));
    else if (reason == REASON_ATTRIBUTE_MISSING)
        snprintf(text, TEXT, "attr_mask lacks %s", words_attributes((unsigned)(transition.required & ~mask), words));
    else if (reason == REASON_ATTRIBUTE_NOT_ALLOWED)
        snprintf(text, TEXT, "attr_mask has %s, which may not change here%s",
                 words_attributes((unsigned)(mask & ~(transition.required | transition.optional)), words),
                 mask & IBV_QP_STATE ? "" : ", as it lacks IBV_QP_STATE");
    else
        return false;
    return true;
}

static void describe_mtu(const struct qp *qp, enum ibv_mtu mtu, enum reason reason, char text[TEXT])
{
    const struct device *device = qp->object.context->device;
    if (reason == REASON_PATH_MTU)
        snprintf(text, TEXT, "path_mtu is %u", mtu);
    else
        snprintf(text, TEXT, "path_mtu is %u bytes (IBV_MTU_%u), and the active_mtu of port 1 on %s leaves %u",
                 bytes_of(mtu), bytes_of(mtu), device->interface[0] ? device->interface : "this host",
                 device_now(device)->mtu);
}

/* Describes the refused value. False: the reason is one of ah_check. */
static bool describe_value(const struct qp *qp, const struct ibv_qp_attr *attr, int mask, enum reason reason,
                           char text[TEXT])
{
    const struct limits *limits = &qp->object.context->device->limits;
    const struct counted *excess = find_excess(attr, mask);
    char words[WORDS_SIZE];
    if (reason == REASON_PORT && mask & IBV_QP_PORT && attr->port_num != 1)
        snprintf(text, TEXT, "port_num is %u", attr->port_num);
    else if (reason == REASON_PKEY_INDEX)
        snprintf(text, TEXT, "pkey_index is %u", attr->pkey_index);
    else if (reason == REASON_QPN)
        snprintf(text, TEXT, "dest_qp_num is 0x%x", attr->dest_qp_num);
    else if (reason == REASON_PATH_MTU || reason == REASON_PATH_MTU_ABOVE_PORT)
        describe_mtu(qp, attr->path_mtu, reason, text);
    else if (reason == REASON_RD_ATOMIC)
        snprintf(text, TEXT, "max_rd_atomic is %u, max_qp_init_rd_atom %u", attr->max_rd_atomic, limits->max_rd_atomic);
    else if (reason == REASON_DEST_RD_ATOMIC)
        snprintf(text, TEXT, "max_dest_rd_atomic is %u, max_qp_rd_atom %u", attr->max_dest_rd_atomic,
                 limits->max_rd_atomic);
    else if (reason == REASON_TIMER_VALUE && excess)
        snprintf(text, TEXT, "%s is %u", excess->name, value_of(excess, attr));
    else if (reason == REASON_WORK_BEGUN)
        snprintf(text, TEXT, "dgid leads to %s, and work has begun by the way to %s",
                 qp->path.remote ? "this host" : "another host", qp->path.remote ? "another host" : "this host");
    else if (reason == REASON_QP_ATTRIBUTE_UNSUPPORTED)
        snprintf(text, TEXT, "attr_mask has %s", words_attributes((unsigned)mask & NOT_OFFERED, words));
    else
        return false;
    return true;
}

const char *qp_refuse_name(const struct qp *qp, const struct ibv_qp_attr *attr, int mask, enum reason before,
                           char call[QP_REFUSE_CALL])
{
    enum ibv_qp_state from = qp->state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
    char missed[QP_TELL_UNCHANGED];
    snprintf(call, QP_REFUSE_CALL, "qp 0x%x: ibv_modify_qp %s to %s%s", qp->number, words_state(from), words_state(to),
             qp_tell_unchanged(before, missed));
    return call;
}

int qp_refuse(const struct qp *qp, const struct ibv_qp_attr *attr, int mask, enum reason reason, enum reason before)
{
    char call[QP_REFUSE_CALL], text[TEXT];
    qp_refuse_name(qp, attr, mask, before, call);
    if (reason == REASON_ATTRIBUTE_MISSING || reason == REASON_ATTRIBUTE_NOT_ALLOWED) {
        describe_transition(qp, attr, mask, reason, text);
        return refuse_in_because(call, EINVAL, reason, "%s", text);
    }
    if (describe_transition(qp, attr, mask, reason, text) || describe_value(qp, attr, mask, reason, text))
        return refuse_in(call, EINVAL, reason, "%s", text);
    return ah_refuse(qp->object.context, &attr->ah_attr, reason, call);
}
