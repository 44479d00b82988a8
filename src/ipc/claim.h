/* Who uses UDP port 4791 of an interface. The processes of one directory share it and hand one another what is theirs;
 * those of another directory (SOFTVERBS_DIR, another container with the same network) would be given each other's
 * datagrams by the kernel, and all would lose some. So each process names its directory in the list of Unix sockets,
 * which is the network namespace's (unix(7), abstract names), as are its ports, and which forgets who has ended. */
#ifndef IPC_CLAIM_H
#define IPC_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

/* Does a process of this user and another directory use the interface of this index? Then why not to. Without /proc:
 * no. What other users claim does not count. */
bool claim_is_others(const char *directory, unsigned index, char *why, size_t why_size);

/* Names this process as a user of the interface, for as long as the descriptor *claim is open; -1: nothing to keep. It
 * listens, so that others can ask whose it is; whoever keeps it accepts and closes what comes (udp_keep). 0,
 * or EBUSY and a sentence: it is others'. Two that come at once may both be told so. Thread-safe. */
int claim_take(const char *directory, unsigned index, int *claim, char *why, size_t why_size);

#endif
