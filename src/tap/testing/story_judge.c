/* The comparison at the end of a run, and when a reader reads. */
#include "tap/testing/story_world.h"

#include <string.h>

enum { LEAST_DELAY = 5 * NANOS_MICROSECOND };

bool story_is_fault(uint32_t event)
{
    return event == EVENT_FRAME_LOST || (event >= EVENT_FAULT_DROP && event < EVENT_FAULT_DROP + FAULT_KINDS);
}

void story_look(struct end *end)
{
    traffic_settle(&end->flow);
    story_totals.looks++;
    for (uint32_t back = 1; back <= STORY_RECORDS; back++) {
        static const struct story_record none;
        const struct story_record *record = story_record(end->flow.story, traffic_written(&end->flow), back);
        const struct story_record *wanted = back <= end->seen.count ? &end->seen.list[end->seen.count - back] : &none;
        if (memcmp(record, wanted, sizeof *record))
            story_complain(end, "record %u of %u in the ring is another one", back, end->seen.count);
    }
}

/* --- the end of a run */

static bool has_kind(const struct flight *flight, enum fault_kind kind)
{
    return flight->kinds >> kind & 1;
}

/* `behind`: the arrival of the last packet that left before this one in its stream, and kept the order. */
static const char *judge_flight(const struct flight *flight, nanos behind)
{
    unsigned passes = flight->whole + flight->damaged;
    bool late = has_kind(flight, FAULT_DELAY) || has_kind(flight, FAULT_REORDER);
    if (has_kind(flight, FAULT_DROP) != !passes)
        return "lost, and the record says otherwise";
    if (has_kind(flight, FAULT_CORRUPT) != (flight->damaged != 0))
        return "corrupted, and the record says otherwise";
    if (flight->lost != !flight->whole)
        return "not lost once as its record says";
    if (passes && has_kind(flight, FAULT_DUPLICATE) != (passes == 2))
        return "doubled, and the record says otherwise";
    if (flight->overtaken && !has_kind(flight, FAULT_REORDER))
        return "overtaken without a record";
    if (passes && has_kind(flight, FAULT_DELAY) && flight->came < flight->left + LEAST_DELAY)
        return "not delayed";
    if (passes && late && !flight->held)
        return "not late";
    if (passes && flight->held && !late && behind < flight->left)
        return "late without a record";
    return NULL;
}

static void judge_flights(struct end *end)
{
    nanos behind[2] = {0, 0};
    for (uint32_t i = 0; i < end->flown && end->flown <= FLIGHTS; i++) {
        const struct flight *flight = &end->flights[i];
        const char *wrong = judge_flight(flight, behind[flight->answer]);
        if (wrong)
            story_complain(end, "frame %llu, psn %u, is %s", (unsigned long long)flight->number, flight->psn, wrong);
        if (!has_kind(flight, FAULT_REORDER) && flight->came > behind[flight->answer])
            behind[flight->answer] = flight->came;
        story_totals.flights++;
        story_totals.lost += flight->lost;
        for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
            story_totals.kinds[kind] += has_kind(flight, kind);
    }
}

static void complain_of_record(struct end *end, const struct story_record *seen, const struct story_record *told)
{
    static const struct story_record none;
    const struct story_record *wanted = told ? told : &none;
    story_complain(end, "the story has event %u at %lld: %llu %llu %u, the simulator event %u at %lld: %llu %llu %u",
                   seen->event, (long long)seen->time, (unsigned long long)seen->a, (unsigned long long)seen->b,
                   seen->more, wanted->event, (long long)wanted->time, (unsigned long long)wanted->a,
                   (unsigned long long)wanted->b, wanted->more);
}

static void judge_records(struct end *end)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < end->seen.count; i++) {
        if (story_is_fault(end->seen.list[i].event))
            continue;
        if (told == end->told.count || memcmp(&end->told.list[told], &end->seen.list[i], sizeof *end->seen.list))
            complain_of_record(end, &end->seen.list[i], told < end->told.count ? &end->told.list[told] : NULL);
        told += told < end->told.count;
    }
    if (told != end->told.count)
        story_complain(end, "%u records of %u are missing", end->told.count - told, end->told.count);
    story_totals.records += end->seen.count;
}

static void sum_counts(struct end *end)
{
    for (unsigned event = EVENTS_OF_PACKETS; event < EVENTS_BEFORE_REASONS; event++) {
        uint64_t records = 0;
        for (uint32_t i = 0; i < end->seen.count; i++)
            records += end->seen.list[i].event == event;
        if (event_kept((enum event)event) != EVENT_FIELD_LEFT &&
            records != counts_number(&end->flow.counts, (enum event)event))
            story_complain(end, "%llu records of event %u, which is counted %llu times", (unsigned long long)records,
                           event, (unsigned long long)counts_number(&end->flow.counts, (enum event)event));
    }
}

void story_judge(struct end *end)
{
    judge_flights(end);
    judge_records(end);
    sum_counts(end);
}
