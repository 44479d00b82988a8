/* Attributes of an identifier's queue pair, as the program has them from the connection manager for ibv_modify_qp. */
#ifndef CM_ATTRIBUTES_H
#define CM_ATTRIBUTES_H

#include "cm/identifier.h"

/* For the transition to this state: the attributes and the mask of enum ibv_qp_attr_mask. EINVAL: no device yet, or the
 * connection has not got so far, or has ended. */
int attributes_of(const struct identifier *, enum ibv_qp_state, struct ibv_qp_attr *, int *mask);

#endif
