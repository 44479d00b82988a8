#include "gsi/cm/cm_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "cm/identifier.h"
#include "diag/kept_story.h"
#include "diag/log.h"
#include "events/last_events.h"
#include "events/lines.h"
#include "gsi/cm/cm.h"
#include "gsi/cm/cm_reason.h"
#include "gsi/cm/cm_report.h"

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
    event_probe(message->local_id, EVENT_MESSAGE_SENT, message->attribute, 0);
    log_message(EVENT_MESSAGE_SENT, message);
}

void cm_note_received(struct cm_counts *counts, const struct cm_message *message)
{
    counts->received[message->attribute - CM_REQ]++;
    event_probe(message->remote_id, EVENT_MESSAGE_RECEIVED, message->attribute, 0);
    log_message(EVENT_MESSAGE_RECEIVED, message);
}

void cm_note_dropped(struct cm_counts *counts, enum reason reason, const char *text)
{
    counts->dropped[reason - REASON_CM_BACKLOG]++;
    event_probe(0, EVENT_MESSAGE_DROPPED, reason, 0);
    log_reason((enum log_level)event_level(EVENT_MESSAGE_DROPPED), reason, "%s", text);
}

void cm_note_unused(struct cm_counts *counts, enum reason reason, const struct identifier *identifier,
                    const struct cm_message *message)
{
    char text[128] = "for a program of librdmacm";
    size_t used = strlen(text);
    if (identifier)
        snprintf(text + used, sizeof text - used, ": identifier %u, in state %s, got a %s",
                 identifier_number(identifier), cm_report_state(identifier), cm_name(message->attribute));
    cm_note_dropped(counts, reason, text);
}

void cm_note_faults(struct cm_counts *counts, const struct fault *fault)
{
    for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
        counts->faults[kind] += fault_has(fault, kind);
}

/* --- events of identifiers */

static void keep_identifier(const struct cm *cm, const struct identifier *identifier, bool harmless)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = kept_story_may(harmless) ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    cm_report_ended(out, cm, identifier);
    if (!fclose(out))
        kept_story_add(text, size);
    free(text);
}

/* Returns true if an action of this end explains a failure of the other end. */
static bool explains_peer(enum event event, uint64_t b)
{
    return event == EVENT_CM_ABANDONED || (event == EVENT_CM_SENT && b); /* a REJ */
}

void cm_note_identifier(const struct cm *cm, struct identifier *identifier, enum event event, uint64_t a, uint64_t b)
{
    enum event_field kept = event_kept(event);
    bool is_heard = event_lines[event].a == EVENT_FIELD_HEARD;
    enum reason reason = kept == EVENT_FIELD_REASON ? cm_reason((enum cm_event_kind)a, (int)b) : REASON_NONE;
    uint64_t first = is_heard ? (uintptr_t)cm_event_name((enum cm_event_kind)a) : a;
    lock_assert_held(&cm->lock);
    if (event == EVENT_CM_ABANDONED && cm->ends) /* the program did not abandon it */
        return;
    if (kept == EVENT_FIELD_TIMES && last_events_again(identifier->told, event, first))
        return;
    event_probe((uint32_t)identifier->by_number.key, event, first, b);
    last_events_note(&identifier->told, event, kept == EVENT_FIELD_TIMES ? 1 : reason, first, b);
    if (reason)
        keep_identifier(cm, identifier, false);
    else if (explains_peer(event, b))
        keep_identifier(cm, identifier, true);
}

static bool waits(const struct identifier *identifier)
{
    return identifier->told && identifier->session && identifier->state == IDENTIFIER_CONNECT &&
           (identifier->account.queued || cm_report_is_between(identifier));
}

void cm_note_end(struct cm *cm)
{
    const struct hash *table = &cm->manager.identifiers;
    lock_assert_held(&cm->lock);
    cm->ends = true;
    for (uint32_t i = 0; i <= table->mask; i++)
        for (const struct hash_entry *entry = table->buckets[i]; entry; entry = entry->next) {
            const struct identifier *identifier = identifier_of(&cm->manager, entry);
            if (identifier && waits(identifier))
                keep_identifier(cm, identifier, true);
        }
}
