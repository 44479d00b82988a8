/* Making and destroying memory windows: ibv_alloc_mw(3), ibv_dealloc_mw(3). Thread-safe. */
#pragma once

#include "verbs/memory/mw.h"

/* Makes a window. NULL and errno. */
struct ibv_mw *mw_allocate(struct ibv_pd *, enum ibv_mw_type);
/* Ends a window, which is unbound first if it is bound. 0 or ENOENT. */
int mw_deallocate(struct ibv_mw *);
