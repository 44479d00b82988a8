/* One command of librdmacm, as layers (calls.h) and the functions that serve it see it. */
#ifndef CALLS_COMMAND_H
#define CALLS_COMMAND_H

#include <stddef.h>

#include "base/nanos.h"
#include "calls/ucma_layout.h"

struct event_channel;
struct identifier;

struct ucma_call {
    struct event_channel *channel;
    int fd;          /* as the program named the channel */
    const void *in;  /* a copy of its bytes, complete with zeros: as long as the layout of the command in ucma.def */
    size_t out;      /* bytes of room for the answer */
    uint32_t object; /* the number of its identifier; 0: it names none */

    /* Of the function that serves it. */
    nanos now;
};

#endif
