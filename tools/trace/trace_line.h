/* A line of a trace as text or JSON (docs/reference/json.md). */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct trace_slot;

void trace_line_print(FILE *, const struct trace_slot *, bool as_json);
