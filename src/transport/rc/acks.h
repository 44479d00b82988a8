/* The ACKs that the responder owes. */
#pragma once

#include "transport/rc/rc.h"

/* Owes an ACK up to this PSN, or up to the PSN of the ACK that is owed already if that is later. */
void responses_acknowledge(struct rc *, uint32_t psn);

/* Owes an unrequested ACK up to this PSN, the last one that was taken. */
static inline void responses_owe(struct rc *rc, uint32_t psn)
{
    struct responder *responder = &rc->responder;
    if (responder->ack_due) {
        responder->ack_psn = psn;
    } else {
        responder->late_psn = psn;
        responder->ack_late = !rc->settings.first_window;
    }
}

static inline void responses_acknowledge_late(struct rc *rc)
{
    if (!rc->responder.ack_late)
        return;
    rc->responder.ack_late = false;
    responses_acknowledge(rc, rc->responder.late_psn);
}
