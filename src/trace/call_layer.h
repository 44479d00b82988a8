/* The layer of traces around all calls (calls/calls.h). */
#pragma once

/* Changes the layer: trace_layer_change of ring/trace_control.h. */
const char *call_layer_trace(const char *calls);
