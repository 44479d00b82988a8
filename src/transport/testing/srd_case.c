#include "transport/testing/srd_case.h"

#include <string.h>

#include "base/container.h"

int desk_open(void **state)
{
    *state = desk_make(7);
    return 0;
}

int desk_close(void **state)
{
    struct desk *desk = *state;
    uint64_t wrong = desk->wrong;
    if (wrong)
        print_error("%s\n", desk->what);
    desk_free(desk);
    return wrong != 0;
}

struct srd *desk_engine(struct desk *desk, unsigned node)
{
    return &desk->nodes[node].engine.srd;
}

void desk_run(struct desk *desk)
{
    do {
        for (unsigned node = 0; node < DESK_NODES; node++)
            desk_transmit(desk, node);
    } while (desk_deliver(desk));
}

static nanos desk_deadline(const struct desk *desk)
{
    nanos next = NANOS_NEVER;
    for (unsigned node = 0; node < DESK_NODES; node++) {
        nanos deadline = engine_deadline(&desk->nodes[node].engine);
        next = deadline < next ? deadline : next;
    }
    return next;
}

void desk_pass(struct desk *desk, nanos time)
{
    nanos end = desk->now + time;
    for (desk_run(desk); desk_deadline(desk) <= end; desk_run(desk))
        desk_wait(desk);
    desk->now = end;
}

void desk_meet(struct desk *desk, unsigned from, unsigned to)
{
    desk_post(desk, from, to, IBV_WR_RDMA_WRITE, 1);
    desk_run(desk);
}

struct desk_copy *desk_copy(struct desk *desk, enum operation operation, bool lost)
{
    static struct desk_copy copies[4];
    static unsigned used;
    struct desk_copy *copy = &copies[used++ % 4];
    for (unsigned i = 0; i < DESK_FLYING; i++) {
        struct desk_packet *flying = &desk->flying[i];
        if (!flying->flies || op_operation(flying->packet.opcode) != operation)
            continue;
        *copy = (struct desk_copy){.packet = flying->packet};
        memcpy(copy->bytes, flying->bytes, sizeof copy->bytes);
        if (lost)
            desk_land(desk, flying);
        return copy;
    }
    fail_msg("no packet of operation %d flies", operation);
    return NULL;
}

void desk_put(struct desk *desk, unsigned node, struct desk_copy *copy)
{
    copy->piece = (struct iovec){copy->bytes, copy->packet.payload.length};
    copy->packet.payload.pieces = &copy->piece;
    copy->packet.payload.count = copy->packet.payload.length > 0;
    engine_receive(&desk->nodes[node].engine, &copy->packet, desk->now);
}

void desk_answer(struct desk *desk, unsigned node, const struct desk_copy *request, enum srd_status status)
{
    struct desk_copy forged = {.packet = {.pkey = 0xffff, .source = request->packet.destination}};
    forged.packet.opcode = op_code(SERVICE_SRD, OPERATION_ACKNOWLEDGE);
    forged.packet.srd = request->packet.srd;
    forged.packet.srd.floor = status;
    desk_put(desk, node, &forged);
}

bool desk_send_one(struct desk *desk, unsigned node, struct packet *out)
{
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    struct engine_target target;
    return engine_next_message(&desk->nodes[node].engine, &target) &&
           engine_transmit(&desk->nodes[node].engine, out, pieces, desk->now);
}

struct srd_flow *desk_flow(struct desk *desk, unsigned from, unsigned to)
{
    const struct hash *hash = &desk_engine(desk, from)->requester->receivers;
    for (uint32_t bucket = 0; bucket <= hash->mask; bucket++)
        for (struct hash_entry *entry = hash->buckets[bucket]; entry; entry = entry->next) {
            struct srd_flow *flow = container_of(entry, struct srd_flow, by_receiver);
            if (flow->receiver == desk->nodes[to].number)
                return flow;
        }
    return NULL;
}
