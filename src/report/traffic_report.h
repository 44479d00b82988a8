/* The counts, as parts of a report (report.h) and as a line in a file when the process ends. */
#ifndef REPORT_TRAFFIC_REPORT_H
#define REPORT_TRAFFIC_REPORT_H

#include <stdio.h>

#include "verbs/qp/qp.h"

/* ,"traffic":{...} of a queue pair, under its lock. */
void traffic_report_qp(FILE *, const struct qp *);

/* ,"traffic":[...] with an object for each device, and ,"strays":{...}: packets that were for no queue pair. Under
 * process->control and progress. */
void traffic_report(FILE *, const struct process *);

/* Appends the report of all devices to the file that SOFTVERBS_COUNTERS names, as one line. No thread sends or receives
 * any more. */
void traffic_report_end(struct process *);

#endif
