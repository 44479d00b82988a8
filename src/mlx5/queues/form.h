/* Work requests in the adapter's form: units of 16 bytes, big-endian. The first names the operation and how many units
 * there are. Then come the receiver, a remote address, the operands of an atomic, and the data: pointers, or bytes in
 * their place. All is read from a copy, which the program can't change any more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs/qp/qp.h"

enum { FORM_UNIT = 16, FORM_UNITS_MOST = 63, FORM_BLOCK = 64, FORM_BYTES = FORM_UNIT * FORM_UNITS_MOST };

/* Operations that are no ibv_wr_opcode. */
enum { FORM_NOP = 0x00, FORM_TAGS = 0x28 };

struct form {
    uint8_t bytes[FORM_BYTES + FORM_BLOCK];
    uint32_t length, at; /* the length, and where the next part begins */
    uint32_t opcode;     /* enum ibv_wr_opcode */

    /* Of a ring; without one, bytes that stand in the form are copied into the work. */
    uint64_t ring;     /* the address of the ring, whose bytes are read in their place when they are sent; or 0 */
    uint32_t size;     /* its bytes */
    uint32_t begin;    /* where in it the form begins */
    uint32_t key;      /* the key of its memory */
    uint32_t sge_most; /* the most elements of work */
};

/* The operation of the adapter. */
static inline uint8_t form_operation(const struct form *form)
{
    return form->bytes[3];
}

/* The length that the first unit says; 0: it says none. */
static inline uint32_t form_length(const uint8_t *first)
{
    enum { UNITS = 0x3f };
    return (first[7] & UNITS) * FORM_UNIT;
}

/* The blocks that the form takes. */
static inline uint32_t form_blocks(const struct form *form)
{
    return (form->length + FORM_BLOCK - 1) / FORM_BLOCK;
}

/* Copies the form at index `taken` out of a ring, a power of two of blocks, at whose end it may go on at the start.
 * False: it has no length, or more blocks than the ring or than were posted up to index `posted`. */
bool form_copy(struct form *, const uint8_t *blocks, uint32_t count, uint16_t taken, uint16_t posted);

/* The enum ibv_wr_opcode of the operation; -1: it has none. */
int form_opcode(const struct form *);

/* Returns true if the end of the work is to be signalled. */
bool form_signals(const struct form *);

/* The next unit; NULL: there is no more. */
const uint8_t *form_take(struct form *);

/* Takes the receiver of a datagram, or of dynamically connected work: 48 bytes if it is extended, otherwise 16. NULL:
 * there are fewer. */
const uint8_t *form_take_receiver(struct form *, bool *extended);

/* Fills work of this opcode, except its id. False: the form is malformed, or has parts that are not offered. */
bool form_fill(const struct qp *, struct form *, struct send_wqe *, uint32_t opcode);

/* Reads the elements of a receive from its bytes, up to one that ends the list, and at most so many. Returns their
 * number. */
int form_read_elements(const uint8_t *at, const uint8_t *end, struct ibv_sge *, int most);
