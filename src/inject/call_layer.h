/* The rules of a script around the program's calls. */
#pragma once

/* Puts a layer (calls/calls.h) around the calls that this process's rules (script/rules.h) name; other calls cost
 * nothing. Call it after each change of the rules; one thread at a time. */
void call_layer_change(void);
