/* The end of mlx5/queues/registers.c. */
#pragma once

#include "statics.h"

const struct statics statics_of_registers[] = {STATICS_KEPT(pages),  STATICS_KEPT(way),   STATICS_KEPT(faults),
                                               STATICS_KEPT(closed), STATICS_KEPT(woken),
                                               STATICS_KEPT(stored), {0}};
