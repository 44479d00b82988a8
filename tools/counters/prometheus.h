/* Counts as Prometheus reads them, and the server for them. */
#ifndef TOOLS_COUNTERS_PROMETHEUS_H
#define TOOLS_COUNTERS_PROMETHEUS_H

#include <jansson.h>
#include <stdio.h>

/* Prometheus' text format 0.0.4: a family for each counter of events.def, with labels for process, program, device and
 * part; gauges for queue pairs by state, and whether a process answers. */
void prometheus_print(FILE *, const json_t *reports);

/* Answers GET /metrics on 127.0.0.1 until it is killed: of the processes in the directory, as they count then. The port
 * 0 is one that is free. Its address goes to standard error. The exit status, after a sentence. */
int prometheus_serve(const char *directory, unsigned port);

#endif
