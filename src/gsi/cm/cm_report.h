/* The connection manager's reports for `softverbs show connections` and `stat`. */
#pragma once

#include <stdio.h>

#include "facts/facts.h"
#include "gsi/cm/cm.h"
#include "verbs/object/process_objects.h"

/* Adds the facts of librdmacm: its identifiers, and how many messages of each kind were sent and received. Adds nothing
 * in a process that never had an event channel. Under process->progress, also while the facts are written. */
void cm_report(struct facts_process *, struct process *);

/* Returns the state of the identifier or its connection, as tools name it. Under cm->lock. */
const char *cm_report_state(const struct identifier *);

/* Returns true if the session of the identifier, which must have one, is being connected or resolved. Under
 * cm->lock. */
bool cm_report_is_between(const struct identifier *);

/* Writes the identifier's last events as a line of JSON, which is kept after the process ends (diag/kept_story.h).
 * Under cm->lock. */
void cm_report_ended(FILE *, const struct cm *, const struct identifier *);

/* Write the member "id" with the last events of the identifier that has this number; whose peer has this communication
 * ID; that has this communication ID itself. Write nothing if there is no such identifier. Under process->progress. */
void cm_report_identifier(FILE *, struct process *, uint32_t number);
void cm_report_partner(FILE *, struct process *, uint32_t communication_id);
void cm_report_communication(FILE *, struct process *, uint32_t communication_id);

/* Writes the counts of messages alone. Under cm->lock, or when they no longer change. */
void cm_report_messages(FILE *, const struct cm *);
