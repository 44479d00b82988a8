/* The changes that process 1 makes to the hosts' interfaces while a lab runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lab/plan.h"

struct wiring {
    const struct lab_plan *plan;
    const pid_t *holders; /* of the hosts */
    int netlink;          /* of the namespace in which their interfaces meet */
};

/* Sets the MTU of all links, at each end. False: `why` is a sentence, also for the functions below. */
bool wiring_set_mtu(const struct wiring *, uint32_t mtu, char *why, size_t size);

/* Sets a host's link down or up, as the host sees it. */
bool wiring_set_up(const struct wiring *, unsigned host, bool up, char *why, size_t size);

/* Calls `change` in the network of a host, by the process that holds it; the caller is back in its own network
 * afterwards. 0, or an errno. */
int wiring_in_network(pid_t holder, int (*change)(uint32_t), uint32_t value);

/* Makes the hosts send each frame as on a wire: a single packet, with its checksum. */
bool wiring_make_plain(const struct wiring *, char *why, size_t size);
