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

/* Makes the hosts send each frame as on a wire: a single packet, with its checksum. */
bool wiring_make_plain(const struct wiring *, char *why, size_t size);
