/* Posts by lists of work requests. */
#include <errno.h>

#include "check/destroyed/callers.h"
#include "check/layer.h"
#include "check/rule.h"
#include "check/shadow/domain.h"
#include "check/shadow/flight.h"
#include "check/shadow/refusals.h"
#include "events/refusal.h"

/* The return address of a function of the data path is in the program: it calls through pointers in its structs. */
#define POSTED PLACE_OF_POST

static unsigned count_sends(const struct ibv_send_wr *wr, const struct ibv_send_wr *until)
{
    unsigned count = 0;
    for (; wr && wr != until; wr = wr->next)
        count++;
    return count;
}

static unsigned count_receives(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *until)
{
    unsigned count = 0;
    for (; wr && wr != until; wr = wr->next)
        count++;
    return count;
}

/* Looks for a signal handler with --check=full only, as that costs more than a post. */
static void see_stack(const char *call)
{
    struct place here;
    if (!rule_chosen.full)
        return;
    place_here(&here);
    hooks_see_place(&here, call);
}

/* Finds a destroyed address handle that one of these datagrams names, or NULL. Under the lock. */
static const struct shadow *find_gone_ah(const struct shadow *qp, const struct ibv_send_wr *wr)
{
    const struct shadow *gone = NULL;
    for (; qp && qp->qp.datagrams && wr && !gone; wr = wr->next)
        if (wr->wr.ud.ah && !shadow_find(SHADOW_AH, wr->wr.ud.ah))
            gone = shadow_find_gone(SHADOW_AH, wr->wr.ud.ah);
    return gone;
}

/* Returns `first` of flight_end; 0: the queue pair is not known; UINT64_MAX: it or an address handle is destroyed. */
static uint64_t begin_sends(struct ibv_qp *qp, const struct ibv_send_wr *wr, const void *posted)
{
    see_stack("ibv_post_send");
    hooks_see_use(SHADOW_QP, qp, "ibv_post_send");
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_QP, qp);
    domain_enter(shadow, "ibv_post_send");
    const struct shadow *gone = shadow ? find_gone_ah(shadow, wr) : shadow_find_gone(SHADOW_QP, qp);
    if (gone)
        HOOKS_CALL(used_gone, gone, "ibv_post_send");
    uint64_t first = shadow && !gone ? flight_begin_sends(shadow, wr, posted) : 0;
    if (gone)
        domain_leave(shadow);
    shadow_unlock();
    return gone ? UINT64_MAX : first;
}

static void keep_reason(struct shadow_refused *post, uint64_t wr_id)
{
    post->wr_id = wr_id;
    post->reason = (uint16_t)refusal_reason();
}

/* Ends a post. The library took its first `taken` work requests. Under the lock. */
static void end_post(struct shadow *owner, uint64_t first, unsigned taken, unsigned count,
                     const struct shadow_refused *post)
{
    flight_end(owner, post->receive ? flight_receives(owner) : &owner->qp.sends, first, taken, count);
    if (taken)
        refusals_drop(owner, post->receive);
    if (post->error)
        HOOKS_CALL(refused, owner, post);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    unsigned count = count_sends(wr, NULL);
    struct shadow_refused post = {.call = "ibv_post_send", .posted = POSTED};
    uint64_t first = begin_sends(qp, wr, post.posted);
    if (first == UINT64_MAX) {
        *bad = wr;
        return errno = EINVAL;
    }
    callers_enter("ibv_post_send", qp, NULL);
    refusal_forget();
    post.error = layer_below(ibv_post_send)(qp, wr, bad);
    callers_leave();
    if (post.error)
        keep_reason(&post, *bad ? (*bad)->wr_id : 0);
    unsigned taken = post.error ? count_sends(wr, *bad) : count;
    shadow_lock();
    struct shadow *shadow = first ? shadow_find(SHADOW_QP, qp) : NULL;
    if (shadow)
        end_post(shadow, first, taken, count, &post);
    domain_leave(shadow);
    shadow_unlock();
    return post.error;
}

static uint64_t begin_receives(enum shadow_kind kind, const void *owner, const struct ibv_recv_wr *wr,
                               const void *posted)
{
    const char *call = kind == SHADOW_QP ? "ibv_post_recv" : "ibv_post_srq_recv";
    see_stack(call);
    hooks_see_use(kind, owner, call);
    shadow_lock();
    struct shadow *shadow = shadow_find(kind, owner);
    domain_enter(shadow, call);
    const struct shadow *gone = shadow ? NULL : shadow_find_gone(kind, owner);
    if (gone)
        HOOKS_CALL(used_gone, gone, call);
    uint64_t first = shadow && !shadow->unfollowed ? flight_begin_receives(shadow, wr, posted) : 0;
    shadow_unlock();
    return gone ? UINT64_MAX : first;
}

static void end_receives(enum shadow_kind kind, const void *owner, uint64_t first, const struct ibv_recv_wr *wr,
                         const struct ibv_recv_wr *bad, struct shadow_refused *post)
{
    unsigned count = count_receives(wr, NULL), taken = post->error ? count_receives(wr, bad) : count;
    if (post->error)
        keep_reason(post, bad ? bad->wr_id : 0);
    shadow_lock();
    struct shadow *shadow = first ? shadow_find(kind, owner) : NULL;
    if (shadow)
        end_post(shadow, first, taken, count, post);
    domain_leave(shadow);
    shadow_unlock();
}

/* Looks whether messages of the peer found no receive, and were answered by RNR NAKs. */
static void see_rnrs(struct ibv_qp *ibv)
{
    struct calls_refused refused;
    if (!rule_chosen.rules[RULE_RECEIVES_RAN_OUT] || !calls_questions->qp_refused(ibv, &refused))
        return;
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_QP, ibv);
    if (shadow && refused.rnrs > shadow->qp.rnrs) {
        HOOKS_CALL(waits.ran_out, shadow, refused.rnrs - shadow->qp.rnrs);
        shadow->qp.rnrs = refused.rnrs;
    }
    shadow_unlock();
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct shadow_refused post = {.call = "ibv_post_recv", .posted = POSTED, .receive = true};
    uint64_t first = begin_receives(SHADOW_QP, qp, wr, post.posted);
    if (first == UINT64_MAX) {
        *bad = wr;
        return errno = EINVAL;
    }
    callers_enter("ibv_post_recv", qp, NULL);
    refusal_forget();
    post.error = layer_below(ibv_post_recv)(qp, wr, bad);
    callers_leave();
    end_receives(SHADOW_QP, qp, first, wr, *bad, &post);
    see_rnrs(qp);
    return post.error;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct shadow_refused post = {.call = "ibv_post_srq_recv", .posted = POSTED, .receive = true};
    uint64_t first = begin_receives(SHADOW_SRQ, srq, wr, post.posted);
    if (first == UINT64_MAX) {
        *bad = wr;
        return errno = EINVAL;
    }
    callers_enter("ibv_post_srq_recv", srq, NULL);
    refusal_forget();
    post.error = layer_below(ibv_post_srq_recv)(srq, wr, bad);
    callers_leave();
    end_receives(SHADOW_SRQ, srq, first, wr, *bad, &post);
    return post.error;
}

void posts_fill(struct calls *calls)
{
    calls->ibv_post_send = post_send;
    calls->ibv_post_recv = post_recv;
    calls->ibv_post_srq_recv = post_srq_recv;
}
