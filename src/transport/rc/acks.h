/* The ACKs that the responder owes. */
#pragma once

#include "transport/rc/rc.h"
#include "wire/psn.h"

/* Owes an ACK up to this PSN; an ACK for a later PSN absorbs it. */
void responses_acknowledge(struct rc *, uint32_t psn);

/* Owes an unrequested ACK up to this PSN, the last that was taken. */
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

/* Notes that the ACK that was due has left. */
static inline void responses_acknowledged(struct responder *responder)
{
    responder->ack_due = false;
    responder->ack_late = responder->ack_late && psn_distance(responder->late_psn, responder->ack_psn) > 0;
}
