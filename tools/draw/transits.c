#include "draw/transits.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "wire/wire.h"

/* A record, and the key that records of the same packet have in common. */
struct sameness {
    uint64_t key;
    uint32_t record;
};

/* The key leaves the marks of congestion out, as packets get them on the way. */
static uint64_t key_of(const struct entry *record, uint32_t flow)
{
    uint8_t bytes[WIRE_HEADERS_MAX];
    struct packet packet = record->packet;
    uint64_t hash = 0xcbf29ce484222325u ^ flow;
    packet.forward_congestion = packet.backward_congestion = false;
    unsigned length = wire_encode(&packet, bytes);
    return (random_mix(hash, bytes, length) ^ packet.payload.length) * 0x9e3779b97f4a7c15u;
}

static int compare_samenesses(const void *a, const void *b)
{
    const struct sameness *one = a, *other = b;
    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    return one->record < other->record ? -1 : one->record > other->record;
}

static bool is_lost_by_fault(const struct records *records, const struct entry *record)
{
    const char *note = records->strings.list[record->note];
    return record->direction == PCAP_SENT && strstr(note, "fault:") && strstr(note, "dropped");
}

static bool takes_part(const struct records *records, const struct entry *record)
{
    return record->known && !record->verdict && (unsigned)record->direction - 1 < 2 &&
           !is_lost_by_fault(records, record);
}

static size_t list_samenesses(const struct records *records, const struct flows *flows, struct sameness *list)
{
    size_t count = 0;
    for (uint32_t i = 0; i < records->count; i++)
        if (takes_part(records, &records->list[i]))
            list[count++] = (struct sameness){key_of(&records->list[i], flows->of[i]), i};
    qsort(list, count, sizeof *list, compare_samenesses);
    return count;
}

/* Pairs equal packets in their order: as many arrived as were sent. */
static void join_in_turn(const struct records *records, const struct sameness *group, size_t count, uint32_t *arrival)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (records->list[group[i].record].direction != PCAP_SENT)
            continue;
        while (at < count && records->list[group[at].record].direction != PCAP_RECEIVED)
            at++;
        if (at < count)
            arrival[group[i].record] = group[at++].record;
    }
}

/* Fewer packets arrived than were sent: each arrival is joined with the last packet that was sent before it. */
static void join_backwards(const struct records *records, const struct sameness *group, size_t count, uint32_t *arrival)
{
    for (size_t i = count; i-- > 0;) {
        size_t sent = i;
        if (records->list[group[i].record].direction != PCAP_RECEIVED)
            continue;
        while (sent-- > 0)
            if (records->list[group[sent].record].direction == PCAP_SENT &&
                arrival[group[sent].record] == LOOKUP_NONE) {
                arrival[group[sent].record] = group[i].record;
                break;
            }
    }
}

static void join_group(const struct records *records, const struct sameness *group, size_t count, uint32_t *arrival)
{
    size_t sent = 0;
    for (size_t i = 0; i < count; i++)
        sent += records->list[group[i].record].direction == PCAP_SENT;
    if (count - sent >= sent || count > 64) /* many equal packets have no PSN: any order will do */
        join_in_turn(records, group, count, arrival);
    else
        join_backwards(records, group, count, arrival);
}

/* Finds, for each record of a packet sent, the record of its arrival, or LOOKUP_NONE. */
static void find_arrivals(const struct records *records, const struct flows *flows, uint32_t *arrival)
{
    struct sameness *list = list_make(records->count, sizeof *list);
    size_t count = list_samenesses(records, flows, list), end;
    memset(arrival, 0xff, records->count * sizeof *arrival);
    for (size_t i = 0; i < count; i = end) {
        for (end = i + 1; end < count && list[end].key == list[i].key; end++)
            ;
        join_group(records, list + i, end - i, arrival);
    }
    free(list);
}

static void add_transit(struct ladder *ladder, uint32_t flow, uint32_t sent, uint32_t received)
{
    *LIST_ADD(ladder->list, ladder->count, ladder->room) = (struct transit){
        .sent = sent, .received = received, .flow = flow, .related = LOOKUP_NONE, .message = LOOKUP_NONE};
}

/* Sets `before` of each transit. Transits are in the order of their first entries. */
static void count_before(struct ladder *ladder, size_t entries)
{
    uint32_t *begun = list_make(entries + 1, sizeof *begun); /* transits that began before each entry */
    for (size_t i = 0; i < ladder->count; i++) {
        const struct transit *transit = &ladder->list[i];
        begun[(transit->sent != LOOKUP_NONE ? transit->sent : transit->received) + 1]++;
    }
    for (size_t i = 1; i <= entries; i++)
        begun[i] += begun[i - 1];
    for (size_t i = 0; i < ladder->count; i++)
        if (ladder->list[i].sent != LOOKUP_NONE && ladder->list[i].received != LOOKUP_NONE)
            ladder->list[i].before = begun[ladder->list[i].received];
    free(begun);
}

void transits_find(struct ladder *ladder, const struct records *records, const struct flows *flows)
{
    uint32_t *arrival = list_make(records->count, sizeof *arrival);
    bool *arrived = list_make(records->count, sizeof *arrived);
    find_arrivals(records, flows, arrival);
    for (size_t i = 0; i < records->count; i++)
        if (arrival[i] != LOOKUP_NONE)
            arrived[arrival[i]] = true;
    for (uint32_t i = 0; i < records->count; i++)
        if (records->list[i].direction == PCAP_RECEIVED) {
            if (!arrived[i])
                add_transit(ladder, flows->of[i], LOOKUP_NONE, i);
        } else {
            add_transit(ladder, flows->of[i], i, arrival[i]);
        }
    count_before(ladder, records->count);
    free(arrival);
    free(arrived);
}
