/* Attributes of an identifier's queue pair, which programs get from the connection manager for ibv_modify_qp. */
#pragma once

#include "cm/identifier.h"

/* Writes the attributes for the transition to this state, and their mask of enum ibv_qp_attr_mask. EINVAL: the
 * identifier has no device yet, or its connection can't have them yet, or has ended. */
int attributes_of(const struct identifier *, enum ibv_qp_state, struct ibv_qp_attr *, int *mask);
