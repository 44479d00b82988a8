/* The processes of a directory as they were at one look: their reports (report/reports.h), read. */
#pragma once

#include "events/events.h"
#include "facts/read.h"

/* A process and its objects. A process that does not answer has no objects. Refused objects are left out. */
struct seen_process {
    struct facts_process own;
    struct facts_qp *qps;
    struct facts_cq *cqs;
    struct facts_srq *srqs;
    struct facts_identifier *identifiers;
    size_t qp_count, cq_count, srq_count, identifier_count;
};

struct seen {
    struct seen_process *processes;
    size_t count;
};

/* Reads the list of reports, which must live until seen_end frees the result. Without memory the result is empty. */
struct seen seen_begin(const json_t *reports);
void seen_end(struct seen *);

/* NULL: no object has this number or handle, or the process is NULL. */
const struct seen_process *seen_find(const struct seen *, uint64_t pid);
const struct facts_qp *seen_qp(const struct seen_process *, uint64_t number);
const struct facts_cq *seen_cq(const struct seen_process *, uint64_t handle);
const struct facts_srq *seen_srq(const struct seen_process *, uint64_t handle);
const struct facts_identifier *seen_identifier(const struct seen_process *, uint64_t number);

/* The counter of a sum of events.def; the counter of an event is the event's number. */
#define SEEN_SUM(name) (EVENT_KINDS + EVENT_SUM_##name)

/* The count in this `traffic`, or among the members of a story, with its parts added up. 0: not known. */
uint64_t seen_count(const struct fact_inner *traffic, unsigned counter);

/* The count in this `traffic`, with its parts added up; NAN: not known. */
double seen_counted_in(const json_t *traffic, unsigned counter);

/* The count of all devices of a process, and of packets that were for no queue pair; NAN: the process did not answer,
 * or its report lacks the count, or the process is NULL. */
double seen_counted(const struct seen_process *, unsigned counter);

/* The count of one part in this `traffic`; 0: not known. */
uint64_t seen_part(const struct fact_inner *traffic, enum event event);

/* The event's most frequent reason, of those that `counts` admits, in this `traffic`, and how often it was; 0: never.
 */
uint64_t seen_main_reason(const struct fact_inner *traffic, enum event event, bool (*counts)(unsigned reason),
                          unsigned *reason);
