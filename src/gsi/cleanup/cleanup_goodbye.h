/* The work of the cleanup process when the program has ended. */
#pragma once

#include "base/nanos.h"
#include "gsi/cleanup/cleanup_layout.h"

/* Sends each peer its last message (a DREQ is repeated until it is answered) and answers the peers' DREQs, until all
 * peers have answered, but for 5 s at most, or 1 s if a SIGTERM (which is blocked) has arrived. Uses UDP port 4791 only
 * while a peer's message can still arrive. */
void cleanup_say_goodbye(const struct cleanup_shared *, nanos (*clock)(void));
