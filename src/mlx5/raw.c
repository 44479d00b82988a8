#include "mlx5/raw.h"

#include "mlx5/queues/form.h"
#include "transport/request.h"
#include "verbs/send/operations.h"
#include "verbs/send/qp_ex.h"
#include "wire/guarded.h"

/* Copies the form. False: it can't be read, or has no length. */
static bool read_form(const void *wqe, struct form *form)
{
    form->ring = 0;
    form->at = FORM_UNIT;
    if (!guarded_copy(form->bytes, wqe, FORM_UNIT))
        return false;
    form->length = form_length(form->bytes);
    return form->length && guarded_copy(form->bytes, wqe, form->length);
}

void raw_build(struct qp *qp, const void *wqe)
{
    const uint32_t shown = OPCODES_MESSAGE; /* of these the completion says that they came so */
    struct form form;
    int opcode = read_form(wqe, &form) ? form_opcode(&form) : -1;
    if (opcode < 0 || qp->traits & QP_DATAGRAM)
        return qp_ex_spoil(qp, REASON_RAW_WQE);
    form.sge_most = qp->cap.max_send_sge;
    struct send_wqe *work = qp_ex_begin(&qp->extended, (enum ibv_wr_opcode)opcode);
    if (!work)
        return;
    work->flags = 0; /* the form has them, and wr_flags are not asked */
    if (!form_fill(qp, &form, work, (uint32_t)opcode))
        return qp_ex_spoil(qp, REASON_RAW_WQE);
    if (shown & OPCODE_BIT((uint32_t)opcode))
        work->opcode |= WORK_IN_FORM;
}
