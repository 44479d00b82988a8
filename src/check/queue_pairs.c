/* The calls that make and change queue pairs. */
#include <errno.h>
#include <stddef.h>

#include "calls/qp_types.h"
#include "calls/questions.h"
#include "calls/subject.h"
#include "check/layer.h"
#include "check/rule.h"
#include "check/shadow/created.h"
#include "check/shadow/unfollow.h"

/* The wishes of a program for a queue pair. */
struct wishes {
    uint64_t builders;
    uint32_t inline_data;
    bool signals_all;
    bool unsolicited; /* WRITEs with immediate take no receive (efadv_create_qp_ex(3)) */
};

/* The library grants more inline data than was asked for. The program gets the number that it asked for, as it may use
 * all that it is answered, and the rule must not report that. */
static void answer(struct ibv_qp_cap *cap, uint32_t inline_asked)
{
    if (rule_chosen.rules[RULE_INLINE_UNASKED] && cap->max_inline_data > inline_asked)
        cap->max_inline_data = inline_asked;
}

static void note_qp(struct ibv_qp *qp, struct ibv_qp_cap *cap, const struct wishes *wishes)
{
    uint32_t traits = calls_questions->qp_traits(qp);
    struct shadow *shadow = created_enter(SHADOW_QP, qp, qp->context, CALLS_SUBJECT(qp));
    if (shadow) {
        shadow->qp.send_cq = shadow_find(SHADOW_CQ, qp->send_cq);
        shadow->qp.recv_cq = shadow_find(SHADOW_CQ, qp->recv_cq);
        shadow->qp.srq = shadow_find(SHADOW_SRQ, qp->srq);
        if (shadow->qp.srq)
            shadow->qp.srq->srq.users++;
        shadow->qp.cap = *cap;
        shadow->qp.type = qp->qp_type;
        shadow->qp.traits = traits;
        shadow->qp.signals_all = wishes->signals_all;
        shadow->qp.builders = wishes->builders;
        shadow->qp.inline_asked = wishes->inline_data;
        shadow->qp.datagrams = traits & QP_DATAGRAM;
        shadow->qp.unordered = traits & QP_UNORDERED;
        shadow->qp.unsolicited = wishes->unsolicited;
        shadow->qp.may_lose_parts = !(traits & (QP_RELIABLE | QP_DATAGRAM));
        shadow->td = created_td_of(qp->pd);
        if (unfollow_is_needed(shadow))
            unfollow_new(shadow);
        else
            HOOKS_CALL(memory.queued, shadow);
    }
    shadow_unlock();
    answer(cap, wishes->inline_data);
}

/* Returns true if a new queue pair names a destroyed queue. */
static bool names_gone(const struct ibv_cq *send_cq, const struct ibv_cq *recv_cq, const struct ibv_srq *srq,
                       const char *call)
{
    return (send_cq && hooks_is_gone(SHADOW_CQ, send_cq, call)) ||
           (recv_cq && recv_cq != send_cq && hooks_is_gone(SHADOW_CQ, recv_cq, call)) ||
           (srq && hooks_is_gone(SHADOW_SRQ, srq, call));
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    hooks_see_use(SHADOW_CONTEXT, pd->context, "ibv_create_qp");
    if (names_gone(attr->send_cq, attr->recv_cq, attr->srq, "ibv_create_qp"))
        return errno = EINVAL, NULL;
    const struct wishes wishes = {.inline_data = attr->cap.max_inline_data, .signals_all = attr->sq_sig_all};
    struct ibv_qp *qp = CREATED(layer_below(ibv_create_qp)(pd, attr), ibv_create_qp);
    if (qp)
        note_qp(qp, &attr->cap, &wishes);
    return qp;
}

static struct wishes wishes_of(const struct ibv_qp_init_attr_ex *attr)
{
    return (struct wishes){.builders = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0,
                           .inline_data = attr->cap.max_inline_data,
                           .signals_all = attr->sq_sig_all};
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    hooks_see_use(SHADOW_CONTEXT, context, "ibv_create_qp_ex");
    if (names_gone(attr->send_cq, attr->recv_cq, attr->srq, "ibv_create_qp_ex"))
        return errno = EINVAL, NULL;
    const struct wishes wishes = wishes_of(attr);
    struct ibv_qp *qp = CREATED(layer_below(ibv_create_qp_ex)(context, attr), ibv_create_qp_ex);
    if (qp)
        note_qp(qp, &attr->cap, &wishes);
    return qp;
}

/* --- of an EFA */

/* Returns true if the struct, which has `inlen` bytes, asks for receives that WRITEs with immediate do not take. */
static bool asks_for_unsolicited(const struct efadv_qp_init_attr *efa, uint32_t inlen)
{
    bool has = inlen >= offsetof(struct efadv_qp_init_attr, flags) + sizeof efa->flags;
    return has && efa->flags & EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV;
}

