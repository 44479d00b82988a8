#include "transport/testing/simulator/events.h"

#include <stdlib.h>

static bool comes_before(const struct world_event *a, const struct world_event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void swap(struct world_event *a, struct world_event *b)
{
    struct world_event other = *a;
    *a = *b;
    *b = other;
}

void events_add(struct events *events, struct world_event event)
{
    if (events->count == events->room) {
        events->room = events->room ? 2 * events->room : 256;
        events->heap = realloc(events->heap, events->room * sizeof(*events->heap));
    }
    uint32_t i = events->count++;
    event.order = events->announced++;
    events->heap[i] = event;
    for (; i && comes_before(&events->heap[i], &events->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&events->heap[i], &events->heap[(i - 1) / 2]);
}

static void sink(struct events *events)
{
    for (uint32_t i = 0, child; (child = 2 * i + 1) < events->count; i = child) {
        if (child + 1 < events->count && comes_before(&events->heap[child + 1], &events->heap[child]))
            child++;
        if (!comes_before(&events->heap[child], &events->heap[i]))
            return;
        swap(&events->heap[child], &events->heap[i]);
    }
}

nanos events_next(const struct events *events)
{
    return events->count ? events->heap[0].time : NANOS_NEVER;
}

bool events_take(struct events *events, struct world_event *event)
{
    if (!events->count)
        return false;
    *event = events->heap[0];
    events->heap[0] = events->heap[--events->count];
    sink(events);
    return true;
}

void events_free(struct events *events)
{
    free(events->heap);
}
