/* Requests of `softverbs inject` and `softverbs trace` to a process with layers in front of another libibverbs. A
 * thread of this library answers them, on a socket (script/live/requests.h); it begins when the program first looks for
 * devices, in a child of a fork, too. It answers processes of the same user alone. */
#pragma once

#include "calls/calls.h"

/* Puts the beginning of the thread into the bottom's ibv_get_device_list. Once. */
void control_begin(struct calls *bottom);

/* In a child of a fork: its parent alone is asked there. */
void control_forked(void);
