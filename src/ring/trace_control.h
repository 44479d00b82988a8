/* Traces of a live process: `softverbs trace` asks for one, and the layer around the calls that it is about comes. */
#ifndef RING_TRACE_CONTROL_H
#define RING_TRACE_CONTROL_H

#include <stddef.h>
#include <stdio.h>

/* Puts the layer around the calls that are named, with commas, or takes it off: NULL. NULL, or what is wrong with the
 * names, in static storage. Written before any trace begins; NULL: the process has no layers, as the command itself. */
extern const char *(*trace_layer_change)(const char *calls);

/* Lines of calls go to the ring in the file from now on; `calls` as above, "": all. It replaces a trace that runs.
 * NULL, or why not, in static storage. One thread at a time. */
const char *trace_begin(const char *path, const char *calls);
void trace_end(void);

/* Answers "begin PATH CALLS" or "end" with a JSON object: {"traced": true or false}, or "wrong", a sentence. Likewise.
 */
void trace_answer(const char *request, FILE *out);

#endif
