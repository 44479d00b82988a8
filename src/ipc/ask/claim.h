/* The user of UDP port 4791 of an interface. The processes of one directory share it and pass datagrams on to each
 * other. To those of another directory (SOFTVERBS_DIR, another container with the same network) the kernel would
 * deliver each other's datagrams, and all would lose some. So each process names its directory in the list of Unix
 * sockets: like the ports, the list belongs to the network namespace (unix(7), abstract names), and the entries of a
 * process end with it. */
#ifndef IPC_ASK_CLAIM_H
#define IPC_ASK_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if a process of this user, with another directory, uses the interface of this index; *why* then says
 * which. False without /proc. Claims of other users do not count. */
bool claim_is_others(const char *directory, unsigned index, char *why, size_t why_size);

/* Names this process as a user of the interface, for as long as the descriptor *claim is open; -1: there is nothing to
 * keep. The socket listens, so that others can ask for its owner; the keeper accepts and closes what comes (udp_keep).
 * Returns 0, or EBUSY and a sentence if another directory has it. Two processes that claim at the same time may both
 * get EBUSY. Thread-safe. */
int claim_take(const char *directory, unsigned index, int *claim, char *why, size_t why_size);

#endif
