/* Traces of a live process: `softverbs trace` asks for one, and a layer around the traced calls is added. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Puts the layer around the calls named, with commas; NULL: removes it. Returns NULL, or what is wrong with the
 * names, in static storage. Written before any trace begins; NULL: the process has no layers, like the command. */
extern const char *(*trace_layer_change)(const char *calls);

/* Writes lines of calls to the ring in the file from now on; `calls` as above, "": all. It replaces a trace that
 * runs. Returns NULL, or why not, in static storage. One thread at a time. */
const char *trace_begin(const char *path, const char *calls);

/* Answers "begin PATH CALLS" or "end" with a JSON object: {"traced": true or false}, or "wrong", a sentence. One
 * thread. */
void trace_answer(const char *request, FILE *out);
