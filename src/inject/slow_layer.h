/* A layer around calls that takes time, for an adverse process (adverse/adverse.def, slow-calls) and for
 * SOFTVERBS_SCHEDULE. */
#ifndef INJECT_SLOW_LAYER_H
#define INJECT_SLOW_LAYER_H

/* Put around if either is wanted. Before the program's first call. */
void slow_layer_start(void);

#endif
