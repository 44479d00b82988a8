/* The form: units of 16 bytes, big-endian. The first names the operation and how many units there are. Then
 * come a remote address, the operands of an atomic, and the data: pointers, or bytes in their place. */
#include "mlx5/raw.h"

#include <arpa/inet.h>
#include <string.h>

#include "transport/request.h"
#include "verbs/send/operations.h"
#include "verbs/send/qp_ex.h"
#include "wire/bytes.h"
#include "wire/guarded.h"

enum { UNIT = 16, UNITS_MOST = 63, INLINE_BYTES = 1u << 31, NO_OPCODE = -1 };

/* A copy of the form, which the program can't change any more. */
struct form {
    uint8_t bytes[UNITS_MOST * UNIT];
    uint32_t length, at; /* the length, and where the next part begins */
};

static int opcode_of(uint8_t adapters)
{
    static const struct {
        uint8_t adapters, opcode;
    } opcodes[] = {
        {0x01, IBV_WR_SEND_WITH_INV},       {0x08, IBV_WR_RDMA_WRITE},
        {0x09, IBV_WR_RDMA_WRITE_WITH_IMM}, {0x0a, IBV_WR_SEND},
        {0x0b, IBV_WR_SEND_WITH_IMM},       {0x10, IBV_WR_RDMA_READ},
        {0x11, IBV_WR_ATOMIC_CMP_AND_SWP},  {0x12, IBV_WR_ATOMIC_FETCH_AND_ADD},
        {0x1b, IBV_WR_LOCAL_INV},
    };
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (opcodes[i].adapters == adapters)
            return opcodes[i].opcode;
    return NO_OPCODE;
}

/* Copies the form. False: it can't be read, or has no length. */
static bool read_form(const void *wqe, struct form *form)
{
    if (!guarded_copy(form->bytes, wqe, UNIT))
        return false;
    form->length = (form->bytes[7] & 0x3f) * UNIT;
    form->at = UNIT;
    return form->length >= UNIT && guarded_copy(form->bytes, wqe, form->length);
}

/* The next unit; NULL: there is no more. */
static const uint8_t *take_unit(struct form *form)
{
    const uint8_t *unit = form->bytes + form->at;
    if (form->at + UNIT > form->length)
        return NULL;
    form->at += UNIT;
    return unit;
}

static uint8_t flags_of(const struct form *form)
{
    enum { FENCE = 0xe0, CQE = 0x0c, CQE_ALWAYS = 0x08, SOLICITED = 0x02 };
    uint8_t word = form->bytes[11];
    return (uint8_t)((word & FENCE ? IBV_SEND_FENCE : 0) | ((word & CQE) == CQE_ALWAYS ? IBV_SEND_SIGNALED : 0) |
                     (word & SOLICITED ? IBV_SEND_SOLICITED : 0));
}

/* Reads the units between the first one and the data. */
static bool read_operands(const struct qp *qp, struct form *form, struct send_wqe *work, uint32_t opcode)
{
    bool atomic = OPCODES_ATOMIC & OPCODE_BIT(opcode), remote = atomic || !(OPCODES_UD & OPCODE_BIT(opcode));
    const uint8_t *unit;
    if (qp->traits & QP_NAMES_SRQ) {
        if (!(unit = take_unit(form)))
            return false;
        work->remote_srq = bytes_get32(unit);
    }
    if (remote && opcode != IBV_WR_SEND_WITH_INV) {
        if (!(unit = take_unit(form)))
            return false;
        work->remote_address = bytes_get64(unit);
        work->rkey = bytes_get32(unit + 8);
    }
    if (!atomic)
        return true;
    if (!(unit = take_unit(form)))
        return false;
    bool swaps = opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    work->swap = swaps ? bytes_get64(unit) : 0;
    work->compare_or_add = bytes_get64(unit + (swaps ? 8 : 0));
    return true;
}

/* Reads bytes that stand in the form. */
static bool read_inline(const struct qp *qp, struct form *form, struct send_wqe *work, uint32_t length)
{
    uint32_t begin = form->at - UNIT + 4, whole = (4 + length + UNIT - 1) / UNIT * UNIT;
    if (work->sge_count || length > qp->cap.max_inline_data - work->length || form->at - UNIT + whole > form->length)
        return false;
    memcpy(work->inline_data + work->length, form->bytes + begin, length);
    form->at += whole - UNIT;
    work->length += length;
    work->flags |= IBV_SEND_INLINE;
    return true;
}

/* Reads a pointer. No bytes mean 2^31, as the form can't have a pointer to nothing. */
static bool read_pointer(const struct qp *qp, struct send_wqe *work, const uint8_t *unit)
{
    uint32_t length = bytes_get32(unit);
    if (work->flags & IBV_SEND_INLINE || work->sge_count == qp->cap.max_send_sge)
        return false;
    struct ibv_sge *sge = &work->sge[work->sge_count++];
    *sge = (struct ibv_sge){bytes_get64(unit + 8), length ? length : INLINE_BYTES, bytes_get32(unit + 4)};
    work->length = sge->length > UINT32_MAX - work->length ? UINT32_MAX : work->length + sge->length;
    return true;
}

/* Either all data stand in the form, or none: a work request here has only one of both. */
static bool read_data(const struct qp *qp, struct form *form, struct send_wqe *work)
{
    const uint8_t *unit;
    while ((unit = take_unit(form))) {
        uint32_t count = bytes_get32(unit);
        bool fine = count & INLINE_BYTES ? read_inline(qp, form, work, count & ~(uint32_t)INLINE_BYTES)
                                         : read_pointer(qp, work, unit);
        if (!fine)
            return false;
    }
    return !(work->flags & IBV_SEND_INLINE) || OPCODES_INLINE & OPCODE_BIT(work->opcode);
}

static bool read_all(struct qp *qp, struct form *form, struct send_wqe *work)
{
    uint32_t opcode = work->opcode, immediate;
    memcpy(&immediate, form->bytes + 12, sizeof immediate);
    bool names_key = opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV;
    work->immediate = names_key ? ntohl(immediate) : immediate;
    work->flags = flags_of(form);
    if (opcode == IBV_WR_LOCAL_INV)
        return true;
    return read_operands(qp, form, work, opcode) && read_data(qp, form, work);
}

void raw_build(struct qp *qp, const void *wqe)
{
    const uint32_t shown = OPCODES_MESSAGE; /* of these the completion says that they came so */
    struct form form;
    int opcode = read_form(wqe, &form) ? opcode_of(form.bytes[3]) : NO_OPCODE;
    if (opcode == NO_OPCODE || qp->traits & QP_DATAGRAM)
        return qp_ex_spoil(qp, REASON_RAW_WQE);
    struct send_wqe *work = qp_ex_begin(&qp->extended, (enum ibv_wr_opcode)opcode);
    if (!work)
        return;
    if (!read_all(qp, &form, work))
        return qp_ex_spoil(qp, REASON_RAW_WQE);
    if (shown & OPCODE_BIT((uint32_t)opcode))
        work->opcode |= WORK_IN_FORM;
}
