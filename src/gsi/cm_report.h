/* The connection manager's reports for `softverbs show connections` and `stat`. */
#ifndef GSI_CM_REPORT_H
#define GSI_CM_REPORT_H

#include <stdio.h>

#include "facts/facts.h"
#include "gsi/cm.h"
#include "process/process.h"

/* Adds the facts of librdmacm: its identifiers, and how many messages of each kind were sent and received. Nothing in a
 * process that never had an event channel. Under process->progress, also while they are written. */
void cm_report(struct facts_process *, struct process *);

/* Returns true if its connection is being made or resolved, so that a message is waited for. It has a session. Under
 * cm->lock. */
bool cm_report_is_between(const struct identifier *);

/* A line of JSON with the last events of one, as what a process leaves (diag/kept_story.h). Under cm->lock. */
void cm_report_ended(FILE *, const struct cm *, const struct identifier *);

/* The member "id" with the last events of the identifier of this number, or of the one whose peer has this
 * communication ID; nothing where there is none. Under process->progress. */
void cm_report_identifier(FILE *, struct process *, uint32_t number);
void cm_report_partner(FILE *, struct process *, uint32_t communication_id);
void cm_report_communication(FILE *, struct process *, uint32_t communication_id); /* the one that has it itself */

/* Writes the messages alone. Under cm->lock, or where nothing changes it any more. */
void cm_report_messages(FILE *, const struct cm *);

#endif
