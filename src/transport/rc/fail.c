#include "transport/rc/fail.h"

#include "base/nanos.h"
#include "transport/retire.h"

void fail_receive(struct rc *rc, enum ibv_wc_status status, enum reason reason, const struct packet *packet)
{
    const struct receive *receive = rc->responder.receive;
    if (!receive)
        return;
    const struct arrival arrival = {
        .status = status,
        .reason = status == IBV_WC_WR_FLUSH_ERR ? REASON_FLUSHED : reason,
        .opcode = IBV_WC_RECV,
        .packet = packet,
    };
    rc->responder.receive = 0;
    rc->host->operations->received(rc->host, receive, &arrival);
}

static void stop(struct rc *rc)
{
    rc->failed = true;
    rc->requester.deadline = NANOS_NEVER;
    patience_stop(&rc->requester.patience);
    rc->requester.rnr_waiting = false;
}

void fail_requester(struct rc *rc, enum ibv_wc_status status, enum reason reason)
{
    stop(rc);
    retire_failed(&rc->requester.queue, rc->host, status, reason);
    fail_receive(rc, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED, 0);
    rc->host->operations->failed(rc->host, false);
}

void fail_responder(struct rc *rc, enum ibv_wc_status status, enum reason reason, const struct packet *packet)
{
    stop(rc);
    fail_receive(rc, status, reason, packet);
    retire_all(&rc->requester.queue, rc->host);
    rc->host->operations->failed(rc->host, false);
}
