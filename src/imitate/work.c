#include "base/result.h"
#include "calls/post_some.h"
#include "events/refusal.h"
#include "imitate/layer.h"

CALLS_POST_SOME(sends, struct ibv_qp, struct ibv_send_wr, calls_get(&imitate_layer.below, ibv_post_send))

/* Posts the work requests before the first one that the device can't do. */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct ibv_send_wr *at = wr;
    unsigned good = 0;
    for (; at && imitate_has(PROFILE_opcodes, at->opcode); at = at->next)
        good++;
    if (!at)
        return calls_get(&imitate_layer.below, ibv_post_send)(qp, wr, bad);
    int error = post_some_sends(qp, wr, good, bad);
    if (error)
        return error;
    *bad = at;
    return result_failure(refuse_in("ibv_post_send", imitate_errno(PROFILE_errno_opcode), REASON_PROFILE_OPCODE,
                                    "profile %s: opcode is %u", imitated->name, at->opcode));
}

/* Builders of operations that the device lacks are refused when the queue pair is made (send_ops). */
void imitate_add_work(struct calls *calls)
{
    if (imitated->set[PROFILE_opcodes])
        calls->ibv_post_send = post_send;
}
