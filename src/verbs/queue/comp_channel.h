/* Completion channels: ibv_create_comp_channel(3), ibv_get_cq_event(3), ibv_ack_cq_events(3). Thread-safe. */
#pragma once

#include "base/lock.h"
#include "process/sleepers.h"
#include "verbs/object/object.h"

struct comp_channel {
    struct ibv_comp_channel ibv;
    struct object object;
    struct lock lock;
    TAILQ_HEAD(, cq) ready; /* CQs with events that are not fetched yet */
    struct sleeper sleeper; /* the program's thread that waits for events */
};

struct ibv_comp_channel *comp_channel_create(struct ibv_context *); /* NULL and errno */
int comp_channel_destroy(struct ibv_comp_channel *);                /* EBUSY while CQs use it */

/* Puts one event of the CQ into its channel. May be called under cq->lock. */
void comp_channel_notify(struct comp_channel *, struct cq *);

/* Returns true if an event of the CQ waits in its channel to be fetched. May be called under cq->lock. */
bool comp_channel_has(struct comp_channel *, const struct cq *);

/* Fetches an event. 0, or -1 and errno (EAGAIN when the descriptor is non-blocking and no event waits). */
int comp_channel_get(struct ibv_comp_channel *, struct ibv_cq **, void **cq_context);
void comp_channel_acknowledge(struct ibv_cq *, unsigned count); /* ibv_ack_cq_events(3) */

/* Withdraws the events of a CQ that were not fetched; returns how many were fetched: these must be acknowledged before
 * the CQ may be destroyed. */
uint32_t comp_channel_withdraw(struct comp_channel *, struct cq *);
