/* Publishes the regions of this process to its peers, so that they read and write them by themselves:
 * docs/evidence/one-sided.md. Under process->control. */
#pragma once

#include "verbs/memory/mr.h"

/* Publishes the region under its key; regions that only the responder may judge are left out. */
void publish_region(struct process *, const struct mr *);

/* Withdraws the region: when this returns, no peer uses it by itself. */
void publish_no_region(struct process *, const struct mr *);
