/* The checker finds uses that work here by luck and fail on an adapter, or are a bug anywhere. With SOFTVERBS_CHECK it
 * is a layer around all calls of the program; without, the program never calls it. */
#pragma once

/* Call it after calls_begin, before the program runs. */
void check_begin(void);
