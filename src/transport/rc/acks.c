#include "transport/rc/acks.h"

#include "wire/psn.h"

void responses_acknowledge(struct rc *rc, uint32_t psn)
{
    struct responder *responder = &rc->responder;
    if (!responder->ack_due || psn_distance(psn, responder->ack_psn) > 0)
        responder->ack_psn = psn;
    responder->ack_due = true;
}
