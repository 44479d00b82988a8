#pragma once

#include "verbs/memory/mw.h"

/* ibv_bind_mw(3), for windows of type 1: 0 or an errno. The window shows its new key at once. Thread-safe. */
int mw_post_bind(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
