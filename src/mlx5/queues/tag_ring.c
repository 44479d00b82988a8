#include "mlx5/queues/tag_ring.h"

#include <stdlib.h>

#include "verbs/kinds/srq_tags.h"
#include "wire/bytes.h"

struct tag_places {
    uint32_t count;
    uint16_t next;      /* the place of the next buffer that is added */
    uint32_t handles[]; /* of the buffer that has the place; 0: none had it */
};

struct tag_places *tag_places_make(uint32_t tags)
{
    enum { PLACES_MOST = 1 << 16 };
    uint32_t count = tags + 1 < PLACES_MOST ? tags + 1 : PLACES_MOST;
    struct tag_places *places = calloc(1, sizeof *places + count * sizeof *places->handles);
    if (places)
        places->count = count;
    return places;
}

/* The operation's part of the form, which follows the first unit. */
enum {
    OPERATION = FORM_UNIT,
    FLAGS = OPERATION + 1,
    PLACE = OPERATION + 2,
    HANDLED = OPERATION + 6,
    TAG = OPERATION + 16,
    MASK = OPERATION + 24,
    BUFFER = OPERATION + 32,
    SHORTEST = BUFFER,
    LONGEST = BUFFER + FORM_UNIT,
};

enum { ADD = 1, REMOVE = 2, NOTHING = 0 };

/* An operation that asks for no entry has none, though it fails: programs remove buffers that a message may have
 * matched meanwhile. */
static bool execute(struct srq *srq, struct ibv_ops_wr *wr, const struct form *form)
{
    enum { WANTS_ENTRY = 0x80, REPORTS = 0x40 };
    uint8_t flags = form->bytes[FLAGS];
    wr->flags = (flags & WANTS_ENTRY ? IBV_OPS_SIGNALED : 0) | (flags & REPORTS ? IBV_OPS_TM_SYNC : 0);
    wr->tm.unexpected_cnt = bytes_get16(form->bytes + HANDLED);
    return srq_tags_execute(srq, wr) == REASON_NONE;
}

/* A buffer of no bytes has the key that ends a list, or no pointer. */
static bool add_buffer(struct srq *srq, struct tag_places *places, const struct form *form)
{
    enum { END_KEY = 0x100 };
    const uint8_t *at = form->bytes + BUFFER;
    struct ibv_sge buffer = {bytes_get64(at + 8), bytes_get32(at), bytes_get32(at + 4)};
    uint16_t place = places->next, next = bytes_get16(form->bytes + PLACE);
    bool empty = form->length < LONGEST || buffer.lkey == END_KEY;
    struct ibv_ops_wr wr = {.wr_id = place, .opcode = IBV_WR_TAG_ADD};
    wr.tm.add.recv_wr_id = place;
    wr.tm.add.sg_list = &buffer;
    wr.tm.add.num_sge = empty ? 0 : 1;
    wr.tm.add.tag = bytes_get64(form->bytes + TAG);
    wr.tm.add.mask = bytes_get64(form->bytes + MASK);
    if (place >= places->count || next >= places->count || !execute(srq, &wr, form))
        return false;
    places->handles[place] = wr.tm.handle;
    places->next = next;
    return true;
}

static bool remove_buffer(struct srq *srq, struct tag_places *places, const struct form *form)
{
    uint16_t place = bytes_get16(form->bytes + PLACE);
    struct ibv_ops_wr wr = {.wr_id = place, .opcode = IBV_WR_TAG_DEL};
    if (place >= places->count)
        return false;
    wr.tm.handle = places->handles[place];
    return execute(srq, &wr, form);
}

bool tag_ring_operate(struct srq *srq, struct tag_places *places, const struct form *form)
{
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC};
    if (form->length < SHORTEST)
        return false;
    switch (form->bytes[OPERATION] >> 4) {
    case ADD:
        return add_buffer(srq, places, form);
    case REMOVE:
        return remove_buffer(srq, places, form);
    case NOTHING:
        return execute(srq, &wr, form);
    default:
        return false;
    }
}
