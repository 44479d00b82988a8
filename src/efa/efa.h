/* The calls of libefa (calls/efa.def): the functions below all layers, each with the prefix own_. A device that is no
 * EFA (the key `driver` of its profile) answers EOPNOTSUPP to each, as rdma-core's library does, and so does an EFA to
 * the calls that the list has as LACKED. Thread-safe. */
#pragma once

#include <infiniband/efadv.h>

#define VENDOR(outcome, type, name, parameters, arguments) type own_##name parameters;
#include "calls/efa.def"

#define PART(type, name, parameters, arguments) type own_##name parameters;
#include "calls/efa.def"

/* Lets efadv_cq_from_ibv_cq_ex answer for this completion queue. */
void efa_begin_cq(struct ibv_cq_ex *);
