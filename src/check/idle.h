/* Finds what keeps threads waiting that wait for completions, or poll for them, while nothing is due. All functions
 * take the shadow's lock; the caller holds no lock of the library. */
#pragma once

#include "check/shadow/shadow.h"

/* A thread begins to wait for an event of the channel. True: nothing is due in the channel's CQs, so idle_judge is to
 * be called when the wait has lasted long. */
bool idle_begin(const struct ibv_comp_channel *);
void idle_judge(const struct ibv_comp_channel *);

/* A thread has polled the CQ in vain. Called now and then, not for each such poll. */
void idle_polled(const struct ibv_cq *);
