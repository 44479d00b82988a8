/* The hosts of a lab, and what joins them: a bridge of the kernel's, or the lab's own switch. */
#pragma once

#include <poll.h>

#include "lab/network/network.h"
#include "lab/network/wiring.h"

struct forwarder;

struct joined {
    struct network *network;
    pid_t holders[LAB_HOSTS_MOST];
    struct wiring wiring;
    struct forwarder *forwarder; /* NULL: a bridge joins the hosts */
    uint32_t mtu;                /* of the links */
    bool down[LAB_HOSTS_MOST];
    bool simulated; /* a simulated run has the switch (forwarder_start) */
};

/* Starts the hosts of the network, whose interfaces meet in a bridge. For process 1 of the lab, whose namespaces are
 * new. False after a sentence. */
bool joined_make(struct joined *, struct network *);

/* Likewise for hosts that process 1 has made, in another process that is on none of them. */
bool joined_find(struct joined *, struct network *);

/* Brings the interfaces and the switch into the state that the network has now. False: `why` is a sentence. */
bool joined_follow(struct joined *, char *why, size_t size);

/* Answers a request such as "h1-h2 delay=1ms"; "" asks for the list of links. False: the reply is a refusal. */
bool joined_answer(struct joined *, const char *request, char *reply, size_t size);

/* Waits until the switch has work, or one of the caller's descriptors is ready, which are the first `own` of at most
 * own + LAB_HOSTS_MOST; then the switch does its work. False: errno. */
bool joined_work(struct joined *, struct pollfd *ready, unsigned own);
