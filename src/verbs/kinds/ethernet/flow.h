/* Flow rules as objects: ibv_create_flow(3). Thread-safe. */
#pragma once

#include "verbs/object/object.h"

/* Makes a rule. NULL and errno: EINVAL, ENOMEM; EOPNOTSUPP for rules that are not offered; ENOENT. */
struct ibv_flow *flow_create(struct ibv_qp *, struct ibv_flow_attr *);
int flow_destroy(struct ibv_flow *);
