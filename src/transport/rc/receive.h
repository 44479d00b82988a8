/* rc_receive, inlined for callers where each packet counts. */
#pragma once

#include "base/likely.h"
#include "transport/bth.h"
#include "transport/rc/completer.h"
#include "transport/rc/responder.h"

/* Does what rc_receive does. */
static inline void receive_packet(struct rc *rc, const struct packet *packet, nanos now)
{
    enum reason reason = bth_check(&rc->settings, rc->settings.service, rc->receiving, rc->failed, packet);
    if (unlikely(reason != REASON_NONE))
        rc->owner->operations->dropped(rc->owner, packet, reason);
    else if (op_find(packet->opcode)->flags & OP_RESPONSE)
        completer_receive(rc, packet, now);
    else
        responder_receive(rc, packet);
}
