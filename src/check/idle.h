/* Threads that wait for completions, or poll for them, where nothing is due that they know of: what keeps them waiting
 * is looked for. All functions take the shadow's lock; the caller holds no lock of the library. */
#pragma once

#include "check/shadow/shadow.h"

/* A thread begins to wait for an event of the channel. True: nothing is due in its CQs; then idle_judge is called when
 * the wait lasts long. */
bool idle_begin(const struct ibv_comp_channel *);
void idle_judge(const struct ibv_comp_channel *);

/* A thread has polled the CQ in vain. Called now and then. */
void idle_polled(const struct ibv_cq *);
