/* The rules of a script around the program's calls. */
#ifndef INJECT_CALL_LAYER_H
#define INJECT_CALL_LAYER_H

/* Puts a layer (calls/calls.h) around the calls that rules of this process (script/meet.h) are for; others cost
 * nothing. To be called whenever the rules have changed; one thread at a time. */
void call_layer_change(void);

#endif
