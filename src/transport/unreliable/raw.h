/* Raw packets: a work request is an Ethernet frame, or with IBV_WR_TSO the bytes of several. Pure, as rc.h says. Its
 * functions are raw_operations, and the ones below. */
#pragma once

#include "transport/raw_frame.h"
#include "transport/unreliable/unreliable.h"

struct raw {
    struct unreliable common;
    uint32_t sent;    /* TSO: payload bytes of the work at `next` that are sent already */
    uint32_t segment; /* payload bytes in the frame that raw_next made */
};

/* Writes the next frame to `frame`, with its checksums if the work asks for them, and its length. False: no work is
 * left, or it can't be sent and the send queue is in error. Returns the same frame until raw_sent. */
bool raw_next(struct raw *, uint8_t frame[RAW_FRAME_MAX], uint32_t *length);

/* Notes that the frame has left. */
void raw_sent(struct raw *);

/* Stores the frame in the next receive. Without one, or when it is too short, the frame is dropped, as a network does.
 */
void raw_receive(struct raw *, const struct raw_frame *);