static struct ibv_qp *create_efa_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                       struct efadv_qp_init_attr *efa, uint32_t inlen)
{
    hooks_see_use(SHADOW_CONTEXT, context, "efadv_create_qp_ex");
    if (names_gone(attr->send_cq, attr->recv_cq, attr->srq, "efadv_create_qp_ex"))
        return errno = EINVAL, NULL;
    struct wishes wishes = wishes_of(attr);
    struct ibv_qp *qp = CREATED(layer_below(efadv_create_qp_ex)(context, attr, efa, inlen), efadv_create_qp_ex);
    if (!qp)
        return NULL;
    wishes.unsolicited = asks_for_unsolicited(efa, inlen);
    note_qp(qp, &attr->cap, &wishes);
    return qp;
}

static struct ibv_qp *create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t type)
{
    hooks_see_use(SHADOW_CONTEXT, pd->context, "efadv_create_driver_qp");
    if (names_gone(attr->send_cq, attr->recv_cq, attr->srq, "efadv_create_driver_qp"))
        return errno = EINVAL, NULL;
    const struct wishes wishes = {.inline_data = attr->cap.max_inline_data, .signals_all = attr->sq_sig_all};
    struct ibv_qp *qp = CREATED(layer_below(efadv_create_driver_qp)(pd, attr, type), efadv_create_driver_qp);
    if (qp)
        note_qp(qp, &attr->cap, &wishes);
    return qp;
}

/* --- of libmlx5 */

static struct ibv_qp *create_mlx5_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                     struct mlx5dv_qp_init_attr *mlx5)
{
    hooks_see_use(SHADOW_CONTEXT, context, "mlx5dv_create_qp");
    if (names_gone(attr->send_cq, attr->recv_cq, attr->srq, "mlx5dv_create_qp"))
        return errno = EINVAL, NULL;
    const struct wishes wishes = wishes_of(attr);
    struct ibv_qp *qp = CREATED(layer_below(mlx5dv_create_qp)(context, attr, mlx5), mlx5dv_create_qp);
    if (qp)
        note_qp(qp, &attr->cap, &wishes);
    return qp;
}

/* --- */

static int query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    int result = layer_below(ibv_query_qp)(qp, attr, mask, init);
    shadow_lock();
    const struct shadow *shadow = shadow_find(SHADOW_QP, qp);
    if (shadow && !result) {
        answer(&attr->cap, shadow->qp.inline_asked);
        if (init)
            answer(&init->cap, shadow->qp.inline_asked);
    }
    shadow_unlock();
    return result;
}

static struct shadow_connection connection_of(const struct calls_end *end)
{
    return (struct shadow_connection){.peer = end->peer,
                                      .sq_psn = end->sq_psn,
                                      .rq_psn = end->rq_psn,
                                      .mtu = end->mtu,
                                      .access = end->access,
                                      .max_rd_atomic = end->max_rd_atomic,
                                      .max_dest_rd_atomic = end->max_dest_rd_atomic,
                                      .ways = (end->requests ? SHADOW_REQUESTS : 0) |
                                              (end->responds ? SHADOW_RESPONDS : 0)};
}

static void note_peer(struct shadow_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
        qp->connection.peer = 0;
    if (mask & IBV_QP_DEST_QPN)
        qp->connection.peer = attr->dest_qp_num;
}

static void meet(struct ibv_qp *qp)
{
    struct calls_end own, peer;
    if (!calls_questions->qp_meets(qp, &own, &peer))
        return;
    const struct shadow_connection other = connection_of(&peer);
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_QP, qp);
    if (shadow) {
        shadow->qp.connection = connection_of(&own);
        HOOKS_CALL(met, shadow, &other);
    }
    shadow_unlock();
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    hooks_see_use(SHADOW_QP, qp, "ibv_modify_qp");
    int result = created_result(layer_below(ibv_modify_qp)(qp, attr, mask), "ibv_modify_qp");
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_QP, qp);
    if (shadow && !result)
        note_peer(&shadow->qp, attr, mask);
    if (shadow && !result && mask & IBV_QP_STATE) {
        shadow->qp.state = attr->qp_state;
        if (attr->qp_state == IBV_QPS_RESET)
            shadow_end_work(shadow);
    }
    if (shadow && !result)
        HOOKS_CALL(modified, shadow, attr, mask);
    bool connected = shadow && !result && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS;
    shadow_unlock();
    if (connected && (rule_chosen.rules[RULE_PEERS_DISAGREE] || rule_chosen.rules[RULE_ACCESS_DIFFERS]))
        meet(qp);
    return result;
}

/* Asks without the shadow's lock, as the answer takes a lock of the library. */
void queue_pairs_see_refused(struct ibv_qp *qp)
{
    struct calls_refused refused;
    shadow_lock();
    bool known = shadow_find(SHADOW_QP, qp);
    shadow_unlock();
    if (!known || !calls_questions->qp_refused(qp, &refused))
        return;
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_QP, qp);
    if (shadow)
        HOOKS_CALL(refused_peers, shadow, &refused);
    shadow_unlock();
}

void queue_pairs_fill(struct calls *calls)
{
    calls->ibv_create_qp = create_qp;
    calls->ibv_create_qp_ex = create_qp_ex;
    calls->efadv_create_qp_ex = create_efa_qp_ex;
    calls->efadv_create_driver_qp = create_driver_qp;
    calls->mlx5dv_create_qp = create_mlx5_qp;
    calls->ibv_query_qp = query_qp;
    calls->ibv_modify_qp = modify_qp;
}
