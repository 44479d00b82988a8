/* A layer that makes calls take time, for an adverse process (adverse/adverse.def, slow-calls) and for
 * SOFTVERBS_SCHEDULE. */
#pragma once

/* Puts the layer around if either is wanted. Call it before the program's first call. */
void slow_layer_start(void);
