#include "draw/flows.h"

#include <stdlib.h>

#include "wire/op.h"

static uint64_t join(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static uint32_t receiver_of(const struct entry *record)
{
    return record->known || record->happening ? record->packet.destination : LOOKUP_NONE;
}

static uint32_t add_flow(struct flows *flows, const struct entry *record)
{
    *LIST_ADD(flows->list, flows->count, flows->room) = (struct flow){.source = record->source,
                                                                      .destination = record->destination,
                                                                      .from = record->from,
                                                                      .qp = receiver_of(record),
                                                                      .peer = LOOKUP_NONE,
                                                                      .best = LOOKUP_NONE};
    return (uint32_t)flows->count - 1;
}

static uint32_t flow_of(struct flows *flows, struct lookup *known, const struct entry *record)
{
    uint32_t *index =
        lookup_find(known, join(record->source, record->destination), join(record->from, receiver_of(record)));
    if (*index == LOOKUP_NONE)
        *index = add_flow(flows, record);
    return *index;
}

static bool is_response(const struct entry *record)
{
    return record->known && op_table[record->packet.opcode].flags & OP_RESPONSE;
}

static void point_to(struct flow *flow, uint32_t other, uint32_t votes)
{
    if (votes > flow->votes) {
        flow->votes = votes;
        flow->best = other;
    }
}

/* Counts a response in flow `index` as a vote for the flow that has the request with its PSN. */
static void count_answer(struct flows *flows, struct lookup *requests, struct lookup *votes, const struct entry *record,
                         uint32_t index)
{
    uint32_t asked = *lookup_find(requests, join(record->destination, record->source), record->packet.psn);
    if (asked == LOOKUP_NONE)
        return;
    uint32_t *count = lookup_find(votes, index, asked);
    *count = *count == LOOKUP_NONE ? 1 : *count + 1;
    point_to(&flows->list[index], asked, *count);
    point_to(&flows->list[asked], index, *count);
}

static void note_length(struct flow *flow, const struct entry *record)
{
    const uint32_t carries = OP_SEND | OP_WRITE | OP_RESPONSE;
    uint32_t flags = record->known ? op_table[record->packet.opcode].flags : 0;
    if (flags & carries && flags & OP_PAYLOAD && !(flags & OP_END) && record->packet.payload.length > flow->mtu)
        flow->mtu = record->packet.payload.length;
}

static void find_flows(struct flows *flows, const struct records *records)
{
    struct lookup known = {0}, requests = {0}, votes = {0};
    for (size_t i = 0; i < records->count; i++) {
        const struct entry *record = &records->list[i];
        uint32_t index = flows->of[i] = flow_of(flows, &known, record);
        flows->list[index].heard |= record->direction == PCAP_RECEIVED;
        note_length(&flows->list[index], record);
        if (is_response(record))
            count_answer(flows, &requests, &votes, record, index);
        else if (record->known)
            *lookup_find(&requests, join(record->source, record->destination), record->packet.psn) = index;
    }
    lookup_free(&known);
    lookup_free(&requests);
    lookup_free(&votes);
}

/* Fills in, by two addresses, the only flow between them whose sender is not known; LOOKUP_NONE - 1: several. */
static void fill_lonely(struct lookup *lonely, const struct flows *flows)
{
    const uint32_t several = LOOKUP_NONE - 1;
    for (size_t i = 0; i < flows->count; i++) {
        const struct flow *flow = &flows->list[i];
        if (flow->from != LOOKUP_NONE || flow->best != LOOKUP_NONE || flow->qp == LOOKUP_NONE)
            continue;
        uint32_t *one = lookup_find(lonely, flow->source, flow->destination);
        *one = *one == LOOKUP_NONE ? (uint32_t)i : several;
    }
}

/* No answer identifies the sender of a UC packet: if each direction between two addresses has only one such flow, the
 * two are a pair. */
static void marry_lonely(struct flows *flows)
{
    struct lookup lonely = {0};
    fill_lonely(&lonely, flows);
    for (size_t i = 0; i < flows->count; i++) {
        struct flow *flow = &flows->list[i];
        if (*lookup_find(&lonely, flow->source, flow->destination) != i)
            continue;
        uint32_t back = *lookup_find(&lonely, flow->destination, flow->source);
        if (back < flows->count && back != i)
            flow->best = back;
    }
    lookup_free(&lonely);
}

static void name_senders(struct flows *flows)
{
    for (size_t i = 0; i < flows->count; i++) {
        struct flow *flow = &flows->list[i];
        if (flow->from == LOOKUP_NONE && flow->best != LOOKUP_NONE)
            flow->from = flows->list[flow->best].qp;
    }
}

static uint32_t add_pair(struct flows *flows, const struct flow *flow)
{
    *LIST_ADD(flows->pairs, flows->pair_count, flows->pair_room) =
        (struct pair){.address = {flow->source, flow->destination}, .qp = {flow->from, flow->qp}};
    return (uint32_t)flows->pair_count - 1;
}

static bool begins_at_first(const struct pair *pair, const struct flow *flow)
{
    return pair->address[0] == flow->source && pair->qp[0] == flow->from && pair->address[1] == flow->destination &&
           pair->qp[1] == flow->qp;
}

static void find_pairs(struct flows *flows)
{
    struct lookup ends = {0};
    for (uint32_t i = 0; i < flows->count; i++) {
        struct flow *flow = &flows->list[i];
        uint64_t here = join(flow->source, flow->from), there = join(flow->destination, flow->qp);
        uint32_t *pair = lookup_find(&ends, here < there ? here : there, here < there ? there : here);
        if (*pair == LOOKUP_NONE)
            *pair = add_pair(flows, flow);
        flow->pair = *pair;
        flow->side = !begins_at_first(&flows->pairs[*pair], flow);
    }
    lookup_free(&ends);
}

/* A queue pair that is connected with itself answers in the same flow. */
static bool is_to_itself(const struct flow *flow)
{
    return flow->source == flow->destination && flow->from == flow->qp && flow->qp != LOOKUP_NONE;
}

static void find_peers(struct flows *flows)
{
    struct lookup sides = {0};
    for (uint32_t i = 0; i < flows->count; i++)
        *lookup_find(&sides, flows->list[i].pair, flows->list[i].side) = i;
    for (uint32_t i = 0; i < flows->count; i++)
        flows->list[i].peer =
            is_to_itself(&flows->list[i]) ? i : *lookup_find(&sides, flows->list[i].pair, !flows->list[i].side);
    lookup_free(&sides);
}

/* A flow begins at the process that captured its packets as sent; the other end captured them as received. */
static void name_processes(struct flows *flows, const struct records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        const struct flow *flow = &flows->list[flows->of[i]];
        enum pcap_direction direction = records->list[i].direction;
        if (direction == PCAP_SENT)
            flows->pairs[flow->pair].process[flow->side] = records->list[i].process;
        else if (direction == PCAP_RECEIVED)
            flows->pairs[flow->pair].process[!flow->side] = records->list[i].process;
    }
}

void flows_find(struct flows *flows, const struct records *records)
{
    *flows = (struct flows){.of = list_make(records->count, sizeof *flows->of)};
    find_flows(flows, records);
    marry_lonely(flows);
    name_senders(flows);
    find_pairs(flows);
    find_peers(flows);
    name_processes(flows, records);
}

void flows_free(struct flows *flows)
{
    free(flows->list);
    free(flows->of);
    free(flows->pairs);
}
