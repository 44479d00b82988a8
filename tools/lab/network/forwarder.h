/* The lab's own switch, in place of the kernel's bridge where links have qualities: takes each frame that a host sends,
 * lets it meet the channels of its way, and gives it to the host that it is for. */
#pragma once

#include <poll.h>

#include "lab/network/network.h"

struct forwarder;

/* Takes the interfaces of all hosts, which have their names, out of the bridge. `simulated`: only RoCE's frames are
 * lost, as the kernel repeats others in real time, and frames that the kernel sends by itself (ARP, IPv6's discovery,
 * groups) are not taken. NULL: `why` is a sentence. */
struct forwarder *forwarder_start(struct network *, int netlink, bool simulated, char *why, size_t size);

/* The descriptors that it waits for, at most LAB_HOSTS_MOST; returns their number. */
unsigned forwarder_wants(const struct forwarder *, struct pollfd *);

/* Nanoseconds until the next frame is due; -1: no frame waits. */
int64_t forwarder_next(const struct forwarder *);

/* Takes frames that hosts have sent, and delivers the frames that are due. */
void forwarder_work(struct forwarder *);
