/* Asynchronous events that a rule of a script raises, in front of another libibverbs. The contexts that the program
 * opens from then on have a descriptor of ours in front (library/front.h). The event comes alone: the device stays as
 * it is, but a queue pair that an event reports in ERR is moved there. Thread-safe. */
#pragma once

#include <stdbool.h>

#include "calls/subject.h"
#include "script/raised.h"

/* Puts the layer around. Before the program opens a device. */
void asynchronous_prepare(void);
bool asynchronous_is_prepared(void);

/* For struct script_reach. */
void asynchronous_raise(const struct calls_subject *, const struct script_raised *);
