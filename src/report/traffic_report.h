/* The counts, as parts of a report (report.h) and as a line in a file when the process ends. */
#pragma once

#include <stdio.h>

#include "facts/facts.h"

struct process;

/* Writes the counts of a struct qp as an object of JSON. Under its lock. */
void traffic_write_qp(FILE *, const void *qp);

/* Adds the counts as facts: by device, of packets for no queue pair, and of calls. Returns the source of these facts,
 * which the caller frees; NULL: memory is lacking, and nothing was added. Under process->control and progress. */
struct traffic_told *traffic_report_begin(struct facts_process *, const struct process *);

/* Appends the report of all devices to the file that SOFTVERBS_COUNTERS names, as one line, and forgets the counts of
 * calls. No thread sends or receives any more. */
void traffic_report_end(struct process *);
