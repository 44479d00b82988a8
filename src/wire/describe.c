#include <stdio.h>

#include "wire/bytes.h"
#include "wire/line.h"
#include "wire/op.h"
#include "wire/wire.h"

/* IBA 9.7.5.2: three bits are the kind, five the value. */
static void put_syndrome(struct line *line, uint8_t syndrome)
{
    static const char *const naks[] = {"nak sequence", "nak invalid request", "nak remote access",
                                       "nak remote operation", "nak invalid rd request"};
    unsigned kind = syndrome >> 5, value = syndrome & 31;
    if (kind == 0)
        line_number(line, "ack credits", value);
    else if (kind == 1)
        line_number(line, "rnr timer", value);
    else if (kind == 3 && value < sizeof(naks) / sizeof(*naks)) {
        line_word(line, " ");
        line_word(line, naks[value]);
    } else
        line_hex(line, "syndrome", syndrome);
}

static void put_bth(struct line *line, const struct packet *packet)
{
    line_hex(line, "qp", packet->destination);
    line_number(line, "psn", packet->psn);
    if (packet->pkey != 0xffff)
        line_hex(line, "pkey", packet->pkey);
    if (packet->solicited)
        line_word(line, " solicited");
    if (packet->ack_requested)
        line_word(line, " ack");
    if (packet->forward_congestion)
        line_word(line, " fecn");
    if (packet->backward_congestion)
        line_word(line, " becn");
}

/* Annex A19. */
static void put_feth(struct line *line, const struct packet *packet)
{
    if (packet->placement & 1)
        line_word(line, " global");
    if (packet->placement & 2)
        line_word(line, " persistent");
    if (!packet->placement || packet->placement & ~3)
        line_hex(line, "placement", packet->placement);
    if (packet->selectivity < 2)
        line_word(line, packet->selectivity ? " region" : " range");
    else
        line_number(line, "selectivity", packet->selectivity);
}

/* An answer is named by the number that it ends; without payload it has a status (wire/srd.h). */
static void put_srd(struct line *line, const struct packet *packet, uint32_t flags)
{
    bool status = flags & OP_RESPONSE && flags & OP_PAYLOAD && !packet->payload.length;
    line_hex(line, "epoch", packet->srd.epoch);
    line_hex(line, "cookie", packet->srd.cookie);
    line_number(line, "number", packet->srd.number);
    if (!(flags & OP_RESPONSE))
        line_number(line, "floor", packet->srd.floor);
    else if (status && op_operation(packet->opcode) == OPERATION_ACKNOWLEDGE)
        line_number(line, "status", packet->srd.floor);
}

static void put_dc(struct line *line, const struct packet *packet)
{
    line_hex(line, "key", packet->dc.key);
    line_number(line, "first_psn", packet->dc.psn);
    line_number(line, "turn", packet->dc.turn);
    line_number(line, op_operation(packet->opcode) == OPERATION_HELLO ? "segment" : "status", packet->dc.segment);
}

static void put_target(struct line *line, const struct packet *packet, uint32_t flags)
{
    if (flags & OP_XRCETH)
        line_hex(line, "srq", packet->srq);
    if (flags & OP_DETH) {
        line_hex(line, "qkey", packet->qkey);
        line_hex(line, "from", packet->source);
    }
    if (flags & OP_SRDETH)
        put_srd(line, packet, flags);
    if (flags & OP_DCETH)
        put_dc(line, packet);
    if (flags & OP_FETH)
        put_feth(line, packet);
    if (flags & (OP_RETH | OP_ATOMICETH)) {
        line_hex(line, "address", packet->address);
        line_hex(line, "rkey", packet->rkey);
    }
    if (flags & OP_RETH)
        line_number(line, "length", packet->length);
    if (flags & OP_ATOMICETH) {
        line_hex(line, "value", packet->swap_or_add);
        line_hex(line, "compare", packet->compare);
    }
}

static void put_rest(struct line *line, const struct packet *packet, uint32_t flags)
{
    if (flags & OP_AETH) {
        put_syndrome(line, packet->syndrome);
        line_number(line, "msn", packet->msn);
    }
    if (flags & OP_ATOMICACKETH)
        line_hex(line, "original", packet->original);
    if (flags & OP_IMMDT)
        line_hex(line, "immediate", bytes_get32((const uint8_t *)&packet->immediate));
    if (flags & OP_IETH)
        line_hex(line, "invalidate", packet->invalidate_key);
    if (flags & OP_PAYLOAD)
        line_advance(line, snprintf(line->at, line->left, " %lu bytes", (unsigned long)packet->payload.length));
}

char *wire_describe(const struct packet *packet, char *to, size_t size)
{
    if (size == 0)
        return to;
    struct line line = {to, size};
    const struct op *op = op_find(packet->opcode);
    *to = 0;
    if (!op) {
        line_word(&line, "unknown");
        line_hex(&line, "opcode", packet->opcode);
        return to;
    }
    line_word(&line, op->name);
    put_bth(&line, packet);
    put_target(&line, packet, op->flags);
    put_rest(&line, packet, op->flags);
    return to;
}
