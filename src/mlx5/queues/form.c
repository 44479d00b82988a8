#include "mlx5/queues/form.h"

#include <arpa/inet.h>
#include <string.h>

#include "verbs/send/operations.h"
#include "wire/bytes.h"

enum { INLINE_BYTES = 1u << 31, NO_OPCODE = -1 };

bool form_copy(struct form *form, const uint8_t *blocks, uint32_t count, uint16_t taken, uint16_t posted)
{
    uint32_t size = count * FORM_BLOCK, begin = (taken & (count - 1)) * FORM_BLOCK;
    uint16_t most = (uint16_t)(posted - taken);
    memcpy(form->bytes, blocks + begin, FORM_BLOCK);
    form->length = form_length(form->bytes);
    form->at = FORM_UNIT;
    form->size = size;
    form->begin = begin;
    uint32_t length = form_blocks(form) * FORM_BLOCK;
    if (!length || length > size || length > (uint32_t)most * FORM_BLOCK)
        return false;
    for (uint32_t at = FORM_BLOCK; at < length; at += FORM_BLOCK)
        memcpy(form->bytes + at, blocks + (begin + at) % size, FORM_BLOCK);
    return true;
}

int form_opcode(const struct form *form)
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
        if (opcodes[i].adapters == form_operation(form))
            return opcodes[i].opcode;
    return NO_OPCODE;
}

const uint8_t *form_take(struct form *form)
{
    const uint8_t *unit = form->bytes + form->at;
    if (form->at + FORM_UNIT > form->length)
        return NULL;
    form->at += FORM_UNIT;
    return unit;
}

const uint8_t *form_take_receiver(struct form *form, bool *extended)
{
    enum { EXTENDED = 0x80, NUMBER_AT = 8, UNITS = 3 };
    const uint8_t *receiver = form_take(form);
    if (!receiver)
        return NULL;
    *extended = receiver[NUMBER_AT] & EXTENDED;
    for (unsigned i = 1; *extended && i < UNITS; i++)
        if (!form_take(form))
            return NULL;
    return receiver;
}

enum { FLAGS_AT = 11, FENCE = 0xe0, CQE = 0x0c, CQE_ALWAYS = 0x08, SOLICITED = 0x02 };

bool form_signals(const struct form *form)
{
    return (form->bytes[FLAGS_AT] & CQE) == CQE_ALWAYS;
}

static uint8_t flags_of(const struct form *form)
{
    uint8_t word = form->bytes[FLAGS_AT];
    return (uint8_t)((word & FENCE ? IBV_SEND_FENCE : 0) | (form_signals(form) ? IBV_SEND_SIGNALED : 0) |
                     (word & SOLICITED ? IBV_SEND_SOLICITED : 0));
}

/* Reads the units between the receiver and the data. */
static bool read_operands(const struct qp *qp, struct form *form, struct send_wqe *work, uint32_t opcode)
{
    bool atomic = OPCODES_ATOMIC & OPCODE_BIT(opcode), remote = atomic || !(OPCODES_UD & OPCODE_BIT(opcode));
    const uint8_t *unit;
    if (qp->traits & QP_NAMES_SRQ) {
        if (!(unit = form_take(form)))
            return false;
        work->remote_srq = bytes_get32(unit);
    }
    if (remote && opcode != IBV_WR_SEND_WITH_INV) {
        if (!(unit = form_take(form)))
            return false;
        work->remote_address = bytes_get64(unit);
        work->rkey = bytes_get32(unit + 8);
    }
    if (!atomic)
        return true;
    if (!(unit = form_take(form)))
        return false;
    bool swaps = opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    work->swap = swaps ? bytes_get64(unit) : 0;
    work->compare_or_add = bytes_get64(unit + (swaps ? 8 : 0));
    return true;
}

static bool put_element(const struct form *form, struct send_wqe *work, uint64_t address, uint32_t length, uint32_t key)
{
    if (work->sge_count == form->sge_most)
        return false;
    work->sge[work->sge_count++] = (struct ibv_sge){address, length, key};
    work->length = length > UINT32_MAX - work->length ? UINT32_MAX : work->length + length;
    return true;
}

/* Bytes of a ring stay there until the work ends, as a program writes over them only then. They may go on at the ring's
 * start. */
static bool refer_to_bytes(const struct form *form, struct send_wqe *work, uint32_t at, uint32_t length)
{
    uint32_t begin = (form->begin + at) % form->size, first = form->size - begin;
    if (first > length)
        first = length;
    if (first && !put_element(form, work, form->ring + begin, first, form->key))
        return false;
    return first == length || put_element(form, work, form->ring, length - first, form->key);
}

static bool copy_bytes(const struct qp *qp, const struct form *form, struct send_wqe *work, uint32_t at,
                       uint32_t length)
{
    if (work->sge_count || length > qp->cap.max_inline_data - work->length)
        return false;
    memcpy(work->inline_data + work->length, form->bytes + at, length);
    work->length += length;
    work->flags |= IBV_SEND_INLINE;
    return true;
}

/* Reads bytes that stand in the form, whose length is in the unit that was taken. */
static bool read_inline(const struct qp *qp, struct form *form, struct send_wqe *work, uint32_t length)
{
    enum { LENGTH = 4 };
    uint32_t unit = form->at - FORM_UNIT, most = form->length - unit - LENGTH;
    if (length > most || !(OPCODES_INLINE & OPCODE_BIT(form->opcode)))
        return false;
    form->at = unit + (LENGTH + length + FORM_UNIT - 1) / FORM_UNIT * FORM_UNIT;
    return form->ring ? refer_to_bytes(form, work, unit + LENGTH, length)
                      : copy_bytes(qp, form, work, unit + LENGTH, length);
}

/* Reads a pointer. No bytes mean 2^31, as the form can't have a pointer to nothing. */
static bool read_pointer(const struct form *form, struct send_wqe *work, const uint8_t *unit)
{
    uint32_t length = bytes_get32(unit);
    return !(work->flags & IBV_SEND_INLINE) &&
           put_element(form, work, bytes_get64(unit + 8), length ? length : INLINE_BYTES, bytes_get32(unit + 4));
}

static bool read_data(const struct qp *qp, struct form *form, struct send_wqe *work)
{
    const uint8_t *unit;
    while ((unit = form_take(form))) {
        uint32_t count = bytes_get32(unit);
        bool fine = count & INLINE_BYTES ? read_inline(qp, form, work, count & ~(uint32_t)INLINE_BYTES)
                                         : read_pointer(form, work, unit);
        if (!fine)
            return false;
    }
    return true;
}

bool form_fill(const struct qp *qp, struct form *form, struct send_wqe *work, uint32_t opcode)
{
    uint32_t immediate;
    form->opcode = opcode;
    memcpy(&immediate, form->bytes + 12, sizeof immediate);
    bool names_key = opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV;
    work->immediate = names_key ? ntohl(immediate) : immediate;
    work->flags |= flags_of(form);
    if (opcode == IBV_WR_LOCAL_INV)
        return true;
    return read_operands(qp, form, work, opcode) && read_data(qp, form, work);
}

/* Adapters skip an element of no bytes. */
int form_read_elements(const uint8_t *at, const uint8_t *end, struct ibv_sge *sge, int most)
{
    enum { ELEMENT = 16, END_KEY = 0x100 };
    int count = 0;
    for (; end - at >= ELEMENT && count < most; at += ELEMENT) {
        struct ibv_sge element = {bytes_get64(at + 8), bytes_get32(at), bytes_get32(at + 4)};
        if (element.lkey == END_KEY)
            break;
        if (element.length)
            sge[count++] = element;
    }
    return count;
}
