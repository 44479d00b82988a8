/* The connections of the queue pairs of this host's processes, in a file of their directory. Processes of one user read
 * and write it by system calls; connections that are missing, or can't be read, are not compared. */
#pragma once

#include "check/shadow/shadow.h"

/* Writes the connection of the queue pair of this number, which is in RTS now, and reads its peer's. False: the peer
 * has written nothing of this connection. Thread-safe; the caller holds no lock. */
bool meeting_exchange(uint32_t number, const struct shadow_connection *, struct shadow_connection *peer);

/* The present time, for `begun`. */
uint64_t meeting_now(void);
