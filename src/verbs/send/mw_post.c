#include "verbs/send/mw_post.h"

#include <errno.h>
#include <stdio.h>

#include "base/result.h"
#include "events/refusal.h"
#include "link/guard.h"
#include "runtime/clock.h"
#include "verbs/memory/mw.h"
#include "verbs/qp/mw_bind.h"
#include "verbs/send/post.h"

enum { BIND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED };

static enum reason post_bind(struct qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind, nanos now)
{
    if (!post_is_open(qp))
        return REASON_SEND_STATE;
    if (!post_is_legal(qp, IBV_WR_BIND_MW))
        return REASON_SEND_OPCODE;
    if (bind->send_flags & ~(unsigned)BIND_FLAGS)
        return REASON_SEND_FLAGS;
    struct send_wqe *work = post_reserve(qp);
    if (!work)
        return REASON_SEND_QUEUE_FULL;
    work->id = bind->wr_id;
    work->opcode = IBV_WR_BIND_MW;
    work->flags = (uint8_t)bind->send_flags;
    enum reason reason = mw_describe_bind(work, mw, ibv_inc_rkey(mw->rkey), &bind->bind_info);
    if (!reason)
        post_commit(qp, work, now);
    return reason;
}

static const char bind_call[] = "ibv_bind_mw";

/* Makes the checks of newer headers, which the header of release 33 leaves to the provider. 0 or the errno. */
static int error_of_header(struct qp *qp, const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
    bool nothing = !info->mr && (info->addr || info->length), foreign = info->mr && info->mr->pd != mw->pd;
    if (mw->type != IBV_MW_TYPE_1)
        post_note_refused(qp, REASON_BIND_TYPE, bind_call);
    else if (nothing || foreign)
        post_note_refused(qp, nothing ? REASON_BIND_NOTHING : REASON_BIND_PD, bind_call);
    if (mw->type != IBV_MW_TYPE_1)
        return refuse_in(bind_call, EINVAL, REASON_BIND_TYPE, "the window is of type %u", mw->type);
    if (nothing)
        return refuse_in(bind_call, EINVAL, REASON_BIND_NOTHING, "addr is 0x%llx, length %llu",
                         (unsigned long long)info->addr, (unsigned long long)info->length);
    if (foreign)
        return refuse_in(bind_call, EPERM, REASON_BIND_PD, "the region with lkey 0x%x", info->mr->lkey);
    return 0;
}

int mw_post_bind(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct qp *qp = qp_of(ibv);
    int error = error_of_header(qp, mw, &bind->bind_info);
    if (error)
        return result_failure(error);
    enum reason reason = REASON_SEND_BATCH;
    if (post_enter(qp)) {
        lock_take(&qp->lock);
        nanos now = clock_about_now();
        bool opened = guard_begin(now);
        reason = post_bind(qp, mw, bind, now);
        if (!reason)
            post_start(qp, now);
        guard_end(opened);
        lock_release(&qp->lock);
        post_leave(qp);
    }
    if (!reason)
        return 0;
    char text[64];
    snprintf(text, sizeof text, "send_flags 0x%x, mw_access_flags 0x%x", bind->send_flags,
             bind->bind_info.mw_access_flags);
    return post_refused(qp, bind_call, bind->wr_id, reason, text);
}
