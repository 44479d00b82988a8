/* The events of the connection manager's messages, which are counted and logged as events/events.def says. All
 * functions are called under cm->lock. */
#pragma once

#include "diag/diag.h"
#include "events/events.h"
#include "tap/fault.h"
#include "wire/cm/cm.h"

enum { CM_MESSAGES = CM_APR - CM_REQ + 1, CM_DROPS = REASON_CM_UNSENT - REASON_CM_BACKLOG + 1 };

struct cm;
struct identifier;

struct cm_counts {
    uint64_t sent[CM_MESSAGES], received[CM_MESSAGES]; /* by attribute, from CM_REQ on */
    uint64_t dropped[CM_DROPS];                        /* messages of no use, by reason, from REASON_CM_BACKLOG on */
    uint64_t faults[FAULT_KINDS];
};

void cm_note_sent(struct cm_counts *, const struct cm_message *);
void cm_note_received(struct cm_counts *, const struct cm_message *);

/* Notes a message of no use; `text` describes it for the log. */
void cm_note_dropped(struct cm_counts *, enum reason, const char *text);

/* Notes a message of no use for this identifier; NULL: for no identifier, and then the message may be NULL, too. */
void cm_note_unused(struct cm_counts *, enum reason, const struct identifier *, const struct cm_message *);

/* Notes one of an identifier's last events, for which tools ask; does what `happened` of struct manager_operations
 * does. After a failure the events are kept in a file, for the time after the process has ended. */
void cm_note_identifier(const struct cm *, struct identifier *, enum event, uint64_t a, uint64_t b);

/* Keeps, at the end of the process, the events of identifiers that still wait for their peers or their program. */
void cm_note_end(struct cm *);

/* Notes the faults of a message that is sent. */
void cm_note_faults(struct cm_counts *, const struct fault *);
