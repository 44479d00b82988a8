/* The work of the cleanup process when the program has ended. */
#pragma once

#include "base/nanos.h"
#include "gsi/cleanup/cleanup_layout.h"

/* Sends each peer its goodbye (a DREQ is repeated until it is answered) and answers the peers' own DREQs, until all
 * have answered, but for 5 s at most; after a SIGTERM (which is blocked) for at most 1 s. Uses UDP port 4791 only while
 * a peer's message can still arrive. */
void cleanup_say_goodbye(const struct cleanup_shared *, nanos (*clock)(void));
