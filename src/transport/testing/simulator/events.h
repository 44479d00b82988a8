/* Future events, in the order of virtual time; at the same time, in the order in which they were announced. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"

enum event_kind {
    EVENT_PACKET,       /* a flight lands */
    EVENT_POST,         /* the program posts work */
    EVENT_POST_RECEIVE, /* the program posts a receive */
    EVENT_PUMP,         /* the owner pulls packets out of the engine */
    EVENT_TIMER,        /* the engine's deadline */
    EVENT_ACK,          /* the owner makes the ACK that was not requested */
    EVENT_DRAIN,        /* the program moves the queue pair to SQD */
    EVENT_RESUME,       /* ... and back */
    EVENT_SETTINGS,     /* the owner changes what it may change while work is begun */
    EVENT_FLUSH,        /* the program moves the queue pair to ERR */
    EVENT_DEATH,        /* a node dies */
};

struct flight;

struct world_event {
    nanos time;
    uint64_t order;
    enum event_kind kind;
    uint32_t target;       /* an endpoint; EVENT_DEATH: a node */
    struct flight *flight; /* EVENT_PACKET */
};

/* A binary heap. */
struct events {
    struct world_event *heap;
    uint32_t count, room;
    uint64_t announced;
};

void events_add(struct events *, struct world_event);
nanos events_next(const struct events *); /* its time; NANOS_NEVER: no event */
bool events_take(struct events *, struct world_event *);
void events_free(struct events *);
