/* The sentences of an identifier's story. */
#ifndef TOOLS_CONNECTION_WORDS_H
#define TOOLS_CONNECTION_WORDS_H

#include <jansson.h>

/* An array of sentences, the caller's, of an identifier and of its other end, each as src/gsi/cm_report.c reports it;
 * `peer` NULL: nothing is known of it. `processes`: reports of all that live (reports_collect), which may listen; NULL:
 * none was asked. Nothing in them is trusted. */
json_t *connection_sentences(const json_t *own, const json_t *peer, const json_t *processes);

/* The reason of the last event of an end that was no good news, as of RDMA_CM_EVENT_REJECTED; 0: there was none. */
unsigned connection_reason(const json_t *end);

#endif
