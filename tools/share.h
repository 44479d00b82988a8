/* Whether UDP port 4791 can be shared with the programs that have it. */
#pragma once

/* Tries what a device on this interface does to receive: 0, or errno; EADDRINUSE: a program has the port and does not
 * share it, or not with this user. Programs that have the port and share it lose no datagram by that. */
int share_try(const char *interface);
