/* Traces of a live process: `softverbs trace` asks for one, and a layer around the traced calls is added. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* How a request for a trace begins. */
#define TRACE_REQUEST "trace "

/* A function that puts the layer around the calls of a list of names with commas between them, or for NULL takes it
 * off. It returns NULL, or what is wrong with the names, in static storage. Written before any trace begins; NULL: the
 * process has no layers, like the command. */
extern const char *(*trace_layer_change)(const char *calls);

/* Writes lines of calls to the ring in the file from now on; `calls` is such a list, "": all calls. The new trace
 * replaces one that runs. Returns NULL, or why there is no trace, in static storage. One thread at a time. */
const char *trace_begin(const char *path, const char *calls);

/* Answers "begin PATH CALLS" or "end" with a JSON object: "traced" is true or false, and "wrong" says why there is no
 * trace. One thread. */
void trace_answer(const char *request, FILE *out);
