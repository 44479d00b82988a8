/* A layer around calls that takes time: what an adverse process does (adverse/adverse.def, slow-calls), and what
 * SOFTVERBS_SCHEDULE asks for. */
#ifndef INJECT_SLOW_LAYER_H
#define INJECT_SLOW_LAYER_H

/* Put around if either is wanted. Before the program's first call. */
void slow_layer_start(void);

#endif
