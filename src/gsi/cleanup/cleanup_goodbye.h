/* The work of the cleanup process when the program has ended. */
#ifndef GSI_CLEANUP_CLEANUP_GOODBYE_H
#define GSI_CLEANUP_CLEANUP_GOODBYE_H

#include "base/nanos.h"
#include "gsi/cleanup/cleanup_layout.h"

/* Sends each peer its goodbye, a DREQ again until it is answered, and answers the peers' own DREQs, for 5 s at most and
 * until all have answered; after a SIGTERM (which is blocked) for no more than 1 s. Has UDP port 4791 only while a
 * message of a peer can still come. */
void cleanup_say_goodbye(const struct cleanup_shared *, nanos (*clock)(void));

#endif
