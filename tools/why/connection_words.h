/* The sentences of an identifier's story. */
#pragma once

#include <jansson.h>

/* An array of sentences, the caller's, about an identifier and its other end, each as src/gsi/cm/cm_report.c reports
 * it; `peer` NULL: nothing is known of it. `processes`: reports of all live processes (reports_collect), which may
 * listen; NULL: no process was asked. Nothing in them is trusted. */
json_t *connection_sentences(const json_t *own, const json_t *peer, const json_t *processes);

/* The reason of an end's last event that has one, for example RDMA_CM_EVENT_REJECTED; 0: no event has a reason. */
unsigned connection_reason(const json_t *end);
