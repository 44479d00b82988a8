/* A command of librdmacm, as layers (calls.h) and the functions that serve it see it. */
#pragma once

#include <stddef.h>

#include "base/nanos.h"
#include "calls/ucma_layout.h"

struct event_channel;
struct identifier;

struct ucma_call {
    struct event_channel *channel;
    int fd;          /* the descriptor by which the program named the channel */
    const void *in;  /* a copy of the command's bytes, filled with zeros to the length of its layout in ucma.def */
    size_t out;      /* bytes of room for the answer */
    uint32_t object; /* the number of the identifier that it names; 0: it names no identifier */

    /* Only the serving function uses it. */
    nanos now;
};
