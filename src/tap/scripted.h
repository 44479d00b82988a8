/* The packets that rules of a script change or make up. Pure. */
#pragma once

#include "link/frame.h"
#include "script/decide.h"
#include "tap/fault.h"

/* A frame with its own headers and pieces. */
struct scripted_frame {
    struct frame frame;
    uint8_t headers[FRAME_HEADERS_MAX];
    struct iovec pieces[PAYLOAD_PIECES_MAX];
};

/* Adds the faults that the rules inject into the frame on its way. */
void scripted_add(const struct script_verdict *, struct fault *);

/* Returns the frame as the rules want it; `to` has it if they change it. */
const struct frame *scripted_change(const struct script_verdict *, const struct frame *, struct scripted_frame *to);

/* Makes the packet that the rules want before this one. False: they want no packet, or the frame is not FRAME_ROCE. */
bool scripted_forge(const struct script_verdict *, const struct frame *, struct scripted_frame *to);

/* Writes the comment of a capture on the packet and on the effect of the fault to `to`; NULL: no comment. */
const char *scripted_describe(const struct script_verdict *, const struct fault *, char *to, size_t room);
