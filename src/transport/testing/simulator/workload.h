/* The programs: their posts, and the times of these. */
#ifndef TRANSPORT_TESTING_SIMULATOR_WORKLOAD_H
#define TRANSPORT_TESTING_SIMULATOR_WORKLOAD_H

#include "transport/testing/simulator/world.h"

/* EVENT_POST: posts some work and announces when to post more. */
void workload_post(struct endpoint *);

/* EVENT_POST_RECEIVE: posts one receive. */
void workload_post_receive(struct endpoint *);

#endif
