#include "events/last_events.h"

#include <stdlib.h>

#include "base/likely.h"
#include "events/lines.h"

cold void last_events_note(struct last_events **last, nanos now, enum event event, uint32_t more, uint64_t a,
                           uint64_t b)
{
    if (!*last)
        *last = (struct last_events *)calloc(1, sizeof **last);
    if (*last)
        story_put((*last)->records, sizeof(*last)->records, &(*last)->at, now, event, more, a, b);
}

static void report_field(FILE *out, enum event_field field, uint64_t value)
{
    if (field == EVENT_FIELD_NONE || field == EVENT_FIELD_LEFT)
        return;
    fputs(",\"", out);
    for (const char *byte = event_field_word(field); *byte; byte++)
        fputc(*byte == ' ' ? '_' : *byte, out);
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
