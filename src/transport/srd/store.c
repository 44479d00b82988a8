#include "transport/srd/store.h"

#include "base/likely.h"
#include "transport/scatter.h"

/* Reports a message that is refused; returns the status that its sender gets. */
static cold uint8_t refuse_message(struct srd *srd, const struct packet *packet, enum reason reason, uint8_t status)
{
    struct engine_owner *owner = srd->common.owner;
    if (owner->operations->refused)
        owner->operations->refused(owner, packet, reason);
    return status;
}

/* RDMA needs an address handle of the responder for the requester (rdma-core commit b16324937). */
static bool knows_sender(struct srd *srd, const struct packet *packet)
{
    struct engine_owner *owner = srd->common.owner;
    return !owner->operations->knows || owner->operations->knows(owner, packet);
}

/* The same with a line of this end's log, of what nothing else logs. */
static cold uint8_t refuse_aloud(struct srd *srd, const struct packet *packet, enum reason reason, uint8_t status)
{
    srd->common.owner->operations->dropped(srd->common.owner, packet, reason);
    return refuse_message(srd, packet, reason, status);
}

static uint8_t refuse_stranger(struct srd *srd, const struct packet *packet)
{
    return refuse_aloud(srd, packet, REASON_SENDER_UNADDRESSED, SRD_NO_ADDRESS);
}

/* Finds the memory of a READ or WRITE; nothing for no bytes. */
static uint8_t find_memory(struct srd *srd, const struct packet *packet, uint32_t length, unsigned access,
                           struct iovec *memory)
{
    struct engine_owner *owner = srd->common.owner;
    if (!knows_sender(srd, packet))
        return refuse_stranger(srd, packet);
    *memory = (struct iovec){NULL, 0};
    enum reason reason =
        length ? owner->operations->remote_memory(owner, packet->rkey, packet->address, length, access, memory)
               : REASON_NONE;
    return reason ? refuse_message(srd, packet, reason, SRD_NO_ACCESS) : SRD_DONE;
}

static uint8_t write_data(struct srd *srd, const struct packet *packet)
{
    struct iovec memory;
    uint8_t status = find_memory(srd, packet, packet->payload.length, IBV_ACCESS_REMOTE_WRITE, &memory);
    if (status != SRD_DONE || !packet->payload.length)
        return status;
    if (payload_copy(&packet->payload, 0, &memory, 1))
        return SRD_DONE;
    return payload_can_land(&memory, 1) ? SRD_LOST : SRD_NO_ACCESS;
}

static uint8_t take_receive(struct srd *srd, const struct packet *packet, uint64_t least,
                            const struct recv_wqe **receive)
{
    *receive = srd->common.owner->operations->take_receive(srd->common.owner, packet, least);
    if (!*receive)
        return SRD_NO_RECEIVE;
    return *receive == &receive_too_short ? refuse_aloud(srd, packet, REASON_RECEIVE_TOO_SHORT, SRD_TOO_LONG)
                                          : SRD_DONE;
}

static void give_message(struct srd *srd, const struct recv_wqe *receive, const struct packet *packet, bool written)
{
    bool immediate = op_table[packet->opcode].flags & OP_IMMDT;
    const struct recv_cqe arrival = {
        .status = IBV_WC_SUCCESS,
        .opcode = written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
        .length = written ? packet->length : packet->payload.length,
        .flags = immediate ? IBV_WC_WITH_IMM : 0,
        .immediate_or_key = immediate ? packet->immediate : 0,
        .source = packet->source,
        .packet = packet,
    };
    srd->common.owner->operations->received(srd->common.owner, receive, &arrival);
}

/* The receive has an error of this end, and the queue pair goes on. EFA's answer to the sender is not known. */
static cold uint8_t fail_receive(struct srd *srd, const struct recv_wqe *receive, const struct packet *packet,
                                 enum reason reason)
{
    const struct recv_cqe arrival = {
        .status = IBV_WC_LOC_PROT_ERR, .reason = reason, .opcode = IBV_WC_RECV, .packet = packet};
    refuse_message(srd, packet, reason, SRD_TOO_LONG);
    srd->common.owner->operations->received(srd->common.owner, receive, &arrival);
    return SRD_TOO_LONG;
}

static uint8_t receive_message(struct srd *srd, const struct packet *packet)
{
    struct engine_owner *owner = srd->common.owner;
    const struct recv_wqe *receive;
    uint8_t status = take_receive(srd, packet, packet->payload.length, &receive);
    if (status != SRD_DONE)
        return status;
    enum reason reason = scatter(owner, receive, 0, &packet->payload);
    if (reason == REASON_PACKET_PULL) {
        owner->operations->return_receive(owner, receive);
        return SRD_LOST;
    }
    if (reason)
        return fail_receive(srd, receive, packet, reason);
    give_message(srd, receive, packet, false);
    return SRD_DONE;
}

/* The receive of the immediate is there before the data is stored. */
static uint8_t write_with_immediate(struct srd *srd, const struct packet *packet)
{
    struct engine_owner *owner = srd->common.owner;
    const struct recv_wqe *receive = NULL;
    bool unsolicited = srd->common.settings.options & SRD_UNSOLICITED;
    if (!knows_sender(srd, packet))
        return refuse_stranger(srd, packet);
    uint8_t status = unsolicited ? SRD_DONE : take_receive(srd, packet, 0, &receive);
    if (status != SRD_DONE)
        return status;
    status = write_data(srd, packet);
    if (status == SRD_DONE)
        give_message(srd, receive, packet, true);
    else if (receive)
        owner->operations->return_receive(owner, receive);
    return status;
}

uint32_t store_longest(const struct srd *srd)
{
    const struct engine_settings *settings = &srd->common.settings;
    return settings->max_message > settings->segment ? settings->max_message : settings->segment;
}

uint8_t srd_store_execute(struct srd *srd, const struct packet *packet)
{
    const uint32_t flags = op_table[packet->opcode].flags;
    struct iovec memory;
    if (flags & OP_SEND)
        return receive_message(srd, packet);
    if (flags & OP_READ && packet->length > store_longest(srd))
        return SRD_TOO_LONG; /* the response is one packet */
    if (flags & OP_READ)
        return find_memory(srd, packet, packet->length, IBV_ACCESS_REMOTE_READ, &memory);
    return flags & OP_IMMDT ? write_with_immediate(srd, packet) : write_data(srd, packet);
}
