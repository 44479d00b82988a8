/* Processes that one call kills. */
#pragma once

#include <sys/types.h>

struct group {
    unsigned count;
    pid_t processes[64]; /* at most so many are awaited */
};

/* Before the call: the other processes of the run that kill(2) with this argument means. */
void group_find(struct group *, pid_t to);

/* After it: waits until they have ended, before another thread goes on. */
void group_await(const struct group *);
