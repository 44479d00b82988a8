/* The user of UDP port 4791 of an interface. The processes of one directory share it and pass datagrams on to each
 * other. If processes of another directory (SOFTVERBS_DIR, another container with the same network) used it, too, the
 * kernel would deliver datagrams to the wrong ones, and all would lose some. So each process names its directory in the
 * list of Unix sockets: like the ports, the list belongs to the network namespace (unix(7), abstract names), and a
 * process's entries end with it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns true if a process of this user, with another directory, uses the interface of this index; *why* then names
 * it. False without /proc. Claims of other users do not count. */
bool claim_is_others(const char *directory, unsigned index, char *why, size_t why_size);

/* Names this process as a user of the interface, for as long as the descriptor *claim is open; -1: nothing to keep. The
 * socket listens, so that others can ask for its owner; its keeper accepts and closes connections (udp_keep). Returns
 * 0, or EBUSY and a sentence if another directory uses the interface. Two processes that claim at the same time may
 * both get EBUSY. Thread-safe. */
int claim_take(const char *directory, unsigned index, int *claim, char *why, size_t why_size);
