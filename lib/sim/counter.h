/* The time stamp counter, which programs read without a system call. */
#pragma once

#include <stdbool.h>

/* Whether reads of it in this thread are faults, which the run's clock answers. */
void counter_catch(bool);

/* Looks once whether reads are caught, with no signal blocked. */
void counter_look(void);
