/* The memory that a queue pair touches, found by keys. Under a qp->lock. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "diag/diag.h"

struct pd;
struct qp;
struct region;

/* mr_local finds the memory of one SGE in this protection domain, mr_remote that which a peer names (rkey, address,
 * length) in the queue pair's domain; struct owner_operations has the reasons. The memory is valid as long as the
 * caller holds the qp->lock. */
enum reason mr_local(const struct qp *, const struct pd *, const struct ibv_sge *, unsigned access, struct iovec *);
enum reason mr_remote(const struct qp *, uint32_t rkey, uint64_t address, uint32_t length, unsigned access,
                      struct iovec *);

/* Returns the index of the first element with bytes that mr_local refuses now; `count`: it refuses no element. */
uint32_t mr_find_refused(const struct qp *, const struct pd *, const struct ibv_sge *, uint32_t count, unsigned access);

/* Returns the region of the key, whether the queue pair may use it or not; or NULL. Valid as for mr_local. */
const struct region *mr_find(const struct qp *, uint32_t key);
