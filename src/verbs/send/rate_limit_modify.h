/* ibv_modify_qp_rate_limit(3). rate_limit.h defines the effect of a rate. */
#pragma once

#include <infiniband/verbs.h>

/* Sets the rate; 0: not paced any more. EOPNOTSUPP for a type that isn't paced; EINVAL outside of RTS, for comp_mask,
 * and for a burst or packet size without a rate; ENOENT. Thread-safe. */
int rate_limit_modify(struct ibv_qp *, struct ibv_qp_rate_limit_attr *);
