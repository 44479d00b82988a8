/* What `softverbs show connections` and `stat` are told of the connection manager. */
#ifndef GSI_CM_REPORT_H
#define GSI_CM_REPORT_H

#include <stdio.h>

#include "gsi/cm.h"
#include "process/process.h"

/* Writes members of the process's JSON object, with a comma before each: "connections", an array with an object for
 * each identifier, and "messages", how many of each kind were sent and received. Nothing in a process that
 * never had an event channel. Under process->progress. */
void cm_report(FILE *, struct process *);

/* The latter alone. Under cm->lock, or where nothing changes it any more. */
void cm_report_messages(FILE *, const struct cm *);

#endif
