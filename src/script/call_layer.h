/* The rules of a script around the program's calls. */
#ifndef SCRIPT_CALL_LAYER_H
#define SCRIPT_CALL_LAYER_H

#include "script/rule.h"

/* Puts a layer (calls/calls.h) around the calls that rules are for; others cost nothing. The script lives for ever.
 * Once in a process. */
void call_layer_start(struct script *, uint64_t seed);

/* Has this process asked for devices, as each program that uses verbs does? Thread-safe. */
bool call_layer_is_used(void);

#endif
