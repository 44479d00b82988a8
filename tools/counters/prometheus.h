/* Counts as Prometheus reads them, and the server for them. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Prometheus' text format 0.0.4: a family for each counter of events.def, with labels for process, program, device and
 * part; gauges for queue pairs by state, and whether a process answers. */
void prometheus_print(FILE *, const json_t *reports);

/* Answers GET /metrics on 127.0.0.1 until it is killed, with the counts of the processes in the directory then. The
 * port 0 is a free one. Its address is written to standard error. Returns the exit status after a sentence. */
int prometheus_serve(const char *directory, unsigned port);
