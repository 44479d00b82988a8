#include "verbs/life/qp_messages.h"

#include <string.h>

#include "verbs/ask/qp_story_kept.h"
#include "verbs/ask/qp_story_messages.h"
#include "verbs/life/vendor_code.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/send/ah.h"

void qp_messages_failed(struct qp *qp, const struct send_wqe *work, enum ibv_wc_status status, enum reason reason)
{
    const struct ah *ah = work->address;
    struct story_message about = {.peer = work->remote_qp, .vendor = vendor_code(status, reason)};
    lock_assert_held(&qp->lock);
    if (status == IBV_WC_WR_FLUSH_ERR && engine_has_failed(qp_engine(qp)))
        return;
    if (ah) {
        memcpy(about.gid, ah->attr.grh.dgid.raw, sizeof about.gid);
        about.remote = ah->remote;
    }
    qp_story_message_failed(qp, work, status, reason, &about);
}

void qp_messages_dropped(struct qp *qp, const struct packet *packet, enum reason reason)
{
    if (reason == REASON_PACKET_QKEY || reason == REASON_PACKET_QP_STATE)
        qp_story_message_refused(qp, packet, reason);
}

void qp_owner_refused(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    qp_story_message_refused(qp_of_owner(owner), packet, reason);
}
