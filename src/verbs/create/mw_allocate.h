/* Making and destroying memory windows: ibv_alloc_mw(3), ibv_dealloc_mw(3). Thread-safe. */
#pragma once

#include "verbs/memory/mw.h"

struct ibv_mw *mw_allocate(struct ibv_pd *, enum ibv_mw_type);
/* A bound window is unbound first. */
int mw_deallocate(struct ibv_mw *);
