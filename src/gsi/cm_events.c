#include "gsi/cm_events.h"

#include "diag/log.h"
#include "events/lines.h"

static void log_message(enum event event, const struct cm_message *message)
{
    char line[1024];
    const struct event_line *said = &event_lines[event];
    if (log_wanted((enum log_level)said->level))
        log_write((enum log_level)said->level, "%s: %s", said->name, cm_describe(message, line, sizeof line));
}

void cm_note_sent(struct cm_counts *counts, const struct cm_message *message)
{
    counts->sent[message->attribute - CM_REQ]++;
    log_message(EVENT_MESSAGE_SENT, message);
}

void cm_note_received(struct cm_counts *counts, const struct cm_message *message)
{
    counts->received[message->attribute - CM_REQ]++;
    log_message(EVENT_MESSAGE_RECEIVED, message);
}

void cm_note_dropped(struct cm_counts *counts, enum reason reason, const char *text)
{
    counts->dropped[reason - REASON_CM_BACKLOG]++;
    log_reason((enum log_level)event_level(EVENT_MESSAGE_DROPPED), reason, "%s", text);
}

void cm_note_faults(struct cm_counts *counts, const struct fault *fault)
{
    for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
        counts->faults[kind] += fault_has(fault, kind);
}
