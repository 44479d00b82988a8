#include "check/idle.h"

#include <time.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "calls/questions.h"
#include "check/hooks_call.h"

/* The most queue pairs without a receive that are looked at. */
enum { SUSPECTS = 16 };

struct suspects {
    void *space; /* calls_questions->numbers: what the numbers belong to */
    unsigned count;
    uint32_t numbers[SUSPECTS];
};

static bool has_receives(const struct shadow *qp)
{
    const struct shadow *srq = qp->qp.srq;
    return srq ? srq->srq.receives.count || srq->unfollowed : qp->qp.receives.count;
}

/* Returns true if completions may come without another post: of work that a CQ counts, or of posted receives. */
static bool is_due(const struct shadow *cq_or_channel)
{
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings) {
        if (shadow->kind == SHADOW_CQ && shadow_is_of(shadow, cq_or_channel) && shadow->cq.due)
            return true;
        if (shadow->kind == SHADOW_QP && shadow_is_of(shadow->qp.recv_cq, cq_or_channel) && has_receives(shadow))
            return true;
    }
    return false;
}

static bool is_suspect(const struct shadow *qp, const struct shadow *cq_or_channel)
{
    return qp->kind == SHADOW_QP && qp->process == getpid() && shadow_is_of(qp->qp.recv_cq, cq_or_channel) &&
           (qp->qp.state == IBV_QPS_RTR || qp->qp.state == IBV_QPS_RTS) && !has_receives(qp);
}

static void collect(struct suspects *suspects, const struct shadow *cq_or_channel)
{
    const struct shadow *qp;
    suspects->count = 0;
    if (is_due(cq_or_channel))
        return;
    TAILQ_FOREACH (qp, shadow_all(), siblings) {
        if (suspects->count == SUSPECTS || !is_suspect(qp, cq_or_channel))
            continue;
        suspects->space = calls_questions->numbers(qp->qp.recv_cq->handle);
        suspects->numbers[suspects->count++] = qp->number;
    }
}

/* Looks at the RNR NAKs that the queue pairs have sent. Asks without the shadow's lock, as the answer takes locks of
 * the library. */
static void look(const struct suspects *suspects, void (*note)(struct shadow *qp, uint64_t sent))
{
    for (unsigned at = 0; at < suspects->count; at++) {
        uint64_t sent;
        bool known = calls_questions->number_rnrs(suspects->space, suspects->numbers[at], &sent);
        shadow_lock();
        struct shadow *qp = shadow_find_number(SHADOW_QP, suspects->numbers[at]);
        if (qp && !known)
            qp->qp.idle.rnrs = UINT64_MAX;
        if (qp && known)
            note(qp, sent);
        shadow_unlock();
    }
}

static void note_sent(struct shadow *qp, uint64_t sent)
{
    qp->qp.idle.rnrs = sent;
    qp->qp.idle.posts = shadow_receiver(qp)->last_receive.posts;
}

/* RNR NAKs that were sent before the wait count, too, if the queue pair never had a receive. */
static void judge_naks(struct shadow *qp, uint64_t sent)
{
    uint32_t posts = shadow_receiver(qp)->last_receive.posts;
    uint64_t before = posts || qp->qp.srq ? qp->qp.idle.rnrs : 0;
    if (sent > before && posts == qp->qp.idle.posts && !has_receives(qp))
        HOOKS_CALL(waits.missing, qp, sent - before);
}

/* Finds a CQ whose last queue pair was destroyed with work under way. NULL: completions may come, or none was lost. */
static struct shadow *find_gone(const struct shadow *cq_or_channel)
{
    struct shadow *shadow, *lost = NULL;
    TAILQ_FOREACH (shadow, shadow_all(), siblings) {
        if (shadow->kind == SHADOW_CQ && shadow_is_of(shadow, cq_or_channel) && shadow->cq.lost.sends)
            lost = shadow;
        if (shadow->kind == SHADOW_QP &&
            (shadow_is_of(shadow->qp.send_cq, cq_or_channel) || shadow_is_of(shadow->qp.recv_cq, cq_or_channel)))
            return NULL;
    }
    return lost;
}

static void judge_gone(const struct shadow *cq_or_channel)
{
    struct shadow *cq = find_gone(cq_or_channel);
    if (cq)
        HOOKS_CALL(waits.gone, cq);
}

bool idle_begin(const struct ibv_comp_channel *handle)
{
    struct suspects suspects = {0};
    shadow_lock();
    const struct shadow *channel = shadow_find(SHADOW_CHANNEL, handle);
    bool gone = channel && find_gone(channel);
    if (channel)
        collect(&suspects, channel);
    shadow_unlock();
    look(&suspects, note_sent);
    return gone || suspects.count;
}

void idle_judge(const struct ibv_comp_channel *handle)
{
    struct suspects suspects = {0};
    shadow_lock();
    const struct shadow *channel = shadow_find(SHADOW_CHANNEL, handle);
    if (channel)
        judge_gone(channel);
    if (channel)
        collect(&suspects, channel);
    shadow_unlock();
    look(&suspects, judge_naks);
}

enum stage { GOES_ON, BEGINS, IS_LONG };

/* Returns the stage of a series of polls in vain. */
static enum stage advance(struct shadow *cq)
{
    enum { LONG = 1000000000 /* ns */ };
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    struct calls_cq_entries entries;
    if (!calls_questions->cq_entries(cq->handle, &entries))
        return GOES_ON;
    bool begins = !cq->cq.idle.since || entries.added != cq->cq.idle.tail;
    if (!begins && now - cq->cq.idle.since < LONG)
        return GOES_ON;
    cq->cq.idle.since = now;
    cq->cq.idle.tail = entries.added;
    return begins ? BEGINS : IS_LONG;
}

/* Advances the series if completions of the CQ may never come, else ends it. */
static enum stage judge_poll(struct shadow *cq, struct suspects *suspects)
{
    bool gone = find_gone(cq);
    collect(suspects, cq);
    if (!gone && !suspects->count)
        cq->cq.idle.since = 0;
    enum stage stage = gone || suspects->count ? advance(cq) : GOES_ON;
    if (gone && stage == IS_LONG)
        judge_gone(cq);
    return stage;
}

void idle_polled(const struct ibv_cq *ibv)
{
    struct suspects suspects = {0};
    shadow_lock();
    struct shadow *cq = shadow_find(SHADOW_CQ, ibv);
    enum stage stage = cq ? judge_poll(cq, &suspects) : GOES_ON;
    shadow_unlock();
    if (stage != GOES_ON)
        look(&suspects, stage == BEGINS ? note_sent : judge_naks);
}
