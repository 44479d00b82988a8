/* The queue pairs of another libibverbs by their numbers. Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

/* A new queue pair; one that is about to be destroyed. Without memory it is not found. */
void numbers_add(struct ibv_qp *);
void numbers_remove(const struct ibv_qp *);

/* The queue pair of this number of the context's device, or NULL. */
struct ibv_qp *numbers_find(const struct ibv_context *, uint32_t number);
