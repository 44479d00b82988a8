/* The connections of the queue pairs of this host's processes, in a file of the directory where they meet. It is read
 * and written by system calls, by processes of one user; connections that are not there, or can't be read, are not
 * compared. */
#ifndef CHECK_OUTSIDE_MEETING_H
#define CHECK_OUTSIDE_MEETING_H

#include "check/shadow.h"

/* Writes down what the queue pair of this number is connected with, which is in RTS now, and reads what its peer has
 * written. False: nothing, or nothing of this connection. Thread-safe; under no lock. */
bool meeting_exchange(uint32_t number, const struct shadow_connection *, struct shadow_connection *peer);

/* The time, for `begun`. */
uint64_t meeting_now(void);

#endif
