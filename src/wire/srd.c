#include "wire/srd.h"

#include "wire/op.h"

bool srd_refusal(const struct packet *request, struct packet *out)
{
    const struct op *op = op_find(request->opcode);
    if (!op || op_service(request->opcode) != SERVICE_SRD || op->flags & OP_RESPONSE)
        return false;
    *out = (struct packet){
        .opcode = op_code(SERVICE_SRD, OPERATION_ACKNOWLEDGE),
        .migrated = true,
        .pkey = request->pkey,
        .destination = request->source,
        .psn = request->psn,
        .source = request->destination,
        .srd = {request->srd.epoch, request->srd.cookie, request->srd.number, SRD_NO_QP},
    };
    return true;
}
