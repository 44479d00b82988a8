/* Counts as Prometheus reads them, and the server for them. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Prometheus' text format 0.0.4: a family for each counter of events.def, with labels for process, program, device and
 * part; gauges for queue pairs by state, and whether a process answers. */
void prometheus_print(FILE *, const json_t *reports);

/* Answers each GET /metrics on 127.0.0.1 with the present counts of the processes in the directory, until it is killed.
 * Port 0: any free port. The address is written to standard error. Returns an exit status, after a message, only if it
 * can't listen. */
int prometheus_serve(const char *directory, unsigned port);
