/* A line of a trace as text or JSON (docs/reference/json.md). */
#ifndef TOOLS_TRACE_LINE_H
#define TOOLS_TRACE_LINE_H

#include <stdbool.h>
#include <stdio.h>

struct trace_slot;

void trace_line_print(FILE *, const struct trace_slot *, bool as_json);

#endif
