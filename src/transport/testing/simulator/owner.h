/* The functions of the world that the engines call. */
#pragma once

#include "transport/testing/simulator/world.h"

extern const struct owner_operations host_of_simulator;

/* Ends the receives that were not taken, as the queue pair is in the error state. */
void owner_flush_receives(struct endpoint *);
