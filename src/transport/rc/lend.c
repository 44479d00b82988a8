#include "transport/rc/lend.h"

#include "transport/rc/responses.h"
#include "transport/request.h"
#include "wire/psn.h"

bool rc_may_lend(const struct rc *rc)
{
    const struct responder *responder = &rc->responder;
    return rc->receiving && !rc->failed && responder->open == MESSAGE_CLOSED && !responder->receive &&
           !responses_due(rc);
}

struct engine_position rc_lend(struct rc *rc)
{
    struct responder *responder = &rc->responder;
    if (!responder->established && !rc->transmitting)
        rc->owner->operations->event(rc->owner, IBV_EVENT_COMM_EST);
    responder->established = true;
    return (struct engine_position){responder->expected_psn, responder->msn, responder->nak_sent};
}

void rc_take_over(struct rc *rc, const struct engine_position *position)
{
    struct responder *responder = &rc->responder;
    responder->expected_psn = position->expected_psn & PSN_MASK;
    responder->msn = position->msn;
    responder->nak_sent = position->nak_sent;
    responder->established = true;
}

void rc_responded(struct rc *rc, const struct packet *response)
{
    struct responder *responder = &rc->responder;
    bool is_ack = op_operation(response->opcode) == OPERATION_ACKNOWLEDGE;
    bool refuses = is_ack && syndrome_class(response->syndrome) != SYNDROME_CLASS_ACK;
    uint32_t next = refuses ? response->psn : psn_add(response->psn, 1);
    if (op_operation(response->opcode) != OPERATION_READ_RESPONSE_MIDDLE)
        responder->msn = response->msn;
    if (psn_distance(next, responder->expected_psn) > 0)
        responder->expected_psn = next;
}

void rc_reclaim(struct rc *rc)
{
    responses_nak(rc, SYNDROME_NAK_SEQUENCE, rc->responder.expected_psn);
}
