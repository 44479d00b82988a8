/* The packets that rules of a script change or make up. Pure. */
#ifndef TAP_SCRIPTED_H
#define TAP_SCRIPTED_H

#include "link/frame.h"
#include "script/decide.h"
#include "tap/fault.h"

/* A frame with its own headers and pieces. */
struct scripted_frame {
    struct frame frame;
    uint8_t headers[FRAME_HEADERS_MAX];
    struct iovec pieces[PAYLOAD_PIECES_MAX];
};

/* What the rules want to happen to the frame on its way. */
void scripted_add(const struct script_verdict *, struct fault *);

/* The frame as the rules have it, in `to` where they change it. */
const struct frame *scripted_change(const struct script_verdict *, const struct frame *, struct scripted_frame *to);

/* The packet that goes before this one, as the rules want it. False: none, or this one is of no connection. */
bool scripted_forge(const struct script_verdict *, const struct frame *, struct scripted_frame *to);

/* What a capture says of the packet and of what the fault has done to it, in `to`; NULL: nothing. */
const char *scripted_describe(const struct script_verdict *, const struct fault *, char *to, size_t room);

#endif
