/* The sentences of an identifier's story. */
#pragma once

#include <jansson.h>

/* Returns an array of sentences about an identifier and its other end, each end as src/gsi/cm/cm_report.c writes it;
 * `peer` NULL: nothing is known of the other end. `processes`: reports of all live processes (reports_collect), which
 * may listen; NULL: no process was asked. The caller releases the array. Nothing in the JSON is trusted. */
json_t *connection_sentences(const json_t *own, const json_t *peer, const json_t *processes);

/* The reason of the last event of the end that has one (an RDMA_CM_EVENT_REJECTED has); 0: no event has a reason. */
unsigned connection_reason(const json_t *end);
