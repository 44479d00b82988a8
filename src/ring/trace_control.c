#include "ring/trace_control.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "diag/clean.h"
#include "ring/trace_ring.h"

const char *(*trace_layer_change)(const char *calls);

static void end_trace(void)
{
    if (trace_layer_change)
        trace_layer_change(NULL);
    trace_ring_close();
}

const char *trace_begin(const char *path, const char *calls)
{
    if (!trace_layer_change)
        return "this process has no calls to trace";
    trace_layer_change(NULL);
    const char *wrong = trace_ring_open(path);
    if (wrong)
        return wrong;
    wrong = trace_layer_change(calls);
    if (wrong)
        end_trace();
    return wrong;
}

static const char *answer_begin(const char *request)
{
    char path[PATH_MAX] = "";
    int used = 0;
    if (sscanf(request, "begin %4095s%n", path, &used) != 1)
        return "no such request";
    return trace_begin(path, request[used] == ' ' ? request + used + 1 : "");
}

void trace_answer(const char *request, FILE *out)
{
    const char *wrong = NULL;
    bool ends = !strcmp(request, "end");
    if (ends)
        end_trace();
    else
        wrong = answer_begin(request);
    fprintf(out, "{\"traced\":%s", ends || wrong ? "false" : "true");
    if (wrong) {
        fputs(",\"wrong\":", out);
        clean_json(out, wrong);
    }
    fputs("}\n", out);
}
