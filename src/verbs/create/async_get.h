/* Fetching asynchronous events: ibv_get_async_event(3), ibv_ack_async_event(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

struct context;

/* Fetches an event. 0, or -1 and errno (EAGAIN when the descriptor is non-blocking and no event waits). */
int async_get(struct ibv_context *, struct ibv_async_event *);
void async_acknowledge(struct ibv_async_event *);

/* Withdraws the events that were not fetched yet of an object that is being destroyed. `element` is its address. */
void async_withdraw(struct context *, const void *element);
