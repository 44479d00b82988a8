/* Request packets as a function of (work, index). */
#pragma once

#include "transport/gather.h"
#include "wire/op.h"

enum { MESSAGE_CLOSED = 0xff }; /* no message is open; in place of the operation that began one */

/* In work->opcode of a SEND or WRITE that the program has given in the form of an adapter: the engines do it like all
 * others, and its completion says so. */
enum { WORK_IN_FORM = 1 << 5 };

enum { ATOMIC_LENGTH = 8 }; /* bytes that an atomic, or an atomic WRITE, changes */

enum request_class {
    REQUEST_UNKNOWN,
    REQUEST_SEND,
    REQUEST_WRITE,
    REQUEST_READ,
    REQUEST_FLUSH,
    REQUEST_ATOMIC,
    REQUEST_ATOMIC_WRITE,
    REQUEST_LOCAL, /* sends no packet */
};

struct request_kind {
    uint8_t class;                     /* enum request_class */
    uint8_t first, middle, last, only; /* enum operation */
};

extern const struct request_kind request_kinds[256]; /* by enum ibv_wr_opcode */

static inline const struct request_kind *request_kind(const struct send_wqe *work)
{
    return &request_kinds[work->opcode];
}

/* Returns true if the answer is a separate packet, which an ACK can't replace: READ, flush, atomics. */
static inline bool request_awaits_response(const struct send_wqe *work)
{
    enum request_class class = request_kind(work)->class;
    return class >= REQUEST_READ && class <= REQUEST_ATOMIC_WRITE;
}

/* The access to its own memory that the work needs: the answer to a READ or an atomic is stored there. */
static inline unsigned request_local_access(const struct send_wqe *work)
{
    enum request_class class = request_kind(work)->class;
    return class == REQUEST_READ || class == REQUEST_ATOMIC ? IBV_ACCESS_LOCAL_WRITE : 0;
}

/* The number of packets of a message of this length: at least one. */
uint32_t request_packets(uint32_t length, uint32_t segment);

/* The index after the last packet of a READ's response that one request asks for, if packet `index` is the first. */
uint32_t request_stride_end(const struct send_wqe *, uint32_t index);

/* The operation of a message's packet `index`. */
enum operation request_operation(const struct request_kind *, uint32_t index, bool last);

/* Writes the work's remote address, keys, length and immediate; the operation decides which of them are sent. */
static inline void request_operands(struct packet *out, const struct send_wqe *work)
{
    out->address = work->remote_address;
    out->rkey = work->rkey;
    out->length = work->length;
    out->immediate = out->invalidate_key = work->immediate;
    out->srq = work->remote_srq;
}

/* Makes the bytes [offset, offset + length) of the message the packet's payload. Not REASON_NONE: they can't be
 * read. */
static inline enum reason request_payload(struct engine_owner *owner, const struct send_wqe *work, uint32_t offset,
                                          uint32_t length, struct packet *out, struct iovec *pieces)
{
    uint32_t count = 0; /* a local variable, so that *out may stay in registers */
    if (!length)
        return REASON_NONE;
    enum reason reason = gather(owner, work, 0, offset, length, pieces, &count);
    out->payload.length = length;
    out->payload.pieces = pieces;
    out->payload.count = count;
    return reason;
}

/* The status with which work ends that could not be sent for this reason. */
enum ibv_wc_status request_status(enum reason);
