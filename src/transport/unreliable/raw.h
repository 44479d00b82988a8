/* Raw packets: a work request is an Ethernet frame, or with IBV_WR_TSO the bytes of several frames. Pure, as rc.h says.
 * The functions of this service are raw_operations, and the ones below. */
#pragma once

#include "transport/raw_frame.h"
#include "transport/unreliable/unreliable.h"

struct raw {
    struct unreliable common;
    uint32_t sent;    /* TSO: payload bytes of the work at `next` that are sent already */
    uint32_t segment; /* payload bytes in the frame that raw_next made */
};

/* Do what engine_next_frame, engine_frame_sent and engine_receive_frame do (engine/engine.h). */
bool raw_next(struct raw *, uint8_t frame[RAW_FRAME_MAX], uint32_t *length);
void raw_sent(struct raw *);
void raw_receive(struct raw *, const struct raw_frame *);
