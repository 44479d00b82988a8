#include <stdio.h>

#include "wire/bytes.h"
#include "wire/op.h"
#include "wire/wire.h"

struct line {
    char *at;
    size_t left; /* with the place of the NUL; 1 once the line is full */
};

static void advance(struct line *line, int written)
{
    size_t room = line->left - 1;
    size_t used = written < 0 ? 0 : (size_t)written;
    if (used > room)
        used = room;
    line->at += used;
    line->left -= used;
}

static void put_word(struct line *line, const char *word)
{
    advance(line, snprintf(line->at, line->left, "%s", word));
}

static void put_number(struct line *line, const char *label, uint64_t value)
{
    advance(line, snprintf(line->at, line->left, " %s %llu", label, (unsigned long long)value));
}

static void put_hex(struct line *line, const char *label, uint64_t value)
{
    advance(line, snprintf(line->at, line->left, " %s 0x%llx", label, (unsigned long long)value));
}

/* IBA 9.7.5.2: three bits of kind, five of value. */
static void put_syndrome(struct line *line, uint8_t syndrome)
{
    static const char *const naks[] = {"nak sequence", "nak invalid request", "nak remote access",
                                       "nak remote operation", "nak invalid rd request"};
    unsigned kind = syndrome >> 5, value = syndrome & 31;
    if (kind == 0)
        put_number(line, "ack credits", value);
    else if (kind == 1)
        put_number(line, "rnr timer", value);
    else if (kind == 3 && value < sizeof(naks) / sizeof(*naks)) {
        put_word(line, " ");
        put_word(line, naks[value]);
    } else
        put_hex(line, "syndrome", syndrome);
}

static void put_bth(struct line *line, const struct packet *packet)
{
    put_hex(line, "qp", packet->destination);
    put_number(line, "psn", packet->psn);
    if (packet->pkey != 0xffff)
        put_hex(line, "pkey", packet->pkey);
    if (packet->solicited)
        put_word(line, " solicited");
    if (packet->ack_requested)
        put_word(line, " ack");
    if (packet->forward_congestion)
        put_word(line, " fecn");
    if (packet->backward_congestion)
        put_word(line, " becn");
}

static void put_target(struct line *line, const struct packet *packet, uint32_t flags)
{
    if (flags & OP_XRCETH)
        put_hex(line, "srq", packet->srq);
    if (flags & OP_DETH) {
        put_hex(line, "qkey", packet->qkey);
        put_hex(line, "from", packet->source);
    }
    if (flags & (OP_RETH | OP_ATOMICETH)) {
        put_hex(line, "address", packet->address);
        put_hex(line, "rkey", packet->rkey);
    }
    if (flags & OP_RETH)
        put_number(line, "length", packet->length);
    if (flags & OP_ATOMICETH) {
        put_hex(line, "value", packet->swap_or_add);
        put_hex(line, "compare", packet->compare);
    }
}

static void put_rest(struct line *line, const struct packet *packet, uint32_t flags)
{
    if (flags & OP_AETH) {
        put_syndrome(line, packet->syndrome);
        put_number(line, "msn", packet->msn);
    }
    if (flags & OP_ATOMICACKETH)
        put_hex(line, "original", packet->original);
    if (flags & OP_IMMDT)
        put_hex(line, "immediate", bytes_get32((const uint8_t *)&packet->immediate));
    if (flags & OP_IETH)
        put_hex(line, "invalidate", packet->invalidate_key);
    if (flags & OP_PAYLOAD)
        advance(line, snprintf(line->at, line->left, " %lu bytes", (unsigned long)packet->payload.length));
}

char *wire_describe(const struct packet *packet, char *to, size_t size)
{
    if (size == 0)
        return to;
    struct line line = {to, size};
    const struct op *op = op_find(packet->opcode);
    *to = 0;
    if (!op) {
        put_word(&line, "unknown");
        put_hex(&line, "opcode", packet->opcode);
        return to;
    }
    put_word(&line, op->name);
    put_bth(&line, packet);
    put_target(&line, packet, op->flags);
    put_rest(&line, packet, op->flags);
    return to;
}
