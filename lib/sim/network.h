/* The loopback interface of a run. The kernel delivers its packets in the sender's call, unless the processor has so
 * much to do that a thread of the kernel's delivers them later: then the order would not be the seed's. */
#pragma once

#include <stdbool.h>

/* Whether it is a socket of the internet, or one of frames. */
bool network_is(int descriptor);

/* Waits until all packets that were sent, and their answers, have arrived. */
void network_settle(void);

/* Lets a TCP socket send at once: otherwise it waits for an answer that the kernel delays in real time. Does nothing to
 * other files. */
void network_hurry(int descriptor);
