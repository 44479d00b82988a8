/* The queue pairs of another libibverbs by their numbers, and the attributes that the program has given them.
 * Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

#include "calls/questions.h"

struct numbered;

/* A new queue pair. Without memory it is not found. */
void numbers_add(struct ibv_qp *);

/* It is about to be destroyed, and not found any more; then whether it is there again. */
struct numbered *numbers_remove(const struct ibv_qp *);
void numbers_end_removal(struct numbered *, bool there);

/* The queue pair of this number of the context's device, or NULL. */
struct ibv_qp *numbers_find(const struct ibv_context *, uint32_t number);

/* ibv_modify_qp has given it these attributes. */
void numbers_note(const struct ibv_qp *, const struct ibv_qp_attr *, int mask);

/* Copies the values that this queue pair was given, and its address (without IBV_QP_AV: zeros). False: it is not in
 * RTS.
 */
bool numbers_end(const struct ibv_qp *, struct calls_end *own, struct ibv_ah_attr *address);

/* The same of the other queue pair of the same device and process with which this one is connected. False: there is
 * none, or it is not in RTS, or connected with another one. */
bool numbers_peer(const struct ibv_qp *, const struct calls_end *own, struct calls_end *peer);
