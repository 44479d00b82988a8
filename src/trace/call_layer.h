/* The layer of traces around all calls (calls/calls.h). */
#ifndef TRACE_CALL_LAYER_H
#define TRACE_CALL_LAYER_H

/* Changes the layer: trace_layer_change of ring/trace_control.h. */
const char *call_layer_trace(const char *calls);

#endif
