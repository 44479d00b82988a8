/* The programs: their posts, and the times of these. */
#pragma once

#include "transport/testing/simulator/world.h"

/* EVENT_POST: posts some work and announces when to post more. */
void workload_post(struct endpoint *);

/* EVENT_POST_RECEIVE: posts one receive. */
void workload_post_receive(struct endpoint *);
