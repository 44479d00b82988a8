/* The exchange between queue pairs: each packet from its departure to its arrival, the messages that packets make up,
 * losses, repeats, and their causes. All of it follows from the capture. */
#pragma once

#include "draw/flows.h"

enum mark {
#define MARK(NAME, word, sentence) MARK_##NAME,
#include "draw/marks.def"
    MARKS
};

enum cause {
#define CAUSE(NAME, word, sentence) CAUSE_##NAME,
#include "draw/marks.def"
    CAUSES
};

enum message_state {
#define STATE(NAME, word, sentence) MESSAGE_##NAME,
#include "draw/marks.def"
    MESSAGE_STATES
};

/* A packet from one end to the other. */
struct transit {
    uint32_t sent, received; /* records; LOOKUP_NONE: no record, or its direction is not known */
    uint32_t before;         /* how many transits began before it arrived; 0 where no arrival is known */
    uint32_t flow;
    uint32_t marks;   /* bits by enum mark */
    enum cause cause; /* of a repeat */
    uint32_t related; /* the transit that it repeats or that caused it; LOOKUP_NONE: no such transit */
    uint64_t waited;  /* nanoseconds, of a repeat: since the requester last sent something, or got a NAK */
    uint32_t message; /* LOOKUP_NONE: no message */
};

struct message {
    uint32_t flow, number; /* its number among the messages of the flow, from 0 */
    uint32_t opcode;       /* of its first packet in the capture */
    uint32_t first_psn, last_psn;
    uint32_t first, last; /* transits: its first packet, and its last one when that was first sent */
    uint32_t packets, repeats;
    uint64_t bytes;
    enum message_state state;
    uint8_t syndrome;                     /* of the NAK that refused it */
    uint32_t answered;                    /* the transit that acknowledged or refused it; LOOKUP_NONE: no transit */
    bool begun, ended;                    /* its first and its last packet are there */
    uint32_t posted, completed, received; /* the transits of its work request, of its completion and of the completion
                                           * of its receive; LOOKUP_NONE: not known, as in all captures */
};

struct ladder {
    struct transit *list;
    size_t count, room;
    struct message *messages;
    size_t message_count, message_room;
};

/* The record of a transit where it was sent, else where it arrived. */
const struct entry *transit_record(const struct records *, const struct transit *);

void ladder_find(struct ladder *, const struct records *, const struct flows *);
void ladder_free(struct ladder *);
