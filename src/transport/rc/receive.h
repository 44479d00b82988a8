/* rc_receive, inlined for callers where each packet counts. */
#pragma once

#include "base/likely.h"
#include "transport/pkey.h"
#include "transport/rc/completer.h"
#include "transport/rc/responder.h"

static inline enum reason receive_check(const struct rc *rc, const struct packet *packet)
{
    if (!op_find(packet->opcode))
        return REASON_PACKET_OPCODE;
    if (op_service(packet->opcode) != rc->settings.service)
        return REASON_PACKET_SERVICE;
    if (!rc->receiving || rc->failed)
        return REASON_PACKET_QP_STATE;
    return pkey_matches(packet->pkey, rc->settings.pkey) ? REASON_NONE : REASON_PACKET_PKEY;
}

/* Does what rc_receive does. */
static inline void receive_packet(struct rc *rc, const struct packet *packet, nanos now)
{
    enum reason reason = receive_check(rc, packet);
    if (unlikely(reason != REASON_NONE))
        rc->owner->operations->dropped(rc->owner, packet, reason);
    else if (op_find(packet->opcode)->flags & OP_RESPONSE)
        completer_receive(rc, packet, now);
    else
        responder_receive(rc, packet);
}
