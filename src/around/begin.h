/* The beginning of the layers in front of another libibverbs. */
#pragma once

#include "calls/calls.h"

/* As bottom_around, also for a program's constructor that runs before this library has begun. Thread-safe. */
const struct calls *begin_around(void);
