#include "transport/rc/duplicates.h"

#include "transport/rc/responses.h"
#include "transport/request.h"
#include "wire/psn.h"

/* A repeated READ may ask for the rest only, or for any part that begins at a packet of the first answer; never for
 * other memory (IBA 9.4.4). */
static bool is_part_of(const struct responder_resource *saved, const struct packet *packet, uint32_t start)
{
    uint64_t offset = (uint64_t)start * saved->segment;
    return saved->operation == OPERATION_READ_REQUEST && packet->rkey == saved->rkey &&
           packet->address == saved->address + offset && offset <= saved->length &&
           packet->length <= saved->length - offset;
}

static enum reason read_again(struct rc *rc, struct responder_resource *saved, const struct packet *packet)
{
    uint32_t start = psn_add(packet->psn, -saved->first_psn);
    if (!is_part_of(saved, packet, start))
        return REASON_PACKET_SEQUENCE;
    uint32_t stop = start + request_packets(packet->length, saved->segment);
    responses_retransmit(rc, saved, start, stop, start * saved->segment + packet->length);
    return REASON_NONE;
}

static enum reason respond_again(struct rc *rc, const struct packet *packet)
{
    struct responder_resource *saved = responses_find(rc, packet->psn);
    if (!saved)
        return REASON_PACKET_PSN;
    if (op_operation(packet->opcode) == OPERATION_READ_REQUEST)
        return read_again(rc, saved, packet);
    if (saved->operation != op_operation(packet->opcode))
        return REASON_PACKET_SEQUENCE;
    responses_retransmit(rc, saved, 0, 1, 0);
    return REASON_NONE;
}

void duplicates_receive(struct rc *rc, const struct packet *packet)
{
    enum reason reason = REASON_NONE;
    if (op_find(packet->opcode)->flags & (OP_READ | OP_FLUSH | OP_ATOMIC | OP_ATOMIC_WRITE))
        reason = respond_again(rc, packet);
    else
        responses_acknowledge(rc, responses_acknowledgeable(rc, packet->psn));
    if (reason)
        rc->owner->operations->dropped(rc->owner, packet, reason);
}
