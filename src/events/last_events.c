#include "events/last_events.h"

#include <stdlib.h>

#include "base/likely.h"
#include "base/read_clock.h"
#include "events/lines.h"

cold void last_events_note(struct last_events **last, enum event event, uint32_t more, uint64_t a, uint64_t b)
{
    if (!*last)
        *last = (struct last_events *)calloc(1, sizeof **last);
    if (*last)
        story_put((*last)->records, sizeof(*last)->records, &(*last)->at, read_clock(CLOCK_MONOTONIC), event, more, a,
                  b);
}

bool last_events_again(struct last_events *last, enum event event, uint64_t a)
{
    struct story_record *newest =
        last ? &last->records[(last->at / sizeof *newest - 1) % LAST_EVENTS] : (struct story_record *)NULL;
    if (!newest || !newest->time || newest->event != (uint32_t)event || newest->a != a)
        return false;
    newest->time = read_clock(CLOCK_MONOTONIC);
    newest->more++;
    return true;
}

static void report_field(FILE *out, enum event_field field, uint64_t value)
{
    if (field == EVENT_FIELD_NONE || field == EVENT_FIELD_LEFT)
        return;
    fputs(",\"", out);
    for (const char *byte = event_field_word(field); *byte; byte++)
        fputc(*byte == ' ' ? '_' : *byte, out);
    if (event_field_is_word(field))
        fprintf(out, "\":\"%s\"", (const char *)(uintptr_t)value);
    else if (event_field_is_signed(field))
        fprintf(out, "\":%lld", (long long)value);
    else
        fprintf(out, "\":%llu", (unsigned long long)value);
}

static void report_record(FILE *out, const struct story_record *record, int64_t epoch)
{
    const struct event_line *line = &event_lines[record->event];
    fprintf(out, "{\"time\":%lld,\"event\":\"%s\"", (long long)record->time + epoch, line->name);
    report_field(out, line->a, record->a);
    report_field(out, line->b, record->b);
    report_field(out, event_kept((enum event)record->event), record->more);
    fputs("}", out);
}

void last_events_report_ring(FILE *out, const struct story_record *records, uint32_t count, uint32_t at, int64_t epoch)
{
    const char *separator = "";
    fputs("[", out);
    for (uint32_t back = count; back; back--) {
        const struct story_record *record = &records[(at / sizeof *records - back) % count];
        if (!record->time || record->event >= EVENT_KINDS)
            continue;
        fputs(separator, out);
        report_record(out, record, epoch);
        separator = ",";
    }
    fputs("]", out);
}

void last_events_report(FILE *out, const struct last_events *last, int64_t epoch)
{
    if (last)
        last_events_report_ring(out, last->records, LAST_EVENTS, last->at, epoch);
    else
        fputs("[]", out);
}

void last_events_write(FILE *out, const void *told)
{
    const struct last_events_told *these = (const struct last_events_told *)told;
    last_events_report(out, these->last, these->epoch);
}

void last_events_write_counts(FILE *out, const void *counts)
{
    const char *separator = "";
    for (unsigned event = EVENTS_OF_PACKETS; event < EVENTS_BEFORE_REASONS; event++)
        if (!*event_lines[event].part) {
            fprintf(out, "%s\"%s\":%llu", separator, event_lines[event].key,
                    (unsigned long long)counts_number((const struct counts *)counts, (enum event)event));
            separator = ",";
        }
}
