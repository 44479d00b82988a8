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

/* Find the memory of one SGE in this protection domain, or of a peer's (rkey, address, length) in the queue pair's; see
 * struct owner_operations for the reasons. Valid as long as the caller holds the qp->lock under which it asked. */
enum reason mr_local(const struct qp *, const struct pd *, const struct ibv_sge *, unsigned access, struct iovec *);
enum reason mr_remote(const struct qp *, uint32_t rkey, uint64_t address, uint32_t length, unsigned access,
                      struct iovec *);

/* The first element with bytes that mr_local refuses now; `count`: it refuses no element. */
uint32_t mr_find_refused(const struct qp *, const struct pd *, const struct ibv_sge *, uint32_t count, unsigned access);

/* Returns the region of the key, whether the queue pair may use it or not; or NULL. Valid as above. */
const struct region *mr_find(const struct qp *, uint32_t key);
